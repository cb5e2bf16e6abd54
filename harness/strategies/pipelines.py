"""Random applications over numbers in text: what ``bettong.harness.strategies.data.pipelines``
draws.

The functions stand at the top of a module, so that workers can load them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from hypothesis import reject
from hypothesis import strategies as st

from bettong.engine import (
    Application,
    GraphError,
    Pipeline,
    Sink,
    Stream,
    application,
    computation,
    computation_multi,
    decoder,
    encoder,
    key_extractor,
    predicate,
    sink,
    source,
    state_computation,
    state_computation_multi,
    state_entity,
)


@decoder
def number(data: bytes) -> int:
    return int(data)


@encoder
def text(value: object) -> bytes:
    return repr(value).encode()


@computation
def half(value: int) -> int | None:
    return value // 2 if value % 3 else None


@computation_multi
def upto(value: int) -> list[int]:
    return list(range(value % 4))


@computation_multi
def lazily(value: int) -> Iterator[int]:
    yield value
    if value % 2:
        yield -value


@predicate
def even(value: int) -> bool:
    return value % 2 == 0


@predicate
def divisible(value: int) -> bool:
    return value % 5 == 0


@key_extractor
def remainder(value: int) -> str:
    return "all" if value < 5 else f"r{value % 3}"


@key_extractor
def itself(value: int) -> int:
    return value


@key_extractor
def as_bytes(value: int) -> bytes:
    return bytes([value % 5])


@dataclass
class Seen:
    total: int = 0
    last: list[int] = field(default_factory=list)


@dataclass
class Other:
    count: int = 0


@state_computation(state=Seen)
def running(value: int, seen: Seen) -> int:
    seen.total = (7 * seen.total + value) % 1009  # not commutative: order shows
    seen.last = [*seen.last, value][-3:]
    return seen.total


@state_computation(state=Seen)
def rarely(value: int, seen: Seen) -> int | None:
    seen.total += value
    return seen.total if value % 2 else None


@state_computation_multi(
    state=state_entity(Other, name="other", forget=lambda other: other.count % 3 == 0)
)
def twice(value: int, other: Other) -> list[int]:
    other.count += 1
    return [value, other.count][: 1 + other.count % 2]


@computation
def picky(value: int) -> int:
    if value % 7 == 5:
        raise ValueError("not this one")
    return value


@computation_multi
def breaking_off(value: int) -> Iterator[int]:
    yield value
    if value % 6 == 4:
        raise RuntimeError("half-way")


@key_extractor
def odd_keys(value: int) -> str:
    return "low" if value < 8 else None  # type: ignore[return-value]


@state_computation(state=Seen)
def fragile(value: int, seen: Seen) -> int:
    seen.total += 1
    seen.last.append(value)
    if value % 4 == 1:
        raise ArithmeticError(f"cannot take {value}")
    return seen.total


STATELESS = (half, upto, lazily, even)
FRAIL_STATELESS = (*STATELESS, picky, breaking_off)
KEYS = (remainder, itself, as_bytes)
FRAIL_KEYS = (*KEYS, odd_keys)
STATEFUL = (running, rarely, twice)
FRAIL_STATEFUL = (*STATEFUL, fragile, fragile)


def pipelines() -> st.SearchStrategy[Application]:
    """Applications of up to three sources and three sinks, with merges, messages for every key,
    fan-out and up to two state steps on a way, of which some share a state. They read
    :func:`numbers`; some have functions that fail, and then an error policy for it."""
    return _drawn()


def numbers() -> st.SearchStrategy[bytes]:
    """Messages for :func:`pipelines`."""
    return st.integers(-9, 30).map(lambda n: b"%d" % n)


@st.composite
def _drawn(draw: st.DrawFn) -> Application:
    try:
        return _draw(draw)
    except GraphError as e:
        assert "cycle" in str(e), e
        reject()


def _draw(draw: st.DrawFn) -> Application:
    names = (f"step{n}" for n in range(1000))
    policies: list[Literal["fail", "skip"] | Sink] = ["fail", "skip", sink("dead", text)]
    policy = draw(st.sampled_from(policies))
    kinds: tuple[Any, Any, Any] = (STATELESS, KEYS, STATEFUL)
    if policy != "fail":
        kinds = (FRAIL_STATELESS, FRAIL_KEYS, FRAIL_STATEFUL)
    streams = [source(f"in{n}", number) for n in range(draw(st.integers(1, 3)))]
    used_states: dict[int, set[str]] = {}

    def stateless(stream: Stream) -> Stream:
        for function in draw(st.lists(st.sampled_from(kinds[0]), max_size=2)):
            stream = _onto(stream, stream.to(function, name=next(names)), used_states)
        return stream

    open_streams = list(streams)
    for _ in range(draw(st.integers(1, 6))):
        stream = draw(st.sampled_from(open_streams[-2:]))
        match draw(st.sampled_from(["state", "stateless", "merge", "state", "every key"])):
            case "stateless":
                made = stateless(stream)
            case "state" | "every key" as kind:
                keyed = stream.key_by(draw(st.sampled_from(kinds[1])), name=next(names))
                if kind == "every key":
                    rare = stream.filter(divisible, name=next(names)).every_key(name=next(names))
                    keyed = keyed.merge(rare, name=next(names))
                before = used_states.get(id(stream.node), set())
                functions = [f for f in kinds[2] if f.state.name not in before]
                if not functions:
                    continue
                function = draw(st.sampled_from(functions))
                made = keyed.to(function, name=next(names))
                used_states[id(made.node)] = before | {function.state.name}
            case _:
                other = draw(st.sampled_from(open_streams))
                made = stream.merge(other, name=next(names))
                both = (used_states.get(id(s.node), set()) for s in (stream, other))
                used_states[id(made.node)] = set().union(*both)
        open_streams.append(made)
    ends = [open_streams[-1], *draw(st.lists(st.sampled_from(open_streams), max_size=2))]
    pipelines: list[Pipeline] = [s.to_sink(sink(f"out{n}", text)) for n, s in enumerate(ends)]
    pipelines += [s.done() for s in streams]
    return application("random", *pipelines, on_error=policy)


def _onto(before: Stream, after: Stream, used: dict[int, set[str]]) -> Stream:
    used[id(after.node)] = used.get(id(before.node), set())
    return after
