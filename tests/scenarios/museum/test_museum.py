"""The museum: each exhibit is what the list says of it, and the docs say what the list says."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from bettong.harness.cli import cli, museum_command
from bettong.harness.queries.job.loading import load_job
from bettong.scenarios.museum import EXHIBITS, Exhibit

PAGE = Path(__file__).parents[3] / "docs" / "museum.md"
WITH_A_JOB = [exhibit for exhibit in EXHIBITS if exhibit.target]


def test_every_exhibit_has_a_job_or_says_why_not() -> None:
    assert len({exhibit.id for exhibit in EXHIBITS}) == len(EXHIBITS) >= 40
    assert len(WITH_A_JOB) >= 25
    for exhibit in EXHIBITS:
        assert exhibit.note
        if exhibit.target:
            assert load_job(exhibit.target).name


def test_the_page_says_of_each_what_the_list_says() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    assert rows[1:] == [
        f"| {x.id} | {x.title} | {x.tried} | {x.note} | {shown(x)} |" for x in EXHIBITS
    ]


def shown(exhibit: Exhibit) -> str:
    """The job that an exhibit is tried with, as the page has it."""
    return f"`{exhibit.target.rpartition('.')[2]}`" if exhibit.target else ""


@pytest.mark.parametrize(
    ("id", "verdict", "reason", "code"),
    [
        ("Paimon-9666", "invalid", "1 minimal fault set lowers it", 0),
        ("Paimon-9666", "unknown", "good under every fault set; the budget ended", 1),
        ("Paimon-9666", "valid", "effectively-once", 1),
        ("SPARK-26154", "valid", "effectively-once", 0),
        ("SPARK-26154", "unknown", "good under every fault set; the budget ended", 1),
        ("SPARK-26154", "invalid", "1 minimal fault set lowers it", 1),
    ],
)
def test_an_answer_is_held_against_the_list(
    monkeypatch: pytest.MonkeyPatch, id: str, verdict: str, reason: str, code: int
) -> None:
    result = SimpleNamespace(verdict=verdict, reason=reason, details={}, counterexamples=())
    monkeypatch.setattr(museum_command, "check_one_job", lambda *asked: result)
    assert CliRunner().invoke(cli, ["museum", id, "--quiet"]).exit_code == code


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("exhibit", WITH_A_JOB, ids=lambda exhibit: exhibit.id)
def test_it_is_seen_again(exhibit: Exhibit, tmp_path: Path) -> None:
    words = ["museum", exhibit.id, "--out", str(tmp_path / "out"), "--quiet", "--budget", "15m"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
