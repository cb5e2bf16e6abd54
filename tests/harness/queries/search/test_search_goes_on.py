"""A search that was interrupted goes on with the same code only: with other code it is another
question, and what it had found says nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.harness.queries.request import Request
from bettong.harness.queries.script import Script
from bettong.harness.queries.search.search import forget, log_of, question_of
from bettong.harness.queries.sink import code
from bettong.lineage.errors import UsageError

SINK = "import the_writer_of_goes_on\n\nclass Mine:\n    pass\n"


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    (tmp_path / "the_writer_of_goes_on.py").write_text("def write():\n    return 1\n")
    (tmp_path / "imported_late.py").write_text("LATE = 1\n")
    file = tmp_path / "sink_that_goes_on.py"
    file.write_text(SINK)
    return file


def changes(file: Path) -> None:
    file.write_text(f"{file.read_text()}\n# mended\n")


@pytest.mark.parametrize(
    "name", ["sink_that_goes_on.py", "the_writer_of_goes_on.py", "imported_late.py"]
)
def test_changed_code_is_another_question(sink: Path, name: str) -> None:
    request = Request(f"{sink}:Mine")
    before = question_of(request)
    assert question_of(request) == before
    changes(sink.with_name(name))
    assert question_of(request) != before


def test_what_the_code_reads_beside_it_is_part_of_the_question(
    sink: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its statements, its settings, and what it asks its environment for."""
    request = Request(f"{sink}:Mine")
    (sink.parent / "insert.sql").write_text("INSERT INTO rows VALUES (?)")
    sink.write_text(f"{SINK}\nimport os\nMODE = os.environ.get('MODE_OF_GOES_ON')\n")
    asked = [question_of(request)]
    (sink.parent / "insert.sql").write_text("INSERT INTO rows VALUES (?) ON CONFLICT DO NOTHING")
    asked.append(question_of(request))
    for mode in ("append", "upsert"):
        monkeypatch.setenv("MODE_OF_GOES_ON", mode)
        asked.append(question_of(request))
    monkeypatch.setenv("_".join(("ANOTHER", "THAT", "NOBODY", "NAMES")), "x")
    (sink.parent / "rows.parquet").write_text("what a run leaves")
    assert question_of(request) == asked[-1]
    assert len(set(asked)) == len(asked)


def test_a_package_that_is_installed_anew_is_another_question(
    sink: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Request(f"{sink}:Mine")
    before = question_of(request)
    installed: Callable[[], list[str]] = lambda: ["a.py,sha256=0,1"]  # noqa: E731
    monkeypatch.setattr(code, "_installed", installed)
    assert question_of(request) != before


def test_a_script_with_other_variables_is_another_question(sink: Path) -> None:
    asked = {
        question_of(Request(f"script:{sink}", script=Script(str(sink), {"MODE": mode})))
        for mode in ("append", "update")
    }
    assert len(asked) == 2


def test_what_a_script_imports_and_is_fed_is_part_of_the_question(tmp_path: Path) -> None:
    """Nobody here imports it: its packages are those that it names."""
    main, rows = tmp_path / "main.py", tmp_path / "rows.jsonl"
    main.write_text("from etl_of_goes_on.steps import sink\n")
    rows.write_text('{"id": 1}\n')
    package = tmp_path / "etl_of_goes_on" / "steps"
    package.mkdir(parents=True)
    (package / "sink.py").write_text("MODE = 'append'\n")
    (tmp_path / "another").mkdir()
    request = Request(f"script:{main}", script=Script(str(main), inputs=(f"{rows}@dir:in",)))
    asked = [question_of(request)]
    changes(package / "sink.py")
    asked.append(question_of(request))
    rows.write_text('{"id": 1}\n{"id": 2}\n')
    asked.append(question_of(request))
    (tmp_path / "another" / "other.py").write_text("")
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "sink.py").touch()
    (package / "result.json").touch()
    assert question_of(request) == asked[-1]
    assert len(set(asked)) == len(asked)


def test_a_script_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.py: cannot be read"):
        question_of(Request(f"script:{tmp_path / 'none.py'}"))


def test_what_ships_has_code_too() -> None:
    assert "code " in question_of(Request("format:parquet"))


def test_what_was_found_is_forgotten_and_what_was_asked_otherwise_is_not(tmp_path: Path) -> None:
    request = Request("format:parquet", out=tmp_path)
    of_others = {"search-2.jsonl", "result.json"}
    for name in of_others:
        (tmp_path / name).touch()
    log_of(request, seen=True).touch()  # type: ignore[union-attr]
    log_of(request, seen=False).touch()  # type: ignore[union-attr]
    forget(request)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == of_others | {log_of(request, seen=False).name}  # type: ignore[union-attr]
