"""What a script is asked for before it is judged, and what its runs are told by."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from bettong.engine.steps import Instrumentation
from bettong.harness.cli.check_job_command import command
from bettong.harness.queries import counterexample
from bettong.harness.queries.faults.operations import ORDINARY
from bettong.harness.queries.job.expectation import Facts
from bettong.harness.queries.job.feed import Feed
from bettong.harness.queries.job.inputs import Files, Topic
from bettong.harness.queries.job.plan import EMPTY_BATCHES
from bettong.harness.queries.job.query_sense import expect_topics_read
from bettong.harness.queries.job.script import ScriptJob, expect_hooks, facts_of, load_script
from bettong.harness.queries.job.script_host import ScriptHost
from bettong.harness.queries.job.script_workload import ScriptWorkload
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.job import Target
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.script import Script
from bettong.harness.queries.sense import VacuousError, expect_one_query
from bettong.harness.spark.jar import AHEAD_VARIABLE
from bettong.lineage.errors import UsageError
from bettong.lineage.trace import TraceEvent, read_trace


@pytest.fixture
def job(tmp_path: Path) -> ScriptJob:
    (tmp_path / "main.py").write_text("")
    (tmp_path / "reader.py").write_text("def reader(env):\n    return []\n")
    (tmp_path / "rows.jsonl").write_text('{"id": 1}\n')
    script = Script(
        str(tmp_path / "main.py"),
        inputs=(f"{tmp_path}/rows.jsonl@dir:in",),
        reader=f"{tmp_path}/reader.py:reader",
    )
    return load_script(Request(script.target, contract="job", script=script))


def begun(job: ScriptJob, folder: Path) -> ScriptWorkload:
    workload = ScriptWorkload(Target("script:main.py"), job, {})
    workload.begin("run-1", folder / "run-1", ORDINARY)
    return workload


def written(checkpoint: Path, file: str = "metadata", incarnation: int = 1) -> TraceEvent:
    step = "metadata" if file == "metadata" else "batch=0/offsets"
    path = {"path": str(checkpoint / file)}
    return TraceEvent(step, "before", "driver", incarnation, detail=path)


@pytest.mark.parametrize("inside", [True, False])
def test_a_scripts_checkpoint_is_below_the_runs_own_folder(
    job: ScriptJob, tmp_path: Path, inside: bool
) -> None:
    workload = begun(job, tmp_path)
    workload.starts(1)
    workload.expect_checkpoint()  # nothing is known of it yet
    workload.observe(written(tmp_path / "run-1" / "work" / "ckpt" if inside else tmp_path / "ckpt"))
    if inside:
        workload.expect_checkpoint()
    else:
        with pytest.raises(UsageError, match=r"--set CKPT=\{work\}/ckpt"):
            workload.expect_checkpoint()


def test_a_script_with_two_queries_ends_at_once_and_is_not_judged(
    job: ScriptJob, tmp_path: Path
) -> None:
    workload, work = begun(job, tmp_path), tmp_path / "run-1" / "work"
    workload.starts(1)
    steps = [written(work / "one", file) for file in ("metadata", "offsets/0")]
    for step in steps:
        workload.observe(step)
    assert not workload.finished()
    expect_one_query(job.name, QueryRun(events=steps))
    workload.observe(other := written(work / "other", "offsets/0"))
    assert workload.finished()
    with pytest.raises(VacuousError, match="2 streaming queries, and one is judged at a time"):
        expect_one_query(job.name, QueryRun(events=[*steps, other]))


def test_a_script_that_never_comes_to_an_end_is_ended(job: ScriptJob, tmp_path: Path) -> None:
    """Timers of processing time: Spark plans batch after batch without data."""
    plan = "~TransformWithStateInPySpark f(user#0), ProcessingTime, Append"
    for planned, ends in ((plan, True), ("~Project [ProcessingTime#1]", False)):
        workload = begun(job, tmp_path)
        workload.starts(1)
        workload.observe(written(tmp_path / "run-1" / "work" / "ckpt"))
        details: list[dict[str, Any]] = [{"rows": 1, "plan": planned}]
        details += [{"rows": 0}] * EMPTY_BATCHES
        for detail in details:
            assert not workload.finished()
            workload.observe(TraceEvent("query.progress", "before", "driver", 1, detail=detail))
        assert workload.endless(()) is workload.finished() is ends


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("told", ["query.progress", "query.idle", "sink.file"])
def test_a_script_whose_checkpoint_is_not_seen_is_not_waited_for(
    job: ScriptJob, tmp_path: Path, seen: bool, told: str
) -> None:
    """Its own settings win over the hook: it would be fed no further step."""
    workload = begun(job, tmp_path)
    workload.starts(1)
    if seen:
        workload.observe(written(tmp_path / "run-1" / "work" / "ckpt"))
    batch = {"rows": 2, "dropped": 0, "operators": 0}
    workload.observe(TraceEvent("sink.file", "before", "driver", 1, detail={"outside": True}))
    assert not workload.finished()  # it may not have started its query yet
    workload.observe(TraceEvent(told, "before", "driver", 1, detail=batch))
    assert workload.finished() is not seen


@pytest.mark.parametrize("consumed", [True, False])
def test_a_script_that_starts_a_query_again_and_again_is_done_when_one_has_found_nothing(
    job: ScriptJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, consumed: bool
) -> None:
    """As with trigger(availableNow=True) in a loop; what follows the last query that found
    something, such as a report, is not to be cut off."""
    monkeypatch.setattr(Feed, "satisfied", consumed)
    workload = begun(job, tmp_path)
    workload.starts(1)
    for _ in range(2):
        assert not workload.finished()
        workload.observe(TraceEvent("query.terminated", "before", "driver", 1))
        workload.observe(TraceEvent("query.terminated", "after", "driver", 1))
    assert workload.finished() is consumed


def test_a_script_that_takes_another_checkpoint_when_it_is_started_again_has_one_query(
    job: ScriptJob, tmp_path: Path
) -> None:
    """By that one it is seen what the query has consumed; not by what a driver that stood still
    writes to the one before."""
    workload, work = begun(job, tmp_path), tmp_path / "run-1" / "work"
    for incarnation in (1, 2):
        workload.starts(incarnation)
        workload.observe(written(work / str(incarnation), incarnation=incarnation))
        assert workload.feed.checkpoint == work / str(incarnation)
    workload.observe(written(work / "1", incarnation=1))
    assert workload.feed.checkpoint == work / "2"
    assert not workload.finished()


def run_of(*steps: str) -> QueryRun:
    return QueryRun(events=[TraceEvent(step, "before", "driver", 1) for step in steps])


def test_a_query_that_ends_by_itself_is_never_idle_and_has_its_hooks() -> None:
    """As with trigger(availableNow=True)."""
    hooked = ("query.started", "batch=0/offsets", "batch=0/stage=0/p=0/a=0/task")
    expect_hooks("main.py", run_of(*hooked))
    with pytest.raises(VacuousError, match="streamingQueryListeners did not report"):
        expect_hooks("main.py", run_of(*hooked[1:]))


def test_a_script_without_a_query_is_told_so() -> None:
    with pytest.raises(VacuousError, match="no streaming query of it was seen: have it start one"):
        expect_hooks("main.py", run_of())


def test_a_script_that_ends_too_early_is_told_why() -> None:
    """Not that a hook is missing, which nothing has asked for."""
    usage = "the script ended with 2: main.py: error: the following arguments are required: --env"
    run = run_of()
    run.errors = [usage]
    with pytest.raises(VacuousError, match=r"before a streaming query.*--env.*--args.*--set"):
        expect_hooks("main.py", run)
    begun = run_of("query.started", "batch=0/offsets")
    with pytest.raises(VacuousError, match=r"had just begun: have it wait.*awaitTermination\(\)"):
        expect_hooks("main.py", begun)
    begun.drained = True
    with pytest.raises(VacuousError, match=r"spark\.plugins did not report"):
        expect_hooks("main.py", begun)


def test_a_script_that_takes_the_class_path_away_is_told_so() -> None:
    run = run_of()
    run.errors = ["the script ended with 1: java.lang.ClassNotFoundException: bettong.hooks.A"]
    with pytest.raises(VacuousError, match=r"--driver-class-path\): use spark\.jars"):
        expect_hooks("main.py", run)


def test_a_topic_that_is_read_from_its_end_is_named() -> None:
    topic, files = Topic("t", "id STRING"), Files("json", "id STRING")
    with pytest.raises(VacuousError, match=r'\.option\("startingOffsets", "earliest"\)'):
        expect_topics_read("main.py", [topic], run_of("metadata"))
    expect_topics_read("main.py", [files], run_of("metadata"))
    expect_topics_read("main.py", [topic], run_of("metadata", "batch=0/offsets"))
    expect_topics_read("main.py", [topic], run_of())  # it was not even started


def test_a_scripts_plan_tells_that_it_goes_by_the_clock() -> None:
    plan = "== Analyzed Logical Plan ==\n~Filter (at#1 < now())\n+- ~Project [at#0 AS at#1]\n\n"
    once = {"rows": 3, "dropped": 1, "operators": 0}
    events = [
        TraceEvent("query.progress", "before", "driver", detail=detail)
        for detail in ({**once, "plan": plan}, once)
    ]
    facts = Facts.of(facts_of(QueryRun(events=events)))
    assert facts == Facts({}, (), 2, ("filter",))


def asked(directory: Path, **more: object) -> dict[str, Any]:
    """What a run asks of a script's host."""
    plain = {"settings": {}, "addresses": {}, "elsewhere": False, "lines": [], "ahead_s": 0}
    return {"directory": str(directory), **plain, **more}


def test_what_a_killed_process_has_put_aside_is_gone_when_the_next_one_starts(
    tmp_path: Path,
) -> None:
    script = Script("main.py", starter="python")
    host = ScriptHost(script, Mock(), lambda: True)
    host.submit("", asked(tmp_path)).result(60)
    aside = host.home / "spark"
    (aside / "blockmgr-1").mkdir()
    defaults = (host.home / "conf" / "spark-defaults.conf").read_text()
    assert f"-Djava.io.tmpdir={aside}" in defaults
    host.reset()
    assert not aside.exists()
    host.close()


ARGUED = Script(
    "main.py",
    arguments=("--in", "{work}/in", "--broker", "proxy:kafka", "--password=x y", "--token", "x y"),
)


def test_a_script_is_given_its_command_line(tmp_path: Path) -> None:
    assert ARGUED.endpoints == ("kafka",)
    main = tmp_path / "main.py"
    main.write_text("import sys, pathlib\npathlib.Path(sys.argv[2]).write_text(repr(sys.argv[3:]))")
    script = replace(ARGUED, path=str(main))
    host = ScriptHost(script, Mock(), lambda: False)
    arguments = asked(tmp_path / "run", addresses={"kafka": ("127.0.0.1", 9)})
    ended = host.submit("", arguments, Instrumentation()).result(60)
    host.close()
    assert ended["error"] is None
    told = (tmp_path / "run" / "work" / "in").read_text()
    assert told == "['--broker', '127.0.0.1:9', '--password=x y', '--token', 'x y']"


def test_options_of_spark_submit_are_joined_with_the_hooks_own(tmp_path: Path) -> None:
    main = tmp_path / "main.py"
    main.write_text("")
    options = "--conf spark.plugins=a.Plugin --conf spark.k={work} --conf spark.token=hush"
    script = Script(str(main), starter=f"spark-submit {options}")
    host = ScriptHost(script, Mock(), lambda: True)
    host.submit("", asked(tmp_path)).result(60)
    defaults = dict(
        line.split(" ", 1)
        for line in (host.home / "conf" / "spark-defaults.conf").read_text().splitlines()
    )
    host.close()
    assert defaults["spark.plugins"].startswith("a.Plugin,")
    assert defaults["spark.k"] == str(tmp_path / "work")
    request = Request(script.target, contract="job", script=script)
    again = shlex.split(counterexample.command(request, ()))
    given = again[again.index("--with") + 1]
    assert given.startswith("spark-submit --conf spark.plugins=a.Plugin --conf 'spark.k={work}'")
    assert "hush" not in given
    assert "hush" not in counterexample.write(request, (), tmp_path).read_text()


@pytest.mark.parametrize(
    ("starter", "said"),
    [
        ("java", "python, or spark-submit"),
        ("python -u", "python, or spark-submit"),
        ("spark-submit --class Main", "'--class' is not understood; use --conf"),
        ("spark-submit --conf 'x", "as in a shell"),
    ],
)
def test_what_cannot_start_a_script_is_one_clear_error(starter: str, said: str) -> None:
    found = CliRunner().invoke(command, ["--script", "main.py", "--with", starter])
    assert isinstance(found.exception, UsageError)
    assert "--with" in str(found.exception)
    assert said in str(found.exception)


def test_a_scripts_command_line_is_in_the_replay_without_its_secrets(tmp_path: Path) -> None:
    request = Request(ARGUED.target, contract="job", script=ARGUED)
    words = shlex.split(counterexample.command(request, ()))
    given = words[words.index("--args") + 1]
    assert shlex.split(given)[:4] == list(ARGUED.arguments[:4])
    assert "x y" not in given
    file = counterexample.write(request, (), tmp_path)
    assert "x y" not in file.read_text()
    again = counterexample.read(file, {}, {}).script
    assert again is not None
    assert again.arguments[:4] == ARGUED.arguments[:4]


def test_a_command_line_that_no_shell_would_take_is_one_clear_error() -> None:
    found = CliRunner().invoke(command, ["--script", "main.py", "--args", "--in 'x"])
    assert isinstance(found.exception, UsageError)
    assert "--args" in str(found.exception)


@pytest.mark.parametrize("elsewhere", [True, False])
def test_what_a_script_changes_outside_of_the_runs_folder_is_noted_and_may_be_a_step(
    tmp_path: Path, elsewhere: bool
) -> None:
    inside, outside = tmp_path / "run" / "work" / "a", tmp_path / "b"
    main = tmp_path / "main.py"
    main.write_text(
        f"for path in ({str(inside)!r}, {str(outside)!r}):\n    open(path, 'w').close()"
    )
    host = ScriptHost(Script(str(main)), Mock(), lambda: False)
    arguments = asked(tmp_path / "run", elsewhere=elsewhere)
    trace = tmp_path / "trace.jsonl"
    ended = host.submit("", arguments, Instrumentation(trace=str(trace))).result(60)
    assert ended == {"error": None, "outside": [str(outside)], "processes": [], "in_turn": False}
    opened = [event.detail["path"] for event in read_trace(trace)]
    assert opened == (["a", str(outside)] if elsewhere else ["a"])
    host.close()


@pytest.mark.parametrize(("ahead_s", "days"), [(0, {0, 1}), (90060, {1, 2})])
def test_a_script_may_be_started_a_day_later(tmp_path: Path, ahead_s: int, days: set[int]) -> None:
    """Midnight may come between the two looks at the day."""
    main = tmp_path / "main.py"
    told = tmp_path / "told"
    main.write_text(
        "import datetime, os\n"
        f"told = datetime.date.today(), os.environ[{AHEAD_VARIABLE!r}]\n"
        f"print(*told, file=open({str(told)!r}, 'w'))"
    )
    host = ScriptHost(Script(str(main)), Mock(), lambda: False)
    arguments = asked(tmp_path / "run", ahead_s=ahead_s)
    today = date.today()
    ended = host.submit("", arguments, Instrumentation()).result(60)
    host.close()
    assert ended["error"] is None
    day, of_sql = told.read_text().split()
    assert (date.fromisoformat(day) - today).days in days
    assert of_sql == str(ahead_s)


@pytest.mark.spark
def test_the_clock_of_sql_goes_ahead_whatever_a_script_says_of_extensions_and_of_java(
    tmp_path: Path,
) -> None:
    told = tmp_path / "told"
    (tmp_path / "main.py").write_text(
        "import os\n"
        "os.environ['PYSPARK_SUBMIT_ARGS'] = '--driver-java-options -Dmine=1 pyspark-shell'\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.config('spark.sql.extensions', '').getOrCreate()\n"
        "asked = spark.sql('SELECT current_timestamp() > timestamp_millis(' + str(\n"
        f"    {datetime.now().timestamp() * 1000 + 3_600_000:.0f}) + ') AS later')\n"
        f"print(asked.first().later, file=open({str(told)!r}, 'w'))\n"
    )
    host = ScriptHost(Script(str(tmp_path / "main.py")), Mock(), lambda: False)
    ended = host.submit("", asked(tmp_path / "run", ahead_s=90060), Instrumentation()).result(300)
    host.close()
    assert ended["error"] is None
    assert told.read_text() == "True\n"
