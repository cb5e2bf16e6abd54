"""``bettong demo``: what a newcomer sees first comes out of real runs."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from bettong.harness.cli.demo_command import command
from bettong.lineage.results import Result


def test_a_newcomer_sees_counts_the_fault_and_what_it_does(tmp_path: Path) -> None:
    done = CliRunner().invoke(command, ["--runner", "in-process", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    right, search, broken = (
        Result.read(tmp_path / name / "result.json") for name in ("right", "search", "broken")
    )
    assert (right.verdict, search.verdict, broken.verdict) == ("valid", "invalid", "invalid")
    (fault,) = search.counterexamples[0].faults
    assert broken.counterexamples[0].faults == (fault,) and f"     {fault}\n" in done.output
    assert "     the 29   and 12   it 10" in done.output
    rows = re.findall(r"     Duplicate: (lines/\S+) “(\w+ \d+)”, 2 times", done.output)
    assert [(id,) for id, _ in rows] == [a.messages for a in broken.anomalies[:3]]
    page = re.search(r"Open this page: (\S+)", done.output)
    assert page is not None and Path(page[1]).is_file()
