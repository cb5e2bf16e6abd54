"""What an interrupted search was asked of, and whether it is the same still."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bettong.harness.scenario import Scenario
from bettong.harness.search.system import system_of
from bettong.lineage.errors import UsageError
from bettong.scenarios.counting import COUNTING

HELPER = "STEP = {}\n"
APPLICATION = "from bettong.scenarios.applications.running_sum import app\n"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scenario:
    """A scenario of a user's, whose gateway imports what lies beside it."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_sum.py").write_text(APPLICATION)
    (tmp_path / "own_gateway.py").write_text("import own_helper\n")
    (tmp_path / "own_helper.py").write_text(HELPER.format(1))
    return replace(COUNTING, application="own_sum:app", classes={"gateway": "own_gateway:Own"})


def test_it_is_the_same_as_long_as_nothing_changes_a_run(written: Scenario) -> None:
    known = system_of(written)
    assert system_of(written) == known
    assert system_of(replace(written, title="another", expect="invalid", advice="none")) == known


def test_it_is_another_one_when_the_scenario_is_defined_otherwise(written: Scenario) -> None:
    others = [
        written,
        replace(written, partitions=1),
        replace(written, classes={}),
        replace(written, outputs="files"),
        replace(written, options={"gateway": ["--segment-bytes", "64"]}),
    ]
    assert len({system_of(scenario) for scenario in others}) == len(others)


@pytest.mark.parametrize("file", ["own_sum.py", "own_gateway.py", "own_helper.py"])
def test_it_is_another_one_when_its_code_is(written: Scenario, tmp_path: Path, file: str) -> None:
    known = system_of(written)
    changed = tmp_path / file
    changed.write_text(changed.read_text() + "# repaired\n")
    assert system_of(written) != known


def test_a_class_that_is_not_there_is_named(written: Scenario) -> None:
    with pytest.raises(UsageError, match="cannot find no_package"):
        system_of(replace(written, classes={"gateway": "no_package.gateways:Own"}))
