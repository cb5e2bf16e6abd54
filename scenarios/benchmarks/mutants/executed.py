"""Which statements of a room a scenario runs, without faults and under them, and when.

Every statement of a copied room writes down when it is first run after an edge of a step, so that
nothing is lost with a process that is killed, and no process has to be asked.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec

from bettong.harness.search.turns import Sort
from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.benchmarks.mutants.overlay import build, in_front, modules_of, source_of

FILE = "BETTONG_EXECUTED"
"""Names the file to every process of a run."""
_RECORDS = tuple(f"scenarios/benchmarks/mutants/{name}.py" for name in ("executed", "recording"))
_MARKS = "_bettong_executed"
_HEADER = f"from bettong_executed import marks as _marks; {_MARKS} = _marks({{path!r}}, {{size}})"
_RECORDER = f'''
import os, sys


class Marks:  # may be pickled with a function whose module it is in
    def __init__(self, path, size):
        self.path, self.size, self.known, self.process = path, size, set(), 0

    def __setitem__(self, place, mark):
        steps = sys.modules.get("bettong.engine.steps")
        now = getattr(steps, "current_edge", lambda: None)()
        step = now.event.step if now is not None and now.event is not None else ""
        if self.process != os.getpid():  # the first mark, or a fork
            self.process, self.known = os.getpid(), set()
        if (place, step) not in self.known:
            self.known.add((place, step))
            node = steps.installed().node if hasattr(steps, "installed") else ""
            line = "\\t".join((self.path, str(place + 1), node, step)) + "\\n"
            file = os.open(os.environ["{FILE}"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(file, line.encode())
            finally:
                os.close(file)

    def failing(self, line):
        return Failing(self, line)

    def __reduce__(self):
        return Marks, (self.path, self.size)


class Failing:
    def __init__(self, marks, line):
        self.marks, self.line = marks, line

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        if kind is not None and issubclass(kind, Exception):
            self.marks[-self.line - 1] = 1


marks = Marks
'''

INSTRUMENT = "engine/steps.py"
"""Tells when a statement runs, and is not recorded itself."""

Moment = tuple[str, str]
"""A node, and the step within or after which it is; empty before its first one."""
Lines = Mapping[str, Mapping[int, frozenset[Moment]]]
"""Statements by module and line, with the moments at which each is run; with the sign of
:func:`failure`, those at which it fails."""


@dataclass(frozen=True, slots=True)
class UnderFault:
    """What one fault has led to.

    Attributes:
        sort: of the fault (:func:`bettong.harness.search.turns.sort_of`).
        lines: that are not run without it, by module.
    """

    sort: Sort
    lines: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Executed:
    """The statements that a scenario runs.

    Attributes:
        clean: without faults.
        faults: the single faults that the search puts up after that, by id.
        under_faults: what each of those that were run has led to, by id.
    """

    clean: Lines
    faults: frozenset[str] = frozenset()
    under_faults: Mapping[str, UnderFault] = field(default_factory=dict)

    def runs_clean(self, path: str, line: int) -> bool:
        """Whether a statement is run without faults."""
        return line in self.clean.get(path, {})

    def runs(self, path: str, line: int) -> bool:
        """Whether a statement is run at all."""
        return self.runs_clean(path, line) or bool(self.led_to(path, line))

    def lines_of(self, path: str) -> set[int]:
        """The statements of a module that are run at all."""
        under_faults = (one.lines.get(path, ()) for one in self.under_faults.values())
        return {line for line in {*self.clean.get(path, ())}.union(*under_faults) if line > 0}

    def led_to(self, path: str, line: int) -> dict[str, Sort]:
        """The faults without which a statement is not run, with their sorts."""
        found = self.under_faults.items()
        return {id: one.sort for id, one in found if line in one.lines.get(path, ())}


def failure(line: int) -> int:
    """What stands for the failure of a statement among the lines that are run."""
    return -line


def marked(path: str, source: str) -> str:
    """A module's text in which every statement of a function notes that it begins, and that it
    fails where it is a call on a line of its own."""
    lines = source.splitlines()
    tree = ast.parse(source)
    before: dict[int, str] = {}
    calls: dict[int, str] = {}
    for statement in _statements(tree):
        first = min(
            [statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))]
        )
        text = lines[first - 1]
        indent = text[: len(text) - len(text.lstrip())]
        if len(indent.encode()) != statement.col_offset or text.lstrip().startswith("elif"):
            continue  # behind another statement on its line, or a part of the one before
        before[first] = f"{indent}{_MARKS}[{statement.lineno - 1}] = 1"
        if _is_call(statement) and statement.lineno == statement.end_lineno:
            calls[first] = f"{indent}with {_MARKS}.failing({first}): {text.lstrip()}"
    header = _HEADER.format(path=path, size=max(1, len(lines)))
    before[_first_after_future(tree)] = header
    marked_lines = [
        m
        for n, line in enumerate(lines, 1)
        for m in (before.get(n), calls.get(n, line))
        if m is not None
    ]
    if max(before) > len(lines):
        marked_lines.append(before[max(before)])
    return "\n".join(marked_lines) + "\n"


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if node is function or not isinstance(node, ast.stmt):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring has to stay the first
            if isinstance(node, ast.Global | ast.Nonlocal):
                continue
            yield node


def _first_after_future(tree: ast.Module) -> int:
    """The line of the first statement that may follow something else."""
    last = 0
    for statement in tree.body:
        docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not docstring and not future:
            return statement.lineno
        last = statement.end_lineno or statement.lineno
    return last + 1


class Recorder:
    """A marked copy of a room, and the marks that its processes have left."""

    def __init__(self, folder: Path, room: str) -> None:
        folder.mkdir(parents=True)
        self._marks = folder / "executed"
        paths = [path for path in modules_of(room) if path != INSTRUMENT]
        build(folder, {path: marked(path, source_of(path)) for path in paths})
        (folder / "bettong_executed.py").write_text(_RECORDER)
        self.environment = {"PYTHONPATH": in_front(folder), FILE: str(self._marks)}

    def take(self) -> Lines:
        """The lines that were run since they were last taken."""
        if not self._marks.exists():
            return {}
        with self._marks.open("r+") as marks:
            written = marks.read().splitlines()
            marks.truncate(0)
        found: dict[str, dict[int, set[Moment]]] = {}
        for path, line, node, step in (one.split("\t") for one in written):
            found.setdefault(path, {}).setdefault(int(line), set()).add((node, step))
        return {
            path: {line: frozenset(moments) for line, moments in lines.items()}
            for path, lines in found.items()
        }


def digest() -> str:
    """Of all that a recording depends on: the texts of engine and scenarios, benches left out but
    for what records."""
    found = blake2b(digest_size=8)
    for path in (*modules_of("engine"), *modules_of("scenarios")):
        if not path.startswith("scenarios/benchmarks/") or path in _RECORDS:
            found.update(f"{path}\n{source_of(path)}".encode())
    return found.hexdigest()


def executed(
    scenarios: Sequence[str], cache: Path, runs: int, parallel: int
) -> dict[str, Executed]:
    """What each scenario runs in so many runs of a search within the standard bounds, so many
    scenarios at a time; from the cache where nothing has changed since. Raises WrongResultError
    when a search cannot be made."""
    key = digest()
    cache.mkdir(parents=True, exist_ok=True)
    files = {name: cache / f"{name}-{runs}-{key}.json" for name in scenarios}
    missing = [name for name, file in files.items() if not file.exists()]
    with ThreadPoolExecutor(parallel) as pool:
        for recorded in [pool.submit(_record, name, runs, files[name]) for name in missing]:
            recorded.result()
    return {
        name: msgspec.json.decode(file.read_bytes(), type=Executed) for name, file in files.items()
    }


def _record(scenario: str, runs: int, file: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="bettong-executed-") as folder:
        recorded = subprocess.run(
            [sys.executable, "-m", f"{__package__}.recording", scenario, str(runs), folder],
            env=os.environ.copy(),
            capture_output=True,
            text=True,
            check=False,
        )
    if recorded.returncode:
        raise WrongResultError(f"{scenario} cannot be recorded: {recorded.stderr[-500:]}")
    part = file.with_suffix(".part")
    part.write_text(recorded.stdout)
    part.replace(file)
