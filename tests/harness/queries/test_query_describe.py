"""Pure parts of check-sink: targets, secrets, crash points, words, judging."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.faults.errors import ScheduleError
from bettong.harness.faults.point import Point
from bettong.harness.queries import describe
from bettong.harness.queries.advice import advise
from bettong.harness.queries.faults.crash_points import DURABLE, FileSteps, crash_points
from bettong.harness.queries.faults.driver_crash import DriverCrash
from bettong.harness.queries.faults.failed_step import FailedStep, FailedTask
from bettong.harness.queries.faults.kinds import parse_fault, refused, refused_once, zombie
from bettong.harness.queries.faults.lost_executor import LostExecutor
from bettong.harness.queries.faults.operations import (
    KNOWN,
    LARGER,
    LATER,
    LONGER,
    STOPPED,
    OperationalEvent,
)
from bettong.harness.queries.faults.query_fault import QueryFault
from bettong.harness.queries.faults.wake import at_request
from bettong.harness.queries.faults.wire_fault import WireFault
from bettong.harness.queries.judge import ids_in_words, judge_run
from bettong.harness.queries.raised import cause
from bettong.harness.queries.run.failure import Failures
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.run.state import copy_state, digest_state, replace_state
from bettong.harness.queries.sink.loading import load_target
from bettong.harness.queries.sink.rows import Input, read_back
from bettong.harness.wire import CutPoint
from bettong.lineage.errors import UsageError
from bettong.lineage.secrets import masked
from bettong.lineage.trace import TraceEvent

SOURCE = Input()
REPLAYED = (
    LATER,
    zombie(Point("batch=1/commits"), 3),
    DriverCrash(Point("batch=1/commits")),
)
SINK = """
from bettong.harness import Sink, foreach_batch_sink

class Right(Sink):
    def write(self, rows, env): ...
    def read(self, env): ...

class Heir(Sink):
    def read(self, env): ...

class Half:
    def write(self, rows, env): ...

def append(batch, batch_id): ...

class StartsANumber(Right):
    servers = {"db": int}

class NamesAServer(Right):
    servers = {"db": "postgres"}

class ListsEndpoints(Right):
    endpoints = ["127.0.0.1:5432"]

class NoPort(Right):
    endpoints = {"db": "localhost"}

class OfASlash(Right):
    endpoints = {"db/main": "localhost:5432"}

class NamedByANumber(Right):
    name = 5

class MadeOfNone(Right):
    def __init__(self):
        foreach_batch_sink(None, read=list)

def broken():
    raise ValueError
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SINK)
    return path


def test_a_class_of_a_file_is_a_target(file: Path) -> None:
    sink = load_target(f"{file}:Right", {})
    assert (sink.name, dict(sink.endpoints), sink.ordered) == ("Right", {}, False)


def test_loading_afresh_forgets_what_the_module_kept(file: Path) -> None:
    first = type(load_target(f"{file}:Right", {}))
    assert type(load_target(f"{file}:Right", {})) is first
    assert type(load_target(f"{file}:Right", {}, fresh=True)) is not first


@pytest.mark.parametrize("where", [".", "../helpers_of_all_sinks"])
def test_loading_afresh_forgets_what_the_module_imports_and_nothing_that_is_installed(
    file: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    helper = (file.parent / where).resolve() / "counted_by_a_helper.py"
    helper.parent.mkdir(exist_ok=True)
    helper.write_text("import itertools\ncounter = itertools.count()\n")
    file.write_text(f"import counted_by_a_helper\nimport yaml\n{SINK}")
    monkeypatch.syspath_prepend(str(helper.parent))
    load_target(f"{file}:Right", {}, fresh=True)
    known = {name: sys.modules[name] for name in ("counted_by_a_helper", "yaml", "bettong")}
    load_target(f"{file}:Right", {}, fresh=True)
    again = {name for name, module in known.items() if sys.modules[name] is not module}
    assert again == {"counted_by_a_helper"}
    del sys.modules["counted_by_a_helper"]


@pytest.mark.parametrize("fresh", [False, True])
def test_files_that_are_called_alike_are_told_apart_and_what_stands_beside_them(
    tmp_path: Path, fresh: bool
) -> None:
    files = [tmp_path / name / "my_sink.py" for name in ("one", "other")]
    for file in files:
        file.parent.mkdir()
        file.with_name("beside_a_sink.py").write_text(f"OF = {file.parent.name!r}")
        file.write_text(f"import beside_a_sink\n{SINK}\nRight.name = beside_a_sink.OF")
    for file in [*files, *files]:
        sink = load_target(f"{file}:Right", {}, fresh=fresh)
        assert sink.name == file.parent.name


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nothing", "is no target: write file.py:Object"),
        ("{file}:Rihgt", "did you mean Right"),
        ("{file}:Half", r"has no method read: read\(self, env\) returns the rows"),
        ("{file}:Heir", r"has no method write: write\(self, rows, env\) starts the query"),
        (
            "{file}:append",
            r"has no method write: .* by bettong.harness.foreach_batch_sink\(function, read=…\)",
        ),
        ("nowhere.py:Sink", "there is no such Python file"),
        ("no.such.module:Sink", "cannot be loaded: ModuleNotFoundError"),
        ("files:Parquet", "did you mean bettong.scenarios.sinks.files?"),
        ("format:parqet", "did you mean parquet"),
        ("{file}:NamesAServer", "the server db is 'postgres': write a class"),
        ("{file}:StartsANumber", "the server db is <class 'int'>: write a class"),
        ("{file}:ListsEndpoints", "endpoints is "),
        ("{file}:NoPort", "the endpoint db: 'localhost' is not an address"),
        ("{file}:OfASlash", "the endpoint 'db/main': have its name of letters"),
        ("{file}:NamedByANumber", "name is 5: write name = '…'"),
        ("{file}:MadeOfNone", r"mine\.py:\d+: foreach_batch_sink\(None"),
    ],
)
def test_a_wrong_target_is_one_clear_line(file: Path, target: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        load_target(target.format(file=file), {})
    assert "\n" not in str(raised.value)


def test_options_are_for_formats_only(file: Path) -> None:
    with pytest.raises(UsageError, match="takes none"):
        load_target(f"{file}:Right", {"a": "b"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jdbc://me:secret1@db:5432/x", "jdbc://me:***@db:5432/x"),
        ("password=secret1&user=me", "password=***&user=me"),
        ('{"api_key": "secret1"}', '{"api_key": "***"}'),
        ("aws.secret.access.key=secret1", "aws.secret.access.key=***"),
        ("me:secret1@db", "me:***@db"),
        ("'127.0.0.1:5432' is there, ask admin@host", "'127.0.0.1:5432' is there, ask admin@host"),
        ("127.0.0.1:5432", "127.0.0.1:5432"),
    ],
)
def test_secrets_are_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


@given(st.from_regex(r"[A-Za-z0-9]{6,20}", fullmatch=True))
def test_no_password_survives(secret: str) -> None:
    for text in (f"postgresql://u:{secret}@h/d", f"token={secret}", f"Password: '{secret}'"):
        assert f":{secret}@" not in masked(text)
        assert f"={secret}" not in masked(text)
        assert f"'{secret}'" not in masked(text)


def test_fault_ids_are_read_back() -> None:
    faults: list[QueryFault] = [
        DriverCrash(Point("batch=1/commits", "after", 2)),
        DriverCrash(Point("state/op=0/metadata")),  # not a request to an endpoint
        FailedStep(Point("state/op=0/metadata")),
        FailedStep(Point("batch=1/p=0/a=0/source.middle")),
        FailedStep(Point("batch=1/stage=0/p=0/a=0/task", "after")),
        FailedTask(Point("batch=1/stage=2/p=0/a=0/task", "after")),
        zombie(Point("batch=1/commits"), 3),
        zombie(Point("batch=1/sink.file=57.line", occurrence=2), 3),
        refused("db", 1),
    ]
    lost = [
        LostExecutor(Point("batch=1/p=0/a=0/source.middle"), goes_on=True),
        LostExecutor(Point("batch=1/stage=0/p=0/a=0/task", "after"), goes_on=False),
    ]
    reply = at_request("omit-reply", "db", "POST /rows", 2)
    others = (
        refused_once("db", 1),
        WireFault(reply, "lost"),
        WireFault(reply, "crash"),
        WireFault(at_request("omit", "db", "COMMIT", 1), "lost"),
    )
    for known in (*lost, *others, *KNOWN.values()):
        assert parse_fault(known.id) == known
    for fault in faults:
        assert parse_fault(fault.id) == fault
    with pytest.raises(ScheduleError, match="is no fault"):
        parse_fault("earthquake")


def test_moments_count_occurrences_and_leave_failures_out() -> None:
    def event(step: str, phase: str, digest: str | None = "d") -> TraceEvent:
        detail = {} if digest is None else {DURABLE: digest}
        return TraceEvent(step, phase, "driver", detail=detail)  # type: ignore[arg-type]

    found = crash_points(
        [
            event("batch=1/commits", "before", "x"),
            event("fault/crash", "after", None),
            event("batch=1/commits", "failed"),
            event("batch=1/commits", "before"),
            event("batch=1/commits", "after"),
        ]
    )
    assert [(str(m.point), m.durable) for m in found] == [
        ("before batch=1/commits", "x"),
        ("before batch=1/commits#2", "d"),
        ("after batch=1/commits#2", "d"),
    ]
    assert found[0].batch == 1


def test_what_an_operation_is_on_is_told_without_values() -> None:
    def on(**detail: str) -> str:
        event = TraceEvent("batch=0/sink.file=1.write", "before", "driver", detail=detail)
        (point,) = crash_points([replace(event, detail={**detail, DURABLE: "x"})])
        return point.on

    assert on(path="part-0007.json") == on(path="part-0012.json") != on(path="marker.json")
    rows = "INSERT INTO rows VALUES ('m/000001', 1)"
    assert on(sql=rows) == on(sql=rows.replace("1", "23")) != on(sql="INSERT INTO done VALUES (1)")


def test_file_operations_are_named_by_batch() -> None:
    steps = FileSteps()

    def reported(step: str, **detail: str) -> str:
        return steps(TraceEvent(step, "before", "driver", detail=detail)).step

    reported("batch=1/offsets")
    assert reported("sink.file", op="open") == "batch=1/sink.file=1.open"
    assert reported("sink.file", op="rename") == "batch=1/sink.file=2.rename"
    assert reported("p=0/a=1/sink.file", op="open") == "batch=1/p=0/a=1/sink.file=1.open"
    steps.restart()
    assert reported("sink.file", op="open") == "batch=1/sink.file=1.open"


def test_state_is_kept_and_brought_back(tmp_path: Path) -> None:
    state, kept = tmp_path / "state", tmp_path / "kept"
    (state / "a").mkdir(parents=True)
    (state / "a" / "x").write_text("1")
    (state / "empty").mkdir()
    before = digest_state(state)
    copy_state(state, kept)
    (state / "a" / "x").write_text("2")
    (state / "b").write_text("new")
    assert digest_state(state) != before
    replace_state(state, kept)
    assert digest_state(state) == before
    assert not (state / "b").exists()
    assert (state / "empty").is_dir()


def digest_of(folder: Path, files: Mapping[str, str]) -> str:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)
    return digest_state(folder)


def test_the_order_of_random_names_does_not_distinguish_states(tmp_path: Path) -> None:
    names = ["0" * 32, "f" * 32]
    one, two = (dict(zip(names, order, strict=True)) for order in ("ab", "ba"))
    assert digest_of(tmp_path / "one", one) == digest_of(tmp_path / "two", two)
    other = dict.fromkeys(names, "a")
    assert digest_of(tmp_path / "three", other) != digest_state(tmp_path / "one")


@pytest.mark.parametrize(
    "same", [("tmpa1b2c3d4", "tmpzzzzzzz_"), (f"x-{'0' * 32}", f"x-{'a' * 32}")]
)
def test_names_made_at_random_are_equal(tmp_path: Path, same: tuple[str, str]) -> None:
    digests = {digest_of(tmp_path / str(n), {name: "rows"}) for n, name in enumerate(same)}
    assert len(digests) == 1
    assert digest_of(tmp_path / "plain", {"rows-1": "rows"}) not in digests


def test_times_and_random_ids_do_not_distinguish_states(tmp_path: Path) -> None:
    for name, time, id in (
        ("one", "1763733208123", "00000000-0000-4000-8000-000000000000"),
        ("two", "1763733299999", "12345678-9abc-4def-8123-456789abcdef"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"part-{id}.json").write_text(f'{{"batchTimestampMs":{time}}}')
    assert digest_state(tmp_path / "one") == digest_state(tmp_path / "two")


def test_what_hadoop_checks_files_by_does_not_distinguish_states_and_a_users_own_file_does(
    tmp_path: Path,
) -> None:
    plain = digest_of(tmp_path / "plain", {"rows": "1"})
    assert digest_of(tmp_path / "checked", {"rows": "1", ".rows.crc": "2"}) == plain
    assert digest_of(tmp_path / "marked", {"rows": "1", "batch-1.crc": "2"}) != plain


@pytest.mark.parametrize("whole", ["v1", "v2", "gone"])
def test_what_a_link_shows_is_part_of_the_state(tmp_path: Path, whole: str) -> None:
    """A version may be shown by a link to its folder: before and after is not the same."""
    for name in ("v1", "v2"):
        (tmp_path / name).mkdir()
    (tmp_path / "v1" / "rows").write_text("the same")
    (tmp_path / "v2" / "rows").write_text("the same")
    (tmp_path / "current").symlink_to("v1")
    before = digest_state(tmp_path)
    (tmp_path / "new").symlink_to(whole)
    (tmp_path / "new").replace(tmp_path / "current")
    assert (digest_state(tmp_path) == before) is (whole == "v1")


@pytest.mark.parametrize("store", ["", "left-keyToNumValues/"])
def test_what_spark_had_begun_to_write_is_nothing_that_is_left(tmp_path: Path, store: str) -> None:
    folder = tmp_path / "run" / "checkpoint" / "state" / "0" / "1" / store
    folder.mkdir(parents=True)
    before = digest_state(tmp_path / "run")
    (folder / ".2.delta.0f.TID7.tmp").write_text("half")
    assert digest_state(tmp_path / "run") == before
    (folder / "2.delta").write_text("whole")
    assert digest_state(tmp_path / "run") != before


def test_a_request_that_nobody_waited_for_is_told_apart_from_one_that_was_skipped() -> None:
    slow = WireFault(at_request("omit", "api", "POST /rows", 2), "unawaited")
    assert parse_fault(slow.id) == slow
    assert (slow.crashes, slow.bound) == (True, "crash")
    rows = [row for number in (0, 2, 3) for row in SOURCE.batch(number)]
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    words = describe.explain([slow], verdict.anomalies, SOURCE.rows, layout=False)
    assert "as done, or its replay took it for done, and nobody sent it again" in words
    assert "wait for the reply" in advise([slow], frozenset({"Loss"}), layout=False)


def test_an_attempt_that_comes_to_something_else_may_go_by_what_a_worker_remembers() -> None:
    fault = FailedStep(Point("batch=1/stage=1/p=0/a=0/task", "after"))
    assert "a worker's process remembers" in advise([fault], frozenset({"Corrupt"}), layout=False)
    twice = advise([fault], frozenset({"Corrupt", "Duplicate"}), layout=False)
    assert "What a failed attempt wrote stays" in twice


def test_what_an_error_says_is_told_where_it_did_not_come_out() -> None:
    error = WireFault(at_request("refuse", "db", "INSERT", 2), "refused")
    assert parse_fault(error.id) == error
    rows = [row for number in (0, 2, 3) for row in SOURCE.batch(number)]
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    words = describe.explain([error], verdict.anomalies, SOURCE.rows, layout=False)
    assert "was answered with an error" in words and "was swallowed" in words
    assert "whole transaction again" in advise([error], frozenset({"Loss"}), layout=False)
    came_out = advise([error], frozenset({"Duplicate"}), layout=False, failed=True)
    assert "A replay comes with the same batch id" in came_out


@pytest.mark.parametrize(
    ("by", "ways", "told"),
    [
        (0, 0, ""),
        (1, 1, "1 minimal fault set lowers it"),
        (2, 2, "2 minimal fault sets lower it"),
        (8, 3, "8 minimal fault sets lower it, in 3 ways: one of each is shown"),
        (5, 1, "5 minimal fault sets lower it, all alike: one is shown"),
    ],
)
def test_it_is_said_that_only_one_of_each_way_is_shown(by: int, ways: int, told: str) -> None:
    assert describe.lowered(by, ways) == told


def test_a_duplicate_is_described_in_words() -> None:
    rows = [*SOURCE.all(), *SOURCE.batch(2)]
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    assert verdict.kinds == {"Duplicate"}
    crash = DriverCrash(Point("batch=2/commits"))
    reported = describe.explain([crash], verdict.anomalies, SOURCE.rows, layout=False)
    assert reported == (
        "The driver died when batch 2 was written, before Spark recorded that (commits/2); the "
        "query was started again. The replay of batch 2 wrote its rows again. Now m/000040 … "
        "m/000059 are there twice (batch 2)."
    )
    assert "same transaction" in advise([crash], verdict.kinds, layout=False)
    assert "never from its place" in advise([crash], verdict.kinds, layout=True)


@pytest.mark.parametrize(
    ("rows_per_batch", "told"),
    [
        (SOURCE.rows, "After the restart rows of batch 2 were written again."),
        (0, "After the restart rows were written that were there."),
    ],
)
def test_rows_are_not_said_to_be_of_the_batch_that_was_replayed_where_nobody_knows(
    rows_per_batch: int, told: str
) -> None:
    """What is kept in memory is gone with the driver, whichever batch is replayed; of a job's rows
    nobody knows the batch."""
    rows = [*SOURCE.all(), *SOURCE.batch(2)]
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    crash = DriverCrash(Point("batch=1/commits"))
    words = describe.explain([crash], verdict.anomalies, rows_per_batch, layout=False)
    assert told in words
    assert "The replay of" not in words


@pytest.mark.parametrize("rows", [[*SOURCE.all(), *SOURCE.batch(0)], SOURCE.all()[20:]])
@pytest.mark.parametrize("fault", [DriverCrash(Point("batch=1/commits", "after")), STOPPED])
def test_what_a_new_driver_does_not_remember_is_no_replay(
    fault: QueryFault, rows: list[dict[str, Any]]
) -> None:
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    reported = describe.explain([fault], verdict.anomalies, SOURCE.rows, layout=False)
    assert "No batch had to be replayed. Now m/000000" in reported
    assert "in its memory" in advise([fault], verdict.kinds, layout=False)


@pytest.mark.parametrize(
    ("at", "there", "reported"),
    [
        (1, (0, 2, 3), "The replay left out all rows of batch 1."),
        (2, (0, 2, 3), "The replay did not write what is missing."),
        (2, (0, 3), "The replay did not write what is missing."),
    ],
)
def test_a_batch_was_skipped_where_it_is_the_one_that_was_replayed(
    at: int, there: tuple[int, ...], reported: str
) -> None:
    rows = [row for number in there for row in SOURCE.batch(number)]
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    crash = DriverCrash(Point(f"batch={at}/sink.file=9.remove"))
    assert reported in describe.explain([crash], verdict.anomalies, SOURCE.rows, layout=False)


@pytest.mark.parametrize("fault", REPLAYED)
@pytest.mark.parametrize("layout", [False, True])
def test_of_a_checkpoint_that_is_gone_all_else_comes(fault: QueryFault, layout: bool) -> None:
    """As of one that is named by the day, or that the query's own code throws away."""
    for kinds in ({"StateDivergence"}, {"StateDivergence", "Duplicate"}):
        advised = advise([fault], frozenset(kinds), layout)
        assert "give the same folder at each start" in advised


@pytest.mark.parametrize("rows", [SOURCE.all()[20:], [*SOURCE.all(), *SOURCE.batch(1)]])
def test_what_a_replay_on_another_day_does_is_the_replays_doing(
    rows: list[dict[str, object]],
) -> None:
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    words = describe.explain([LATER], verdict.anomalies, SOURCE.rows, layout=False)
    assert "25 hours later" in words and "The replay " in words
    assert "another day" in advise([LATER], verdict.kinds, layout=False)


@pytest.mark.parametrize(
    ("failed", "reported", "advised"),
    [
        (False, "The error was swallowed", "caught and forgotten"),
        (
            True,
            "failed and was started again, and its replay left out all rows of batch 1",
            "one transaction",
        ),
    ],
)
def test_rows_that_an_error_cost_were_swallowed_or_skipped(
    failed: bool, reported: str, advised: str
) -> None:
    rows = [row for number in (0, 2, 3) for row in SOURCE.batch(number)]
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    fault = refused("db", 1)
    assert reported in describe.explain([fault], verdict.anomalies, SOURCE.rows, False, failed)
    assert advised in advise([fault], verdict.kinds, False, failed)


@pytest.mark.parametrize(
    ("step", "advised"),
    [
        ("batch=1/p=0/a=0/source.middle", "sees them end as if there were no more"),
        ("batch=1/p=0/a=0/sink.file=1.open", "caught and forgotten"),
    ],
)
def test_rows_that_break_off_are_no_error_that_was_forgotten(step: str, advised: str) -> None:
    assert advised in advise([FailedStep(Point(step))], frozenset({"Loss"}), layout=False)


@pytest.mark.parametrize(
    ("kind", "advised"),
    [
        ("Loss", "a batch takes away what others wrote"),
        ("Duplicate", "written by two actions"),
        ("Corrupt", "does to these rows by itself"),
    ],
)
def test_what_is_wrong_without_a_fault_is_no_replays_doing(kind: str, advised: str) -> None:
    advice = advise([], frozenset({kind}), layout=False)
    assert advice.startswith("No fault is needed")
    assert advised in advice
    assert "replay" not in advice


@pytest.mark.parametrize(
    ("number", "reported"), [(1, "first"), (3, "third"), (11, "11th"), (22, "22nd"), (113, "113th")]
)
def test_a_request_told_by_its_number_is_named_so(number: int, reported: str) -> None:
    point = CutPoint("omit", "mq", "mq/conn=9/request=9 PUB", "nth", "PUB", number, "PUB")
    fault = WireFault(point, "crash")
    assert fault.id == f"crash(driver, before mq/PUB={number})"
    assert fault.label == "PUB"
    assert parse_fault(fault.id).id == fault.id
    sent = f"The driver died when it had sent the {reported} PUB to mq, which never arrived"
    assert fault.describe().startswith(sent)
    lost = WireFault(point, "lost").describe()
    assert lost == f"The {reported} PUB to mq was lost with its connection before it arrived."
    late = WireFault(point, "late").describe()
    assert late.startswith(
        f"The driver stood still when it had sent the {reported} PUB to mq, and "
    )


def test_rows_that_a_server_forgot_were_not_skipped() -> None:
    rows = [row for number in (0, 2, 3) for row in SOURCE.batch(number)]
    verdict = judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False)
    point = CutPoint("omit-reply", "mq", "mq/conn=1/request=2 PUB", "labels", "x", 1, "PUB")
    reported = describe.explain(
        [WireFault(point, "restarted")], verdict.anomalies, SOURCE.rows, False, True
    )
    assert "It had answered for the rows of batch 1, and did not keep them." in reported


def test_a_query_that_never_ends_is_stuck_and_says_why() -> None:
    error = "StreamingQueryException: x\n  File y\npsycopg.errors.UniqueViolation: twice\n"
    run = QueryRun(rows=[], drained=False, errors=[error + "ValueError: no such table\n at z"])
    verdict = judge_run(run, SOURCE, ordered=False)
    assert verdict.kinds == {"Loss", "Stuck"}
    assert cause(run.errors[0]) == "ValueError: no such table"


def test_what_was_raised_is_said_though_it_stands_below_long_tracebacks() -> None:
    frames = "".join(f'  File "worker.py", line {n}, in read\n    more()\n' for n in range(100))
    whole = (
        f"Reason: a proxy.\nTraceback (most recent call last):\n{frames}ValueError: no such table"
    )
    assert cause(Failures().in_words(RuntimeError(whole))) == "ValueError: no such table"


@pytest.mark.parametrize("lost", ["key", "seq", "value"])
def test_a_row_without_a_column_that_others_have_has_lost_it(lost: str) -> None:
    """As a row that was begun in one transaction and never finished in the next one."""
    rows = SOURCE.all()
    del rows[3][lost]
    assert judge_run(QueryRun(rows=rows, drained=True), SOURCE, ordered=False).kinds == {"Corrupt"}
    without = [{name: row[name] for name in row if name != lost} for row in SOURCE.all()]
    assert not judge_run(QueryRun(rows=without, drained=True), SOURCE, ordered=False).kinds


@pytest.mark.parametrize("returned", [None, 5, "m/0", {"id": "m/0"}, ["m/0"], [7]])
def test_what_is_no_rows_is_said_in_words(returned: object) -> None:
    with pytest.raises(TypeError, match=r"read\(\) returned .* dicts or Spark rows"):
        list(read_back(returned))


def test_order_is_judged_only_when_the_sink_says_so() -> None:
    rows = SOURCE.all()
    rows[0], rows[5] = rows[5], rows[0]  # both of key k0
    run = QueryRun(rows=rows, drained=True)
    assert judge_run(run, SOURCE, ordered=False).kinds == set()
    assert judge_run(run, SOURCE, ordered=True).kinds == {"Reorder"}


def test_a_row_without_id_cannot_be_judged() -> None:
    run = QueryRun(rows=[{"key": "k0"}], drained=True)
    assert "has no id" in judge_run(run, SOURCE, ordered=False).malformed


@given(st.sets(st.integers(0, 50), min_size=1))
def test_ranges_of_ids_name_the_first_and_the_last(numbers: set[int]) -> None:
    reported = ids_in_words([f"m/{n:06d}" for n in numbers])
    assert reported.startswith(f"m/{min(numbers):06d}")


def test_the_source_has_distinct_rows_in_order_by_key() -> None:
    rows = Input(empty=1).all()
    assert len({r["id"] for r in rows}) == len(rows) == 60
    assert Input(empty=1).batch_of("m/000020") is None
    for key in {r["key"] for r in rows}:
        seqs = [r["seq"] for r in rows if r["key"] == key]
        assert seqs == sorted(set(seqs))


@pytest.mark.parametrize(
    ("event", "lost", "shown", "repair"),
    [
        (LONGER, range(200, 240), "m/000200 … m/000239 are missing (batch 10, 11)", "as a number"),
        (LARGER, range(500, 2400), "are missing (batch 0, 1)", "for each piece"),
    ],
)
def test_more_batches_and_larger_ones_are_told_with_their_own_numbers(
    event: OperationalEvent, lost: Sequence[int], shown: str, repair: str
) -> None:
    rows = event.expected(SOURCE)
    run = QueryRun(rows=[row for row in rows.all() if int(row["id"][2:]) not in lost])
    run.drained = True
    anomalies = judge_run(run, rows, ordered=False, stands_from=event.stands_from).anomalies
    words = describe.explain([event], anomalies, event.rows_of(SOURCE.rows), layout=False)
    assert shown in words
    assert repair in advise([event], frozenset(a.kind for a in anomalies), layout=False)


def test_a_sink_that_has_more_rows_itself_is_given_those() -> None:
    large = LARGER.expected(Input(batches=20, rows=5000))
    assert (large.batches, large.rows, LARGER.rows_of(5000)) == (2, 5000, 5000)
    assert LONGER.expected(Input(batches=20, rows=5)) == Input(batches=20, rows=5)
    assert LARGER.rows_of(0) == 0  # of rows that Bettong has not made nothing is known
