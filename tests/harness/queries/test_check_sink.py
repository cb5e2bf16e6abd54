"""check-sink on real Spark: it says no to what is broken, yes to what is right, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chosen_faults import seen
from users_sinks import USERS, written_to

from bettong.harness.queries.check import check_one
from bettong.harness.queries.faults.kinds import parse_fault
from bettong.harness.queries.judge import judge_run
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.endpoints import EndpointProxies
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.runner import SinkRunner
from bettong.harness.queries.sink.rows import Input
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result
from bettong.lineage.search.loop import Budget

pytestmark = pytest.mark.spark

FILES = "bettong.scenarios.sinks.files"
SOURCE = Input()


def check(environments: SparkEnvironments, target: str, **asked: object) -> Result:
    asked.setdefault("faults", 1)
    request = Request(target, budget=Budget(seconds=600), **asked)  # type: ignore[arg-type]
    result = check_one(request, environments, print)
    assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    return result


@pytest.mark.parametrize(
    ("first", "batch", "level"),
    [(True, 1, "at-least-once"), pytest.param(False, 0, "none", marks=pytest.mark.slow)],
)
def test_a_plain_append_duplicates_and_the_replay_shows_it_again(
    environments: SparkEnvironments, first: bool, batch: int, level: str
) -> None:
    """Seen whole it does more: a line of which half is written makes the file unreadable."""
    target = f"{FILES}:JsonAppend"
    result = check(environments, target, first=first)
    assert (result.verdict, result.guarantee) == ("invalid", level)
    assert result.coverage.not_injected == 0
    found = result.counterexamples[0]
    assert found.faults == (f"crash(driver, before batch={batch}/commits)",)
    assert {a.kind for a in found.anomalies} == {"Duplicate"}
    assert f"m/{20 * batch:06} … m/{20 * batch + 19:06} are there twice" in found.words
    again = check(environments, target, only=found.faults)
    assert again.counterexamples[0].anomalies == found.anomalies
    assert again.coverage.executions == 1


def test_a_fault_that_never_fires_proves_nothing_and_is_named(
    environments: SparkEnvironments,
) -> None:
    never = "crash(driver, before batch=9/commits)"
    result = check(environments, f"{FILES}:SqliteOneTransaction", only=(never,))
    assert result.verdict == "unknown"
    assert f"the first one {never}: {never} did not fire" in result.reason


@pytest.mark.slow
def test_rows_and_batch_in_one_transaction_hold(environments: SparkEnvironments) -> None:
    result = check(environments, f"{FILES}:SqliteOneTransaction")
    assert (result.verdict, result.guarantee) == ("valid", "effectively-once")
    assert result.coverage.complete
    assert result.coverage.not_injected == 0
    assert result.counterexamples == ()


@pytest.mark.slow
def test_the_marker_before_the_rows_loses_them(environments: SparkEnvironments) -> None:
    result = check(environments, f"{FILES}:SqliteMarkerThenRows")
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once")
    (fault,) = result.counterexamples[0].faults
    assert fault in (
        "crash(driver, before batch=0/sink.file=2.commit)",
        "crash(driver, before batch=0/sink.file=3.begin)",
    )


@pytest.mark.parametrize(
    "faults",
    [
        *(
            pytest.param((fault,), marks=pytest.mark.slow)
            for fault in (
                "crash(driver, before batch=1/commits)",
                "crash(driver, after batch=1/commits)",
                "crash(driver, before batch=1/sink.file=2.commit)",
            )
        ),
        pytest.param(
            ("crash(driver, before batch=1/commits)", "crash(driver, before batch=1/commits#2)"),
            marks=pytest.mark.slow,
        ),
        ("crash(driver, before batch=1/p=0/a=0/source.middle)",),
    ],
)
@pytest.mark.parametrize(
    "name",
    [
        "SqliteMarkerThenRows",
        pytest.param("SqliteInsert", marks=pytest.mark.slow),
        pytest.param("SqliteRowsThenMarker", marks=pytest.mark.slow),
    ],
)
def test_kept_crashes_show_what_kills_show(
    environments: SparkEnvironments, name: str, faults: tuple[str, ...]
) -> None:
    if name == "SqliteInsert" and "sink.file=2" in faults[0]:
        pytest.skip("it commits once a batch")
    with EndpointProxies({}) as endpoint_proxies:
        runner = SinkRunner(environments({}), Target(f"{FILES}:{name}"), SOURCE, endpoint_proxies)
        chosen = [parse_fault(id) for id in faults]
        kept, killed = (runner.run(chosen, real=real) for real in (False, True))
    assert not kept.not_fired and not killed.not_fired
    judged = [judge_run(run, SOURCE, ordered=False) for run in (kept, killed)]
    assert judged[0] == judged[1]


@pytest.mark.parametrize(
    ("name", "fault", "kinds"),
    [
        ("WritesInPlace", "crash(driver, before batch=1/sink.file=3.write)", {"Loss"}),
        pytest.param(
            "MarksBeforeArrow",
            "crash(driver, before batch=1/sink.file=1.change)",
            {"Loss"},
            marks=pytest.mark.slow,
        ),
        ("NamedByDay", "crash-and-later(driver, before batch=1/commits)", {"Duplicate"}),
        pytest.param(
            "MergesThirds",
            "crash(driver, before batch=2/sink.file=9.remove)",
            {"Loss"},
            marks=pytest.mark.slow,
        ),
        (
            "AsksOutside",
            "pause(driver, from batch=1/sink.file=1.begin until after batch=3/commits)",
            {"Duplicate"},
        ),
        (
            "StagesByPartition",
            "pause(driver, from batch=1/p=0/a=0/sink.file=1.begin until batch=1/sink.file=3.begin)",
            {"Duplicate"},
        ),
        pytest.param(
            "OneNameAside",
            "pause(driver, from batch=1/sink.file=3.rename until batch=2/sink.file=3.rename)",
            {"Loss", "Duplicate"},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_a_sinks_own_code_does_with_files_is_hit_on_the_way(
    environments: SparkEnvironments, name: str, fault: str, kinds: set[str]
) -> None:
    assert seen(environments, f"mutants:{name}", fault) == kinds


@pytest.fixture
def users(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(USERS)
    return str(path)


def test_a_users_own_file_works(environments: SparkEnvironments, users: str) -> None:
    only = ("crash(driver, before batch=1/commits)",)
    result = check(environments, f"{users}:Mine", only=only)
    assert result.verdict == "invalid"


def test_reading_back_nothing_concludes_nothing(
    environments: SparkEnvironments, users: str
) -> None:
    result = check(environments, f"{users}:Blind")
    assert result.verdict == "unknown"
    assert "read() returned nothing" in result.reason


def test_a_query_that_fails_by_itself_says_why(environments: SparkEnvironments, users: str) -> None:
    result = check(environments, f"{users}:Failing")
    assert result.verdict == "unknown"
    assert "RuntimeError: no such table" in result.reason


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nameless", "record 1 has no id: key None, value {'value': 1}: it must return dicts or"),
        ("Several", "it starts 2 streaming queries, and one is judged at a time"),
        ("OneAfterTheOther", "it starts 2 streaming queries, and one is judged at a time"),
    ],
)
def test_what_keeps_it_from_being_judged_is_said(
    environments: SparkEnvironments, users: str, name: str, message: str
) -> None:
    result = check(environments, f"{users}:{name}")
    assert result.verdict == "unknown"
    assert message in result.reason


def test_a_query_more_that_only_a_restart_starts_is_no_batch_that_is_planned_again(
    environments: SparkEnvironments, users: str
) -> None:
    only = ("crash(driver, after batch=1/commits)",)
    result = check(environments, f"{users}:CatchesUp", only=only)
    assert result.verdict == "unknown"
    assert "it starts 2 streaming queries, and one is judged at a time" in result.reason


def test_a_sink_that_returns_no_query_is_refused(
    environments: SparkEnvironments, users: str
) -> None:
    with pytest.raises(UsageError, match=r"NoneType was returned, and write\(\), or build"):
        check(environments, f"{users}:Returnless")


def test_a_reader_that_fails_is_named(environments: SparkEnvironments, users: str) -> None:
    with pytest.raises(UsageError, match=r"read.. fails after a run without faults: FileNotFound"):
        check(environments, f"{users}:Unreadable")


def test_another_checkpoint_is_refused(environments: SparkEnvironments, users: str) -> None:
    with pytest.raises(UsageError, match=r"does not use env\.checkpoint"):
        check(environments, f"{users}:Elsewhere")


def test_an_endpoint_that_is_not_used_is_refused(
    environments: SparkEnvironments, users: str
) -> None:
    with pytest.raises(UsageError, match=r"no byte crossed the link to db"):
        check(environments, f"{users}:Direct")


def test_what_goes_wrong_in_the_second_run_without_faults_is_no_mere_difference(
    environments: SparkEnvironments, tmp_path: Path
) -> None:
    """The first one is right."""
    path = written_to(
        tmp_path,
        """
from pathlib import Path

class NowAndThen(Mine):
    def read(self, env):
        seen = Path(__file__).with_name("seen")
        found = super().read(env)
        runs = json.loads(seen.read_text()) if seen.exists() else []
        if str(env.workdir) not in runs:
            runs.append(str(env.workdir))
            seen.write_text(json.dumps(runs))
        return found[runs.index(str(env.workdir)):]
""",
    )
    result = check(environments, f"{path}:NowAndThen")
    assert (result.verdict, result.guarantee) == ("invalid", "at-most-once")
    assert result.counterexamples[0].faults == ()
    assert {a.kind for a in result.counterexamples[0].anomalies} == {"Loss"}
