"""Which lines of a sink no run has reached, and of which of them nothing can be said for that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import pytest
from probed import BATCH, TASK, moments

from bettong.harness.queries.request import Request
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.executor import SinkExecutor
from bettong.harness.queries.search.lineage import Why
from bettong.harness.queries.sink.never_ran import (
    handlers_never_ran_of,
    in_words,
    never_ran,
    never_ran_of,
)
from bettong.harness.queries.sink.ran_lines import RanLine, noted, noted_in
from bettong.harness.queries.sink.rows import Input
from bettong.harness.queries.verdict import QueryVerdict, Subject
from bettong.lineage.faults import CLEAN
from bettong.lineage.results import Result
from bettong.lineage.search.executor import Execution
from bettong.lineage.search.findings import Findings

GIVEN = """
import logging, time, warnings
from contextlib import nullcontext
logger = logging.getLogger("users")
def merge():
    return put(1)
"""


def ran_by(source: str, *batches: int) -> set[RanLine]:
    """The lines that ``each(batch)`` runs, as the tracer notes them."""
    ran = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code.co_filename != "users.py":
            return None
        if event == "line":
            ran.add(RanLine("users.py", code.co_name, code.co_firstlineno, frame.f_lineno))
        return trace

    names: dict[str, Any] = {"put": lambda *values: values}
    exec(compile(source, "users.py", "exec"), names)
    each: Callable[[int], None] = names["each"]
    before = sys.gettrace()
    for batch in batches:
        sys.settrace(trace)
        try:
            with suppress(ValueError):
                each(batch)
        finally:
            sys.settrace(before)
    return ran


def missing(body: str, *batches: int) -> dict[str, bool]:
    """The lines of this body of ``each`` that never ran, and whether they matter."""
    lines = [f"    {line}" for line in body.strip("\n").splitlines()]
    source = "\n".join([*GIVEN.splitlines(), "def each(n):", *lines])
    found = never_ran_of(source, ran_by(source, *(batches or range(4))))
    return {source.splitlines()[number - 1].strip(): found[number] for number in sorted(found)}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if n == 9:\n    put(n)", {"put(n)": True}),
        ("put(n)\nif n < 9:\n    return\nput(1)", {"put(1)": True}),
        ("while n > 9:\n    n = put(n)", {"n = put(n)": True}),
        ("for x in []:\n    put(x)", {"put(x)": True}),
        ("for x in []:\n    pass\nelse:\n    put(n)", {}),
        ("if n < 9:\n    x = 1\nelse:\n    with nullcontext():\n        x = put(n)", {
            "with nullcontext():": True, "x = put(n)": True,
        }),
        ("if n == 1:\n    put(n)\nelif n == 9:\n    put(1)", {"put(1)": True}),
        ("match n:\n    case 9:\n        put(n)\n    case _:\n        put(1)", {"put(n)": True}),
        ("if n == 9:\n    put(\n        n,\n        1,\n    )", {
            "put(": True, "n,": True, "1,": True, ")": True,
        }),
        ("if n == 9:\n    merge()", {"merge()": False, "return put(1)": True}),
        ("if n == 9: merge()", {"return put(1)": True}),
        ("x = merge() if n == 9 else n", {"return put(1)": True}),
        ("n == 9 and merge()", {"return put(1)": True}),
        ("put((lambda: 1)) if n == 9 else 0", {}),
        ("x = [put(i) for i in range(n)]", {}),
        ("if n == 9:\n    print(n, file=out)", {"print(n, file=out)": True}),
        ("if n == 9:\n    list(map(put, [n]))", {"list(map(put, [n]))": True}),
        ("if n == 9:\n    any(filter(db.execute, 'ab'))", {
            "any(filter(db.execute, 'ab'))": True,
        }),
        ("if n == 9:\n    txn_log.log(n)", {"txn_log.log(n)": True}),
    ],
)  # fmt: skip
def test_what_never_ran_where_its_function_did_matters(
    body: str, expected: dict[str, bool]
) -> None:
    assert missing(body) == expected


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("if n == 9:\n    return", "return"),
        ("for x in [1]:\n    if n == 9:\n        continue", "continue"),
        ("if n == 9:\n    x = len(str(n))", "x = len(str(n))"),
        ("if n == 9:\n    print(n)", "print(n)"),
        ("if n == 9:\n    print(n, file=sys.stderr)", "print(n, file=sys.stderr)"),
        ("if n == 9:\n    x = list(map(str.strip, 'ab'))", "x = list(map(str.strip, 'ab'))"),
        ("if n == 9:\n    x = max(map(lambda y: y, 'ab'))", "x = max(map(lambda y: y, 'ab'))"),
        ("if n == 9:\n    x = set(filter(None, 'ab'))", "x = set(filter(None, 'ab'))"),
        ("if n == 9:\n    logger.log(30, n)", "logger.log(30, n)"),
        ("if n == 9:\n    logger.warning('%s', n)", "logger.warning('%s', n)"),
        ("if n == 9:\n    logging.info('late')", "logging.info('late')"),
        ("if n == 9:\n    warnings.warn('late')", "warnings.warn('late')"),
        ("if n == 9:\n    time.sleep(n)", "time.sleep(n)"),
    ],
)
def test_what_leaves_nothing_behind_is_told_and_does_not_matter(body: str, line: str) -> None:
    assert missing(body) == {line: False}


@pytest.mark.parametrize(
    "body",
    [
        "put(n)",
        "'''About it.'''\nput(n)",
        "try:\n    put(n)\nexcept ValueError:\n    put(1)\n    raise",
        "try:\n    raise ValueError(n)\nfinally:\n    put(n)",
        "if n == 9:\n    raise ValueError(str(put(n)))",
        "if n == 9:\n    put('rollback')\n    raise ValueError(n)",
        "for x in range(3):\n    try:\n        return put(n)\n"
        "    except ValueError:\n        if x == 2:\n            raise\n        time.sleep(put(x))",
        "if n == 9:\n    pass",
        "put(lambda: merge())",
        "def later():\n    yield put(n)\nput(later())",
        "def fails():\n    raise ValueError(n)\nif n == 9: fails()",
        "def later():\n    put(n)\nput(later)",
        "class Mine:\n    def put(self):\n        put(n)",
        "assert n < 9, put(n)",
        "if n % 2:\n    put(n)\nelse:\n    put(1)",
        "x: int\nglobal y\ny = n",
    ],
)
def test_what_handles_errors_or_was_never_called_is_left_out(body: str) -> None:
    assert missing(body) == {}


def test_functions_called_alike_are_told_apart() -> None:
    source = "class A:\n    def f(self, n):\n        if n == 9:\n            n.a()\n"
    source += source.replace("class A", "class B") + "def each(n): B().f(n)\n"
    assert never_ran_of(source, ran_by(source, 1)) == {8: True}


def test_a_decorated_function_is_known() -> None:
    source = "def twice(f): return lambda n: f(n)\n@twice\n@twice\ndef each(n):\n"
    source += "    if n == 9:\n        n.a()\n"
    assert never_ran_of(source, ran_by(source, 1)) == {6: True}


def test_what_a_data_sources_writer_does_after_an_error_is_left_out() -> None:
    source = "def abort(n):\n    if n == 9:\n        n.a()\ndef each(n):\n    abort(n)\n"
    assert never_ran_of(source, ran_by(source, 1)) == {}


def test_what_only_such_lines_call_is_told_with_them() -> None:
    source = (
        "def each(n):\n    def merge():\n        n.a()\n        tidy()\n"
        "    def tidy():\n        n.b()\n    if n == 9:\n        merge()\n"
    )
    assert never_ran_of(source, ran_by(source, 1)) == {3: True, 4: False, 6: True, 8: False}


def test_a_method_of_something_else_is_not_the_one_of_that_name() -> None:
    source = (
        "class A:\n    def close(self):\n        pass\n    def tidy(self):\n        self.n()\n"
        "    def f(self, n):\n        if n == 9:\n            n.close()\n            self.tidy()\n"
        "def each(n): A().f(n)\n"
    )
    assert never_ran_of(source, ran_by(source, 1)) == {5: True, 8: True, 9: False}


def at(file: Path, *numbers: int) -> list[RanLine]:
    return [RanLine(str(file), "each", 1, number) for number in numbers]


def test_it_is_told_by_file_in_ranges(tmp_path: Path) -> None:
    file, other, gone = tmp_path / "s.py", tmp_path / "o.py", tmp_path / "gone.py"
    first, second = "    if n:\n        n.a()\n        n.b()\n", "    if n:\n        n.c()\n"
    file.write_text(f"def each(n):\n{first}{second}")
    other.write_text("def each(n):\n    if n:\n        n += 1\n")
    found = never_ran([*at(file, 2, 5), *at(other, 2), *at(gone, 2)], file)
    assert [x.matter for x in found] == [False, True]
    assert in_words(found, "do this") == (
        "o.py line 3 and s.py lines 3-4, 6 never ran in any run, so nothing is said of what is "
        "there: do this"
    )
    assert in_words([], "do this") == ""


@pytest.mark.parametrize(
    ("target", "file", "told"),
    [
        ("mine/s.py", "mine/more/o.py", True),
        ("mine/s.py", "venv/site-packages/library/o.py", False),
        ("venv/site-packages/s.py", "venv/site-packages/library/o.py", False),
        ("venv/site-packages/s.py", "venv/site-packages/s.py", True),
        ("venv/site-packages/mine/s.py", "venv/site-packages/mine/o.py", True),
        ("venv/site-packages/mine/s.py", "venv/site-packages/library/o.py", False),
        ("venv/site-packages/mine/jobs/s.py", "venv/site-packages/mine/o.py", True),
        ("venv/site-packages/mine/s.py", "mine/o.py", True),
    ],
)
def test_packages_are_not_the_users(tmp_path: Path, target: str, file: str, told: bool) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text("def each(n):\n    if n:\n        n.a()\n")
    assert bool(never_ran(at(path, 2), tmp_path / target)) is told


@pytest.mark.parametrize("within", [BATCH, TASK])
def test_what_ran_is_noted_line_by_line(tmp_path: Path, within: str) -> None:
    users = tmp_path / "aim" / "users.py"
    users.parent.mkdir()
    users.write_text("def each(folder, batch):\n    for n in range(2):\n        x = n\n")
    run = tmp_path / "run"
    aimed = f"aiming.aim(folder, Instrumentation(), ran=Path({str(noted_in(run))!r}))\n"
    in_worker = f"eval_type = 0\nexec(compile({within!r}, '/pyspark/worker.py', 'exec'))"
    assert moments(tmp_path, aimed + in_worker) == []
    assert noted(run) == {RanLine(str(users), "each", 1, number) for number in (2, 3)}
    assert noted(run) == set()


ROWS = [dict(row) for row in Input().all()]
CRASH = "crash(driver, before batch=1/commits)"


class Shows:
    """Gives the runs that it was made with, one after the other."""

    def __init__(self, *runs: QueryRun) -> None:
        self.left = list(runs)

    def run(self, faults: Sequence[object], **how: object) -> QueryRun:
        return self.left.pop(0)


def concluded(
    file: Path,
    *numbers: Sequence[int],
    request: Request | None = None,
    kind: Literal["sink", "job"] = "sink",
) -> Result:
    """What is concluded where runs, the first of them without a fault, have begun these lines."""
    runner: Any = Shows(*(QueryRun(rows=ROWS, drained=True, ran={*at(file, *n)}) for n in numbers))
    executor = SinkExecutor(runner, Input(), False, Why(2, 4, 1))
    executed = [executor.run(CLEAN)]
    executed += [executor.run(frozenset({CRASH})) for _ in numbers[1:]]
    request = request or Request("s.py:S")
    subject = Subject("S", kind, file=file)
    findings = Findings(executed[0], executed, complete=True)
    return QueryVerdict(request, subject).conclude(executor, findings)


REST = "give the sink `batches` or `batch_rows` that reach them, or check it without them"


def test_what_matters_and_never_ran_is_no_pass(tmp_path: Path) -> None:
    file = tmp_path / "s.py"
    file.write_text("def each(n):\n    if n == 9:\n        n.merge()\n")
    told = f"s.py line 3 never ran in any run, so nothing is said of what is there: {REST}"
    result = concluded(file, [2], [2])
    assert (result.verdict, result.guarantee) == ("unknown", "effectively-once")
    assert result.reason == f"S is effectively-once as far as seen; {told}"
    assert (result.assumptions[0], result.details["never_ran"]) == (told, told)
    reached = concluded(file, [2], [2, 3])
    assert (reached.verdict, "never_ran" in reached.details) == ("valid", False)
    of_job = concluded(file, [2], [2], kind="job")
    assert of_job.verdict == "unknown"
    assert "give its inputs rows or steps that reach them" in of_job.reason
    only = concluded(file, [2], [2], request=Request("s.py:S", only=(CRASH,)))
    assert only.verdict == "valid"


def test_what_does_not_matter_is_told(tmp_path: Path) -> None:
    file = tmp_path / "s.py"
    file.write_text("def each(n):\n    if n == 9:\n        return\n")
    result = concluded(file, [2], [2])
    assert result.verdict == "valid"
    assert result.assumptions[0].startswith("s.py line 3 never ran in any run")


def test_what_an_interrupted_search_has_reached_is_known_from_its_log(tmp_path: Path) -> None:
    executor = SinkExecutor(Shows(), Input(), False, Why(2, 4, 1))  # type: ignore[arg-type]
    line = RanLine("s.py", "each", 1, 3)
    executor.learn(Execution(frozenset({CRASH}), "good", details={"ran": [list(line)]}))
    assert executor.ran == {line}


@pytest.mark.parametrize(
    ("handler", "lines"),
    [
        ("put(2)", {8}),
        ("pass", set()),
        ("logger.error('no')", set()),
        ("raise OSError from None", set()),
        ("put(2); raise", set()),
    ],
)
def test_what_would_handle_an_error_that_never_came_is_told_apart(
    handler: str, lines: set[int]
) -> None:
    source = f"{GIVEN}def each(batch):\n    try: put(1)\n    except KeyError: {handler}\n"
    source = source.replace("merge():\n    return put(1)\n", "merge(): ...\n")
    assert set(handlers_never_ran_of(source, ran_by(source, 0))) == lines
    assert never_ran_of(source, ran_by(source, 0)) == {}


def test_a_handler_that_ran_is_seen() -> None:
    source = """
def each(batch):
    for one in (0, 1):
        try:
            if batch:
                raise KeyError
        except KeyError:
            put(2)
"""
    assert set(handlers_never_ran_of(source, ran_by(source, 0))) == {8}
    assert not handlers_never_ran_of(source, ran_by(source, 0, 1))
