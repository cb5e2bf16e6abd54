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
MASK = "***"


def masked(text: str) -> str:
    """The text with passwords in URLs and values of secret-looking names replaced by ``***``."""
    for pattern in (_URL, _NAMED):
        text = pattern.sub(lambda m: m["head"] + MASK, text)
    return text
