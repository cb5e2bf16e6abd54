"""What a bulk API as that of Elasticsearch and OpenSearch answers when it takes none of the items:
200, and an error for each of them.

https://www.elastic.co/guide/en/elasticsearch/reference/current/docs-bulk.html
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

_PATH = re.compile(r"(POST|PUT) (/[^/]+)*/_bulk$")
_ACTIONS = ("index", "create", "update", "delete")
_ERROR = {
    "type": "es_rejected_execution_exception",
    "reason": "rejected execution of coordinating operation",
}


def is_bulk(label: str) -> bool:
    """Whether a request with this label is one of many items."""
    return _PATH.match(label) is not None


def rejected(request: bytes) -> bytes:
    """The answer to such a request, whole."""
    items = [
        {action: {**named, "status": 429, "error": _ERROR}} for action, named in _items(request)
    ]
    body = json.dumps({"took": 1, "errors": True, "items": items}).encode()
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        f"X-Elastic-Product: Elasticsearch\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body


def _items(request: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each line of the body asks for, but for those that are documents."""
    for line in _body(request).splitlines():
        try:
            asked = json.loads(line)
        except ValueError:
            continue
        if not isinstance(asked, dict) or len(asked) != 1:
            continue
        ((action, named),) = asked.items()
        if action in _ACTIONS and isinstance(named, dict):
            yield action, named


def _body(request: bytes) -> bytes:
    """Nothing where it cannot be read."""
    head, _, body = request.partition(b"\r\n\r\n")
    try:
        if re.search(rb"\r\ntransfer-encoding:[^\r]*chunked", head, re.IGNORECASE):
            body = b"".join(_chunks(body))
        return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
    except (OSError, EOFError, ValueError, zlib.error):
        return b""


def _chunks(body: bytes) -> Iterator[bytes]:
    while body:
        size, _, rest = body.partition(b"\r\n")
        count = int(size.partition(b";")[0], 16)
        if not count:
            return
        yield rest[:count]
        body = rest[count + 2 :]
