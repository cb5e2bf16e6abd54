"""Counterexample files of check-sink and check-job: the target, the faults, and what it takes to
run them again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from bettong.harness.queries.request import Request
from bettong.harness.queries.script import Script
from bettong.lineage.errors import UsageError
from bettong.lineage.files import read_json
from bettong.lineage.nearest import one_of
from bettong.lineage.seals import check, unseal, write_sealed
from bettong.lineage.secrets import MASK, is_secret, masked

KINDS: Mapping[str, Literal["sink", "job"]] = {
    "bettong-sink-counterexample": "sink",
    "bettong-job-counterexample": "job",
}
_FIELDS = {"target": str, "options": dict, "endpoints": dict, "faults": list}
_MORE = ("kind", "version", "expect", "script")


def is_one(path: Path) -> bool:
    """Whether a file is a counterexample of check-sink or check-job; False, too, when it cannot
    be read."""
    try:
        value = read_json(path, "the counterexample")
    except UsageError:
        return False
    return isinstance(value, dict) and value.get("kind") in KINDS


def clear(folder: Path) -> None:
    """Remove the files that an earlier question has left."""
    for path in folder.glob("counterexample-*.json"):
        unseal(path)
        path.unlink()


def write(request: Request, faults: Sequence[str], folder: Path) -> Path:
    """Write the next file of a folder; values that look like secrets are masked."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1 + sum(1 for _ in folder.glob("counterexample-*.json"))
    path = folder / f"counterexample-{number}.json"
    value: dict[str, Any] = {
        "kind": f"bettong-{request.contract}-counterexample",
        "version": 1,
        "target": request.target,
        "options": _masked(request.options),
        "endpoints": _masked(request.endpoints),
        "expect": request.expect,
        "faults": list(faults),
    }
    if request.script is not None:
        variables = _masked(request.script.variables)
        arguments = _masked_words(request.script.arguments)
        value["script"] = {
            **asdict(request.script),
            "variables": variables,
            "arguments": arguments,
            "starter": _masked_starter(request.script.starter),
        }
    write_sealed(path, json.dumps(value, indent=1) + "\n")
    return path


def read(path: Path, options: Mapping[str, str], endpoints: Mapping[str, str]) -> Request:
    """The question whether the file's faults still do what they did.

    ``options`` and ``endpoints`` override the file's. Raises UsageError, naming the file.
    """
    value: dict[str, Any] = read_json(path, "the counterexample")
    if not isinstance(value, dict) or value.get("kind") not in KINDS:
        raise UsageError(f"{path} is not a counterexample of Bettong")
    if value.get("version") != 1:
        raise UsageError(f"{path} is of version {value.get('version')!r}; this Bettong reads 1")
    for name in value:
        one_of(name, [*_FIELDS, *_MORE], f"{path}: the part")
    for name, kind in _FIELDS.items():
        if not isinstance(value.get(name), kind):
            raise UsageError(f"{path}: {name} is missing or of the wrong kind")
    given = {**value["options"], **options}, {**value["endpoints"], **endpoints}
    for name, text in [*given[0].items(), *given[1].items()]:
        if MASK in str(text):
            raise UsageError(f"{path}: {name} is masked in the file: give --option {name}=VALUE")
    request = Request(value["target"], given[0], given[1], only=tuple(value["faults"]))
    expect = value.get("expect", request.expect)
    script = value.get("script")
    if script is not None:
        try:
            words = {name: tuple(script.get(name, ())) for name in ("inputs", "arguments")}
            script = Script(**{**script, **words})
        except (KeyError, TypeError) as e:
            raise UsageError(f"{path}: script is of the wrong kind: {e}") from e
    check(path)
    return replace(request, expect=expect, contract=KINDS[value["kind"]], script=script)


def command(request: Request, faults: Sequence[str]) -> str:
    """The command that runs just these faults again; a file of them is written when there is a
    folder for it."""
    if request.out is not None:
        file = request.replayed or write(request, faults, request.out)
        return shlex.join(["bettong", "replay", str(file)])
    words = ["bettong", f"check-{request.contract}", *_target(request)]
    for option, pairs in (("--option", request.options), ("--endpoint", request.endpoints)):
        for name, value in _masked(pairs).items():
            words += [option, f"{name}={value}"]
    for id in faults:
        words += ["--only", id]
    return shlex.join(words)


def _target(request: Request) -> list[str]:
    """The words that say what is judged."""
    script = request.script
    if script is None:
        return [request.target]
    words = ["--script", script.path, "--read", script.reader]
    for name, value in _masked(script.variables).items():
        words += ["--set", f"{name}={value}"]
    if script.arguments:
        words += ["--args", shlex.join(_masked_words(script.arguments))]
    for given in script.inputs:
        words += ["--input", given]
    return [*words, "--with", _masked_starter(script.starter), "--steps", str(script.steps)]


def _masked_starter(starter: str) -> str:
    return shlex.join(_masked_words(shlex.split(starter)))


def _masked(pairs: Mapping[str, str]) -> dict[str, str]:
    return {name: masked(f"{name}={value}").partition("=")[2] for name, value in pairs.items()}


def _masked_words(words: Sequence[str]) -> list[str]:
    """Those of a command line: ``--password=…`` and ``--password …`` are the same."""
    found = []
    for before, word in pairwise(("", *words)):
        name, given, _ = word.partition("=")
        if before.startswith("-") and is_secret(before, "x"):
            found.append(MASK)
        else:
            found.append(f"{name}={MASK}" if given and is_secret(name, "x") else masked(word))
    return found
