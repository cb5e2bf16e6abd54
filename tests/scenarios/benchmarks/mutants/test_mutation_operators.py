"""Mistakes put into a module's text."""

from __future__ import annotations

import textwrap

import pytest

from bettong.scenarios.benchmarks.mutants.operators import mutants_of
from bettong.scenarios.benchmarks.mutants.overlay import modules_of, source_of

SOURCE = textwrap.dedent(
    '''
    class Log:
        """A log."""

        def append(self, record: bytes) -> None:
            """Append; durable on return."""
            if record in self._seen:
                return
            self._file.write(record)
            self._file.sync()
            self._size += len(record)

        def is_full(self) -> bool:
            return self._size >= self._most - 1

        def ask(self, number: int) -> None:
            while True:
                try:
                    return self._send(number)
                except OSError:
                    self._again()
    '''
)


def texts(operator: str) -> list[str]:
    return [
        " ".join(m.applied(SOURCE).split())
        for m in mutants_of("engine/log.py", SOURCE)
        if m.operator == operator
    ]


@pytest.mark.parametrize(
    ("operator", "part"),
    [
        ("delete sync", "self._file.write(record) pass self._size"),
        ("delete write", "return pass self._file.sync()"),
        ("forget to set", "self._file.sync() pass"),
        ("swap neighbours", "self._file.sync() self._file.write(record)"),
        ("swap neighbours", "self._size += len(record) self._file.sync()"),
        ("negate condition", "if not (record in self._seen):"),
        ("drop the guard", "if False: return"),
        ("off by one", "self._size > self._most - 1"),
        ("off by one", "self._size >= self._most def"),
        ("negate answer", "return not (self._size >= self._most - 1)"),
        ("return early", "self._file.write(record) return self._file.sync()"),
        ("swallow exception", "suppress(Exception): self._file.sync()"),
        ("new id on retry", "except OSError: number += 1 self._again()"),
    ],
)
def test_each_operator_makes_its_mistake(operator: str, part: str) -> None:
    assert any(part in text for text in texts(operator)), texts(operator)


def test_a_function_that_gives_something_back_does_not_return_early() -> None:
    assert all("is_full" not in m.id for m in mutants_of("x.py", SOURCE) if "early" in m.operator)


def test_flags_of_threads_and_prints_are_left_alone() -> None:
    source = "def f() -> None:\n    g(daemon=True, exist_ok=True)\n    print(1, flush=True)\n"
    (flipped,) = [m for m in mutants_of("x.py", source) if m.operator == "flip flag"]
    assert "exist_ok=False" in flipped.applied(source)


def test_settings_that_do_not_touch_each_other_are_not_swapped() -> None:
    source = textwrap.dedent(
        """
        def f(self: Log) -> None:
            self.a = 1
            self.b = 2
            self.c = self.b
            self.d = self.g()
        """
    )
    swapped = [m.id for m in mutants_of("x.py", source) if m.operator == "swap neighbours"]
    assert [id.partition(": ")[2].partition(" -> ")[0] for id in swapped] == [
        "self.b = 2 self.c = self.b",
        "self.c = self.b self.d = self.g()",
    ]


@pytest.mark.parametrize("path", ["engine/storage/log.py", "engine/ingest/sender.py"])
def test_every_mutant_compiles_differs_and_has_a_name_of_its_own(path: str) -> None:
    source = source_of(path)
    mutants = mutants_of(path, source)
    assert len({m.id for m in mutants}) == len(mutants) > 50
    for mutant in mutants:
        changed = mutant.applied(source)
        assert changed != source
        compile(changed, path, "exec")


def test_a_name_does_not_depend_on_lines_before() -> None:
    names = [m.id for m in mutants_of("x.py", SOURCE)]
    assert [m.id for m in mutants_of("x.py", f"import os\n\n{SOURCE}")] == names


def test_places_are_right_where_letters_are_longer_than_a_byte() -> None:
    source = 'def f(log: object) -> None:\n    log.say("né é")\n    log.sync()\n'
    (found,) = [m for m in mutants_of("x.py", source) if m.operator == "delete sync"]
    assert found.applied(source).endswith('log.say("né é")\n    pass\n')


def test_the_engine_has_mutants_of_every_operator() -> None:
    found = {m.kind for path in modules_of("engine") for m in mutants_of(path, source_of(path))}
    assert {"delete durable call", "new id on retry", "drop the guard", "flip flag"} <= found
