"""Sinks of which something is neither in their folder nor behind an endpoint: a lock, and what the
memory of a process keeps."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from users_sinks import LIBRARY, USERS

from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run import one_run
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.harness.queries.run.file_locks import LOCKS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HELD = "pause(driver, from batch=1/sink.file=5.rename until after batch=3/commits)"
THEIRS = """
import fcntl, sqlite3, sys

sys.path.append(FOLDER)
import library_elsewhere

class Started(Mine):
    def write(self, rows, env):
        def each(batch, batch_id):
            self.put(env.workdir, batch_id, "".join(
                json.dumps({"id": row.id, "value": row.value}) + "\\n" for row in batch.collect()))
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return [json.loads(x) for path in env.workdir.glob("rows*") for x in path.open()]

class Locks(Started):
    how = fcntl.LOCK_EX

    def put(self, folder, batch_id, rows):
        with (folder / "lock").open("a") as lock:
            fcntl.flock(lock, self.how)
            path = folder / f"rows-{batch_id}"
            if not path.exists():
                (folder / "aside").write_text(rows)
                (folder / "aside").rename(path)

class LocksOrFails(Locks):
    how = fcntl.LOCK_EX | fcntl.LOCK_NB

class MarksInAnother(Started):
    def put(self, folder, batch_id, rows):
        marks = sqlite3.connect(folder / "marks", isolation_level=None, timeout=600)
        marks.execute("CREATE TABLE IF NOT EXISTS marks (batch INTEGER PRIMARY KEY)")
        marks.execute("BEGIN IMMEDIATE")
        marks.execute("INSERT OR IGNORE INTO marks VALUES (?)", (batch_id,))
        (folder / f"aside-{batch_id}").write_text(rows)
        (folder / f"aside-{batch_id}").rename(folder / f"rows-{batch_id}")
        marks.execute("COMMIT")
        marks.close()

class Remembers(Started):
    def put(self, folder, batch_id, rows):
        library_elsewhere.append_once(folder / "rows", batch_id, rows)
"""


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    library = tmp_path / "elsewhere"
    library.mkdir()
    (library / "library_elsewhere.py").write_text(LIBRARY)
    path = tmp_path / "sinks" / "theirs.py"
    path.parent.mkdir()
    path.write_text(f"{USERS}\nFOLDER = {str(library)!r}\n{THEIRS}")
    return str(path)


@pytest.mark.parametrize("name", ["Locks", "LocksOrFails"])
def test_a_driver_that_does_not_get_a_lock_on_a_file_is_no_end(
    environments: SparkEnvironments, theirs: str, name: str
) -> None:
    result = check_one(Request(f"{theirs}:{name}", only=(HELD,)), environments)
    assert (result.verdict, result.reason) == (
        "valid",
        f"{name} is effectively-once as far as this one fault set shows",
    )
    assert "the one that took over waited for it" in result.runs[0].evidence[HELD]


@pytest.mark.skipif(not LOCKS.exists(), reason="only Linux tells of locks")
@pytest.mark.parametrize("name", ["Locks", "MarksInAnother"])
def test_who_is_known_to_wait_for_a_lock_need_not_be_silent_for_long(
    environments: SparkEnvironments,
    theirs: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(one_run, "_LOCKED_S", math.inf)
    result = check_one(Request(f"{theirs}:{name}", only=(HELD,)), environments)
    assert result.verdict == "valid", result.reason
    assert "the one that took over waited for it" in result.runs[0].evidence[HELD]


def test_what_a_module_elsewhere_remembers_dies_with_the_driver(
    environments: SparkEnvironments, theirs: str
) -> None:
    crash = "crash(driver, before batch=1/commits)"
    result = check_one(Request(f"{theirs}:Remembers", only=(crash,)), environments)
    assert (result.verdict, result.guarantee) == ("invalid", "at-least-once")
    assert result.counterexamples[0].faults == (crash,)
