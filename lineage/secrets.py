"""Secrets in options, addresses and errors are masked in everything that is printed or written."""

from __future__ import annotations

import re

_URL = re.compile(
    r"(?P<head>(?:\b[a-z][a-z0-9+.-]*://|\b)[^\s:/@'\"]*:)[^\s@/]+(?=@)", re.IGNORECASE
)
_NAMED = re.compile(
    r"(?P<head>\b[\w.-]*(?:password|passwd|pwd|secret|token|credential|api[_-]?key|access[_-]?key)"
    r"[\w.-]*[\"']?\s*[=:]\s*[\"']?)[^\s\"',;&]+",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?P<head>\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?|\b(?:set-)?cookie[\"']?\s*:\s*[\"']?)"
    r"[^\r\n\"']+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<head>\bbearer\s+)[\w.~+/=-]+", re.IGNORECASE)
MASK = "***"


def masked(text: str) -> str:
    """The text with passwords in URLs and values of secret-looking names replaced by ``***``; so
    are bearer tokens, and all that an Authorization or Cookie header says."""
    for pattern in (_URL, _NAMED, _HEADER, _BEARER):
        text = pattern.sub(lambda m: m["head"] + MASK, text)
    return text


def is_secret(name: str, value: str) -> bool:
    """Whether a setting is one that would be masked."""
    text = f"{name}={value}"
    return masked(text) != text
