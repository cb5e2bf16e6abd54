"""Program files and what they include."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bettong.lineage.dedalus.errors import DedalusError
from bettong.lineage.dedalus.parser import parse
from bettong.lineage.dedalus.syntax import Fact, Include, Position, Rule
from bettong.lineage.errors import UsageError, reason_of

MAX_BYTES = 1_000_000
MAX_FILES = 200


@dataclass(frozen=True, slots=True)
class Program:
    """All rules and facts of some files and their includes.

    Attributes:
        rules: in the order read.
        facts: in the order read.
        included: files that only an ``include`` brought in, as they are named in positions.
        files: all of them.
    """

    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...]
    included: frozenset[str] = frozenset()
    files: tuple[Path, ...] = ()


def load(files: Sequence[Path | str]) -> Program:
    """Read program files with their includes, each file once.

    An include is looked for beside the file that names it, then (as Molly does) beside the first
    program file. Raises UsageError for a file that cannot be read and DedalusError for what is
    in it.
    """
    if not files:
        raise UsageError("no Dedalus file was given")
    return _Loader(Path(files[0]).parent).load([Path(f) for f in files])


def load_text(text: str, file: str = "program.ded") -> Program:
    """The program of one text without includes; raises DedalusError."""
    clauses = parse(text, file)
    for clause in clauses:
        if isinstance(clause, Include):
            raise DedalusError(clause.position, "a program given as text includes no files")
    return Program(
        tuple(c for c in clauses if isinstance(c, Rule)),
        tuple(c for c in clauses if isinstance(c, Fact)),
    )


class _Loader:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._rules: list[Rule] = []
        self._facts: list[Fact] = []
        self._seen: set[Path] = set()
        self._mains: set[Path] = set()
        self._included: set[str] = set()
        self._bytes = 0

    def load(self, files: list[Path]) -> Program:
        for file in files:
            if not file.is_file():
                raise UsageError(f"{file}: no such Dedalus file")
            self._mains.add(file.resolve())
        for file in files:
            # Includes wait in a list, not on the stack: a long chain of them is no deep recursion.
            waiting = self._read(file, None)
            while waiting:
                waiting += self._read(*waiting.pop(0))
        return Program(
            tuple(self._rules), tuple(self._facts), frozenset(self._included), tuple(self._seen)
        )

    def _read(self, file: Path, cause: Position | None) -> list[tuple[Path, Position]]:
        identity = file.resolve()
        if identity in self._seen:
            return []
        self._seen.add(identity)
        if identity not in self._mains:
            self._included.add(str(file))
        if len(self._seen) > MAX_FILES:
            raise UsageError(f"{file}: more than {MAX_FILES} program files")
        try:
            with file.open("rb") as program:
                content = program.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise UsageError(f"{file}: a program of more than {MAX_BYTES:,} bytes")
            text = content.decode("utf-8")
        except (OSError, ValueError) as e:
            where = f"{cause}: " if cause else ""
            raise UsageError(f"{where}cannot read the Dedalus file {file}: {reason_of(e)}") from e
        self._bytes += len(text)
        if self._bytes > MAX_BYTES:
            raise UsageError(f"{file}: with its includes the program exceeds {MAX_BYTES:,} bytes")
        includes = []
        for clause in parse(text, str(file)):
            if isinstance(clause, Rule):
                self._rules.append(clause)
            elif isinstance(clause, Fact):
                self._facts.append(clause)
            else:
                includes.append((self._find(clause, file), clause.position))
        return includes

    def _find(self, include: Include, file: Path) -> Path:
        if "\0" not in include.path:
            for folder in (file.parent, self._root):
                path = folder / include.path
                if path.is_file():
                    return path
        raise DedalusError(
            include.position,
            f"cannot include '{include.path}': there is no such file beside {file}",
        )
