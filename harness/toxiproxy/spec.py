"""The toxics of Toxiproxy 2.12: their attributes, units and ranges.

The server itself answers 200 to misspelled attributes and to values that make it panic later
(a negative bandwidth, a slicer without a size), so everything is checked here before it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bettong.harness.toxiproxy.errors import ToxicError
from bettong.lineage.nearest import did_you_mean

Stream = Literal["upstream", "downstream"]
STREAMS: tuple[Stream, ...] = get_args(Stream)

_MAX_MILLISECONDS = 2**31 - 1
_MAX_BYTES = 2**53


@dataclass(frozen=True)
class Attribute:
    """One attribute of a toxic: its range and unit. All are whole numbers, 0 when left out."""

    unit: str
    minimum: int = 0
    maximum: int = _MAX_MILLISECONDS
    required: bool = False


TOXICS: Mapping[str, Mapping[str, Attribute]] = {
    "latency": {"latency": Attribute("ms"), "jitter": Attribute("ms")},
    "bandwidth": {"rate": Attribute("kB/s", required=True)},
    "slow_close": {"delay": Attribute("ms")},
    "timeout": {"timeout": Attribute("ms")},
    "reset_peer": {"timeout": Attribute("ms")},
    "slicer": {
        "average_size": Attribute("bytes", minimum=1, required=True),
        "size_variation": Attribute("bytes"),
        "delay": Attribute("us"),
    },
    "limit_data": {"bytes": Attribute("bytes", maximum=_MAX_BYTES, required=True)},
}


@dataclass(frozen=True)
class Toxic:
    """A toxic, checked.

    Attributes:
        type: one of TOXICS.
        stream: ``upstream`` is what the client sends, ``downstream`` what the server answers.
        attributes: whole numbers, see TOXICS for names, units and ranges.
        name: unique within its proxy; ``{type}_{stream}`` when empty.
        toxicity: probability, for each connection, that it is in force.

    Raises ToxicError, with the nearest right name, for anything that the server would misread.
    """

    type: str
    stream: Stream = "downstream"
    attributes: Mapping[str, int] = field(default_factory=dict)
    name: str = ""
    toxicity: float = 1.0

    def __post_init__(self) -> None:
        if self.type not in TOXICS:
            raise ToxicError(f"no toxic is called {self.type!r}{hint(self.type, TOXICS)}")
        if self.stream not in STREAMS:
            raise ToxicError(
                f"toxic {self.type}: no stream {self.stream!r}: upstream or downstream"
            )
        if not self.name:
            object.__setattr__(self, "name", f"{self.type}_{self.stream}")
        check_name(self.name)
        if isinstance(self.toxicity, bool) or not 0.0 <= self.toxicity <= 1.0:
            raise ToxicError(f"toxic {self.name}: toxicity {self.toxicity} is not within 0 and 1")
        object.__setattr__(self, "attributes", checked_attributes(self.type, self.attributes))

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Toxic:
        return cls(
            given["type"], given["stream"], given["attributes"], given["name"], given["toxicity"]
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "stream": self.stream,
            "toxicity": self.toxicity,
            "attributes": dict(self.attributes),
        }


def checked_attributes(kind: str, attributes: Mapping[str, Any]) -> dict[str, int]:
    """The attributes of a toxic of that type, if they are all right; else ToxicError."""
    known = TOXICS[kind]
    for name, value in attributes.items():
        if name not in known:
            raise ToxicError(f"toxic {kind} has no attribute {name!r}{hint(name, known)}")
        limits = known[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise ToxicError(f"toxic {kind}: {name} is a whole number of {limits.unit}: {value!r}")
        if not limits.minimum <= value <= limits.maximum:
            raise ToxicError(
                f"toxic {kind}: {name}={value} {limits.unit} is not within "
                f"{limits.minimum} and {limits.maximum}"
            )
    missing = [n for n, limits in known.items() if limits.required and n not in attributes]
    if missing:
        raise ToxicError(f"toxic {kind} needs {', '.join(missing)}")
    if kind == "slicer" and attributes.get("size_variation", 0) >= attributes["average_size"]:
        raise ToxicError("toxic slicer: size_variation must be less than average_size")
    return dict(attributes)


def check_name(name: str) -> str:
    """A name that the API's paths can carry; else ToxicError."""
    if not name or "/" in name or not name.isprintable():
        raise ToxicError(f"{name!r} is no name for a proxy or toxic: printable, not empty, no '/'")
    return name


def hint(name: str, known: Iterable[str]) -> str:
    """``: did you mean 'x'?``, or the names there are."""
    known = sorted(known)
    found = did_you_mean(name, known, quote=repr)
    return f": {found or 'there are ' + (', '.join(known) or 'none')}"


def latency(
    latency_ms: int, jitter_ms: int = 0, stream: Stream = "downstream", name: str = ""
) -> Toxic:
    """Delays all data by ``latency_ms`` +/- ``jitter_ms``, in order."""
    return Toxic("latency", stream, {"latency": latency_ms, "jitter": jitter_ms}, name)


def bandwidth(rate_kb: int, stream: Stream = "downstream", name: str = "") -> Toxic:
    """Passes ``rate_kb`` thousand bytes a second; with 0 nothing passes."""
    return Toxic("bandwidth", stream, {"rate": rate_kb}, name)


def slow_close(delay_ms: int, stream: Stream = "downstream", name: str = "") -> Toxic:
    """Passes the end of the stream on only after ``delay_ms``."""
    return Toxic("slow_close", stream, {"delay": delay_ms}, name)


def timeout(timeout_ms: int = 0, stream: Stream = "downstream", name: str = "") -> Toxic:
    """Drops all data; closes after ``timeout_ms`` without any, never with 0. Removing it closes
    the connections that it was in force on."""
    return Toxic("timeout", stream, {"timeout": timeout_ms}, name)


def reset_peer(timeout_ms: int = 0, stream: Stream = "downstream", name: str = "") -> Toxic:
    """Resets a connection ``timeout_ms`` after the first data. A connection that was there before
    the toxic is closed by FIN, not by RST."""
    return Toxic("reset_peer", stream, {"timeout": timeout_ms}, name)


def slicer(
    average_size: int,
    size_variation: int = 0,
    delay_us: int = 0,
    stream: Stream = "downstream",
    name: str = "",
) -> Toxic:
    """Passes data in pieces of about ``average_size`` bytes, ``delay_us`` between them."""
    attributes = {
        "average_size": average_size,
        "size_variation": size_variation,
        "delay": delay_us,
    }
    return Toxic("slicer", stream, attributes, name)


def limit_data(count: int, stream: Stream = "downstream", name: str = "") -> Toxic:
    """Passes exactly ``count`` bytes of each connection, counted from when the toxic was added,
    then closes it. With 0 the first data closes the connection and none of it passes."""
    return Toxic("limit_data", stream, {"bytes": count}, name)
