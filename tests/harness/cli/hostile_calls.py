"""Wrong calls of every command, drawn from what the commands themselves say that they take."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from bettong.harness.cli import COMMANDS, cli

CHEAP = {
    "check": ["e.jsonl", "o.jsonl"],
    "protocol": ["simple", "--eot", "3", "--eff", "1"],
    "report": ["result"],
    "why": ["result", "lines/1"],
    "state": ["checkpoint"],
    "top": ["metrics", "--once"],
    "bench": ["nobody-knows-it"],
    "run": ["nobody-knows-it"],
    "check-sink": ["missing.py:Sink"],
    "check-job": ["missing.py:Job"],
    "start": ["missing:app", "--checkpoint", "new"],
    "replay": ["missing.json"],
    "list": [],
    "doctor": [],
    "museum": ["nobody-knows-it"],
    "demo": ["--runner", "in-process", "--out", "file/below"],
}
"""Calls that are wrong in themselves, or quick: what is drawn comes on top of them."""
_NOWHERE = ("file/below", "/dev/full", "/dev/null", "file", "loop", "x" * 300, "deep.json")
"""Where no folder can be made: a demo that has one goes through."""
_NEVER = {"--once", "--spark", "--master", "--full"}  # no end, or a JVM for each call
_TEXTS = (
    "", " ", "nonsense", "a=b", "=", "x=1.2.3.4:99999", "x=host:port", "::error::x", "(", "[",
    "[/b]", "{}", "%s", "a,,b", ",", "../..", "/", "\x1b[2J", "a\nb", "\u202e", "\ud800", "é" * 400,
    "0", "-1", "none", "None", "random:0", "random:x", "ldfi", "each-step", "O(a,b,1)", "s3:/x",
    "1/0", "2/1",
)  # fmt: skip
_NUMBERS = (
    "-1",
    "0",
    "",
    "x",
    "1e3",
    "1" + "0" * 23,
    "nan",
    "inf",
    "-inf",
    "0x10",
    "1_0",
    "٣",
    "1.5",
)
_PATHS = (
    "missing", "file/below", "folder", "/dev/full", "/dev/null", "empty", "junk.json", "junk.jsonl",
    "junk.parquet", "junk.arrow", "deep.json", "deep.jsonl", "loop", "x" * 300, "",
    "surrogate\udcff", "line\nend", "unending.jsonl", "result/result.json", "e.jsonl", ".",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One call, with what it has to begin with."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return ascii(" ".join(self.words))[:300]


def prepare(folder: Path) -> None:
    """The files that calls speak of."""
    draw = random.Random(1)
    (folder / "folder").mkdir()
    (folder / "result").mkdir()
    (folder / "file").write_text("a file")
    (folder / "empty").write_text("")
    for name in ("junk.json", "junk.jsonl", "junk.parquet", "junk.arrow", "metrics"):
        (folder / name).write_bytes(draw.randbytes(500))
    (folder / "deep.json").write_text("[" * 50_000)
    (folder / "deep.jsonl").write_text('{"id": ' + "[" * 50_000 + "]" * 50_000 + "}\n")
    (folder / "loop").symlink_to("loop")
    (folder / "unending.jsonl").symlink_to("/dev/full")
    (folder / "e.jsonl").write_text(
        '{"id": 1, "key": "a", "v": 1}\n{"id": 2, "key": "a", "v": 2}\n'
    )
    (folder / "o.jsonl").write_text(
        '{"id": 1, "key": "a", "v": 1}\n{"id": 2, "key": "a", "v": 3}\n'
    )
    (folder / "result" / "result.json").write_text(json.dumps({"schema_version": 1}))


def calls(count: int, seed: int) -> Iterator[Call]:
    """So many calls: each wrong value of each option once, in an order drawn by the seed, then
    several options together."""
    draw = random.Random(seed)
    singles = [
        Call((name, *CHEAP[name], *words)) for name in CHEAP for words in _wrong(command(name))
    ]
    singles += [Call(words) for words in _wrong_arguments()]
    draw.shuffle(singles)
    yield from singles[:count]
    for _ in range(count - len(singles)):
        name = draw.choice(list(CHEAP))
        known = _wrong(command(name)) or [()]
        words = [word for _ in range(draw.randint(2, 4)) for word in draw.choice(known)]
        yield Call((name, *CHEAP[name], *words))


def command(name: str) -> click.Command:
    """The command of that name."""
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def _wrong(of: click.Command) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = [("--no-such-option",), ("one", "more"), ("--json", "--json")]
    for parameter in of.params:
        if not isinstance(parameter, click.Option) or parameter.opts[-1] in _NEVER:
            continue
        option = parameter.opts[-1]
        if parameter.is_flag:
            found += [(option,), (f"{option}=x",)]
        else:
            taken = _NOWHERE if (of.name, option) == ("demo", "--out") else values(parameter.type)
            found += [(option, value) for value in taken] + [(option,)]
    return found


def values(kind: click.ParamType) -> Sequence[str]:
    """Values that are wrong, or at the edge, for a parameter of that type."""
    if isinstance(kind, click.Path):
        return _PATHS
    if isinstance(kind, click.Choice):
        return ("", "nonsense", "\ud800", str(kind.choices[0]).upper())
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return _NUMBERS
    return (*_TEXTS, *_PATHS[:8])


def _wrong_arguments() -> Iterator[tuple[str, ...]]:
    """Other things in place of the arguments; the first of COMMANDS' names misspelt, too."""
    yield from ((name[:-1],) for name in COMMANDS)
    for name, base in CHEAP.items():
        for value in dict.fromkeys((*_PATHS, *_TEXTS)):
            if base and name != "demo" and (name, value) != ("bench", "ldfi"):
                yield (name, value, *base[1:])
