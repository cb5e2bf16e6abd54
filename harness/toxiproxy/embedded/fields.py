"""What the API's request bodies say, as strict as Toxiproxy is."""

from __future__ import annotations

import json
from typing import Any

from bettong.engine.address import Address
from bettong.harness.toxiproxy.embedded.proxy import address_of
from bettong.harness.toxiproxy.spec import TOXICS


class ApiError(Exception):
    """An answer that is not a success, in Toxiproxy's words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as e:
        raise ApiError(400, f"bad request body: {e}") from None


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def json_object(body: bytes) -> dict[str, Any]:
    given = parsed(body)
    if not isinstance(given, dict):
        raise ApiError(400, "bad request body: an object is expected")
    return given


def text_field(given: dict[str, Any], key: str, default: str = "") -> str:
    value = given.get(key, default)
    if not isinstance(value, str):
        raise ApiError(400, f"bad request body: {key} is not a string")
    return value


def proxy_fields(given: dict[str, Any], where: str) -> tuple[str, str, str, bool]:
    for key in ("name", "upstream"):
        if not text_field(given, key):
            raise ApiError(400, f"missing required field: {key}{where}")
    enabled = given.get("enabled", True)
    if not isinstance(enabled, bool):
        raise ApiError(400, "bad request body: enabled is not a boolean")
    listen = text_field(given, "listen")
    if listen:
        host, port = address_of(listen)
        listen = str(Address("127.0.0.1" if host == "localhost" else host, port))
    return given["name"], listen, given["upstream"], enabled


def attribute_fields(kind: str, given: dict[str, Any]) -> dict[str, int]:
    """Those that the toxic has; as in Toxiproxy, others are ignored."""
    attributes = given.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise ApiError(400, "bad request body: attributes is not an object")
    known = {name: value for name, value in attributes.items() if name in TOXICS[kind]}
    for name, value in known.items():
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
            raise ApiError(400, f"bad request body: {name} is not a whole number of 64 bits")
    return known


def toxicity_field(given: dict[str, Any], default: float) -> float:
    value = given.get("toxicity", default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ApiError(400, "bad request body: toxicity is not a number")
    return float(value)
