"""Which statements of a room a scenario runs, without faults and under them.

Every statement of a copied room sets a byte of a shared file as it begins, so that nothing is lost
with a process that is killed, and no process has to be asked.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec

from bettong.scenarios.benchmarks.errors import WrongResultError
from bettong.scenarios.benchmarks.mutants.overlay import build, in_front, modules_of, source_of

FOLDER = "BETTONG_EXECUTED"
"""Names the folder of the shared files to every process of a run."""
_MARKS = "_bettong_executed"
_HEADER = f"from bettong_executed import marks as _marks; {_MARKS} = _marks({{path!r}}, {{size}})"
_RECORDER = f'''
import mmap, os


class Marks:  # may be pickled with a function whose module it is in
    def __init__(self, path, size):
        self.reported = path, size
        file = os.path.join(os.environ["{FOLDER}"], path.replace("/", "%"))
        fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            os.ftruncate(fd, size)
            self.bytes = mmap.mmap(fd, size)
        finally:
            os.close(fd)

    def __setitem__(self, place, mark):
        self.bytes[place] = mark

    def __reduce__(self):
        return Marks, self.reported


marks = Marks
'''


@dataclass(frozen=True, slots=True)
class Executed:
    """Lines of statements that a scenario runs, by module.

    Attributes:
        clean: without faults.
        under_faults: in runs with faults.
    """

    clean: Mapping[str, frozenset[int]]
    under_faults: Mapping[str, frozenset[int]]

    def runs(self, path: str, line: int) -> bool:
        """Whether a statement is run at all."""
        return any(line in lines.get(path, ()) for lines in (self.clean, self.under_faults))


def marked(path: str, source: str) -> str:
    """A module's text in which every statement of a function notes that it begins."""
    lines = source.splitlines()
    tree = ast.parse(source)
    before: dict[int, str] = {}
    for statement in _statements(tree):
        first = min(
            [statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))]
        )
        text = lines[first - 1]
        indent = text[: len(text) - len(text.lstrip())]
        if len(indent.encode()) != statement.col_offset or text.lstrip().startswith("elif"):
            continue  # behind another statement on its line, or a part of the one before
        before[first] = f"{indent}{_MARKS}[{statement.lineno - 1}] = 1"
    header = _HEADER.format(path=path, size=max(1, len(lines)))
    before[_first_after_future(tree)] = header
    marked_lines = [
        m for n, line in enumerate(lines, 1) for m in (before.get(n), line) if m is not None
    ]
    if max(before) > len(lines):
        marked_lines.append(before[max(before)])
    return "\n".join(marked_lines) + "\n"


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
        self._marks = folder / "executed"
        self._marks.mkdir(parents=True)
        paths = modules_of(room)
        build(folder, {path: marked(path, source_of(path)) for path in paths})
        (folder / "bettong_executed.py").write_text(_RECORDER)
        self.environment = {"PYTHONPATH": in_front(folder), FOLDER: str(self._marks)}

    def take(self) -> dict[str, frozenset[int]]:
        """The lines that were run since they were last taken."""
        found = {}
        for file in self._marks.iterdir():
            with file.open("r+b") as marks:
                content = marks.read()
                marks.seek(0)
                marks.write(bytes(len(content)))
            if any(content):
                path = file.name.replace("%", "/")
                found[path] = frozenset(n for n, mark in enumerate(content, 1) if mark)
        return found


def digest() -> str:
    """Of all that a recording depends on: the texts of engine and scenarios, benches left out."""
    found = blake2b(digest_size=8)
    for path in (*modules_of("engine"), *modules_of("scenarios")):
        if not path.startswith("scenarios/benchmarks/"):
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
