"""Sinks whose functions give what they do to threads: a crash falls between any two of them, in
either order."""

from __future__ import annotations

from pathlib import Path

import pytest
from users_sinks import written_to

from bettong.harness.queries.check import check_one
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.lineage.results import Result

pytestmark = pytest.mark.spark

THEIRS = """
import os
from concurrent.futures import ThreadPoolExecutor

class AtOnce(Mine):
    # The rows and the marker that says so are written side by side.
    def put(self, pool, rows, mark):
        for one in [pool.submit(self.to, *rows), pool.submit(self.to, *mark)]:
            one.result()

    def to(self, path, text):
        new = path.with_name(f"new-{path.name}")
        new.write_text(text)
        os.replace(new, path)

    def write(self, rows, env):
        def each(batch, batch_id):
            mark, out = env.workdir / f"done-{batch_id}", env.workdir / f"rows-{batch_id}"
            if not mark.exists():
                text = "".join(json.dumps({"id": row.id}) + "\\n" for row in batch.collect())
                with ThreadPoolExecutor(2) as pool:
                    self.put(pool, (out, text), (mark, ""))
        return rows.writeStream.foreachBatch(each).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return [json.loads(line) for file in env.workdir.glob("rows-*") for line in file.open()]

class MarkerFirst(AtOnce):
    def put(self, pool, rows, mark):
        super().put(pool, mark, rows)

class RowsFirst(AtOnce):
    def put(self, pool, rows, mark):
        pool.submit(self.to, *rows).result()
        pool.submit(self.to, *mark).result()
"""
AS_GIVEN, LAST_FIRST = 2, 1


def crashed_between(environments: SparkEnvironments, folder: Path, name: str, batch: int) -> Result:
    """A crash right before the second of two renames."""
    fault = f"crash(driver, before batch={batch}/sink.file=5.rename)"
    target = f"{written_to(folder, THEIRS)}:{name}"
    return check_one(Request(target, only=(fault,)), environments)


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("AtOnce", LAST_FIRST),
        pytest.param("MarkerFirst", AS_GIVEN, marks=pytest.mark.slow),
    ],
)
def test_a_crash_between_two_threads_shows_the_one_that_must_not_be_first(
    environments: SparkEnvironments, tmp_path: Path, name: str, batch: int
) -> None:
    result = crashed_between(environments, tmp_path, name, batch)
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once"), result.reason
    assert {a.kind for a in result.anomalies} == {"Loss"}


@pytest.mark.slow
@pytest.mark.parametrize("batch", [AS_GIVEN, LAST_FIRST])
def test_who_waits_for_the_first_before_the_second_is_right_in_either_order(
    environments: SparkEnvironments, tmp_path: Path, batch: int
) -> None:
    result = crashed_between(environments, tmp_path, "RowsFirst", batch)
    assert (result.verdict, result.guarantee) == ("valid", "effectively-once"), result.reason
    assert "concurrent" not in result.details
    assert any("went on one piece at a time" in taken for taken in result.assumptions)
