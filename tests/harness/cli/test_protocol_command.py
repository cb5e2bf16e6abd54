"""``bettong protocol`` as a user types it: verdicts, counts, minimal sets, mistakes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bettong.harness.cli.protocol_command import command
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Result


def asked(*words: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(command, [*words, "--json"])
    if isinstance(done.exception, UsageError):
        raise done.exception
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    value: dict[str, Any] = json.loads(done.output)
    Result.from_dict(value)
    return done.exit_code, value


def bounds(text: str) -> list[str]:
    eot, eff, crashes = text.split("/")
    return ["--eot", eot, "--eff", eff, "--crashes", crashes]


def sets(value: dict[str, Any]) -> list[list[str]]:
    return [c["faults"] for c in value["counterexamples"]]


RETRY = [
    ["C(a,2)", "O(a,b,1)"],
    ["C(a,2)", "O(a,c,1)"],
    ["C(a,3)", "O(a,b,1)", "O(a,b,2)"],
    ["C(a,3)", "O(a,c,1)", "O(a,c,2)"],
]
TWO_PHASE = [[f"C(C,{t})"] for t in (2, 3, 4)] + [[f"C({n},{t})"] for n in "abd" for t in (1, 2)]
TABLE: list[tuple[str, str, str, list[list[str]]]] = [
    ("simple", "6/3/0", "invalid", [["O(a,b,1)"], ["O(a,c,1)"]]),
    ("retry", "6/3/0", "valid", []),
    ("retry", "6/3/1", "invalid", RETRY),
    ("classic", "6/0/2", "valid", []),
    ("redun", "6/3/1", "valid", []),
    ("ack", "6/3/1", "valid", []),
    ("2pc", "7/3/0", "valid", []),
    ("2pc", "6/0/1", "invalid", TWO_PHASE),
    ("2pc-optimist", "6/0/1", "invalid", TWO_PHASE[3:]),
    ("2pc-timeout", "6/0/1", "invalid", TWO_PHASE[:3]),
    ("2pc-timeout-optimist", "6/0/2", "valid", []),
    ("3pc", "8/0/1", "valid", []),
    ("kafka", "7/4/0", "valid", []),
    ("kafka", "6/4/1", "unknown", []),
    ("bully-le", "10/9/1", "valid", []),
    ("flux", "22/21/1", "valid", []),
]
EXIT = {"valid": 0, "invalid": 1, "unknown": 3}


@pytest.mark.parametrize(("name", "bound", "verdict", "minimal"), TABLE)
def test_the_table(name: str, bound: str, verdict: str, minimal: list[list[str]]) -> None:
    code, value = asked(name, *bounds(bound), "--find-all")
    assert value["verdict"] == verdict
    assert code == EXIT[verdict]
    assert sorted(sets(value)) == sorted(minimal)
    assert value["coverage"]["complete"] == (verdict != "unknown")


COUNTS = [
    ("simple", "6/3/0", 4096, 2048, 1024),
    ("retry", "6/3/0", 4096, 0, 0),
    ("classic", "6/0/2", 91, 0, 36),
    ("2pc", "6/0/1", 21, 9, 1),
    ("3pc", "8/0/1", 29, 0, 0),
    ("3pc", "8/0/2", 323, 18, 0),
]


@pytest.mark.parametrize(("name", "bound", "space", "violated", "vacuous"), COUNTS)
def test_every_schedule(name: str, bound: str, space: int, violated: int, vacuous: int) -> None:
    _, value = asked(name, *bounds(bound), "--exhaustive")
    coverage = value["coverage"]
    assert coverage["executions"] == coverage["fault_space"] == space
    assert (coverage["violated"], coverage["vacuous"]) == (violated, vacuous)
    _, searched = asked(name, *bounds(bound), "--find-all")
    assert sorted(sets(value)) == sorted(sets(searched))


@pytest.mark.slow
def test_every_schedule_of_retry_with_a_crash() -> None:
    _, value = asked("retry", *bounds("6/3/1"), "--exhaustive")
    coverage = value["coverage"]
    assert (coverage["violated"], coverage["vacuous"]) == (3584, 5376)
    assert sets(value) == RETRY


@pytest.mark.parametrize(
    ("name", "bound", "most"),
    [
        ("simple", "4/2/0", 2),
        ("retry", "4/2/1", 3),
        ("classic", "5/3/0", 5),
        ("2pc", "5/0/1", 2),
        ("2pc-ctp", "8/0/1", 3),
        ("3pc", "9/7/1", 10),
        ("kafka", "7/4/1", 10),
    ],
)
def test_executions_to_the_first_violation(name: str, bound: str, most: int) -> None:
    _, value = asked(name, *bounds(bound))
    assert value["verdict"] == "invalid"
    assert value["coverage"]["to_first"] <= most


@pytest.mark.parametrize(
    ("name", "bound", "fewer"),
    [("redun", "11/10/1", 11), ("ack", "8/7/1", 673), ("paxos", "8/3/1", 173)],
)
def test_executions_to_sweep(name: str, bound: str, fewer: int) -> None:
    _, value = asked(name, *bounds(bound))
    assert value["verdict"] == "valid"
    assert value["coverage"]["executions"] < fewer


def test_random_schedules_shrink_what_they_find() -> None:
    _, value = asked("simple", *bounds("6/3/0"), "--faults", "random:50", "--seed", "1")
    assert sets(value) in ([["O(a,b,1)"]], [["O(a,c,1)"]])
    assert value["coverage"]["to_first"] is not None


def test_one_schedule_again() -> None:
    code, value = asked("retry", *bounds("6/3/1"), "--schedule", "C(a,2) O(a,b,1)")
    assert code == 1
    assert sets(value) == [["C(a,2)", "O(a,b,1)"]]
    code, value = asked("retry", *bounds("6/3/1"), "--schedule", "C(a,2)")
    assert code == 3


def test_the_story_and_the_repair() -> None:
    _, value = asked("simple", *bounds("6/3/0"))
    reported = value["counterexamples"][0]
    assert "rbcast that a sends b in round 1 is lost" in reported["words"].lower()
    assert "no retry of rbcast a→b after round 1" in reported["advice"]
    assert "nothing else carries log(b,hello)" in reported["advice"]
    assert reported["frontier"]
    assert "--schedule 'O(a,b,1)'" in reported["replay"]


def test_pages_and_log_are_written(tmp_path: Path) -> None:
    asked("simple", *bounds("6/3/0"), "--out", str(tmp_path))
    for name in ("result.json", "report.html", "search.jsonl"):
        assert (tmp_path / name).exists()
    assert Result.read(tmp_path).scenario == "simple"


MINE = """
from bettong.lineage.protocols.protocol import Event, Given, Protocol, postcondition, precondition

class Nothing(Protocol):
    nodes = ("x", "y")
    e = Event("value")
    def given(self):
        yield Given("x", "e", (1,), 3)
    @precondition("e")
    def pre(self, world, node, value):
        yield (value,)
    @postcondition("e")
    def post(self, world, node, value):
        yield (value,)
"""


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    code, value = asked(f"{file}:Nothing", *bounds("3/2/1"))
    assert (code, value["scenario"]) == (0, "Nothing")
    code, value = asked("bettong.scenarios.protocols.delivery:Simple", *bounds("6/3/0"))
    assert code == 1


def test_what_stands_beside_a_protocols_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text(
        "from beside_it import *\n"
    )  # as a standard module is called
    (tmp_path / "beside_it.py").write_text(MINE)
    _, value = asked(f"{tmp_path}/queue.py:Nothing", *bounds("3/2/1"))
    assert value["verdict"] == "valid"
    assert not hasattr(sys.modules["queue"], "Nothing")


REGISTER = """
from bettong.lineage.protocols.protocol import *

class Register(Protocol):
    nodes = ("writer", "reader", "x")
    write, ask = Message("value"), Message()
    value, answer = State("value"), Message("value", keep=True)
    go = Event("what")

    def given(self):
        yield Given("writer", "go", ("write",), 1)
        yield Given("reader", "go", ("read",), 3)

    @rule("go")
    def begin(self, me, what):
        if what == "write":
            me.write.send("x", 1)
        else:
            me.ask.send("x")

    @rule("write")
    def store(self, me, sender, value):
        me.value.add(value)

    @rule("ask")
    def reply(self, me, sender):
        me.answer.send(sender, 1 if me.value.holds(1) else 0)

    @precondition("answer")
    def pre(self, world, node, sender, value):
        yield "read", value

    @postcondition("answer")
    def post(self, world, node, sender, value):
        if value == 1:
            yield "read", value
"""


@pytest.mark.parametrize("how", [[], ["--exhaustive"]])
def test_goals_that_the_clean_run_does_not_reach_are_no_pass(
    tmp_path: Path, how: list[str]
) -> None:
    """A stale read: it takes the goal away, and brings another of which nothing would be asked."""
    (tmp_path / "register.py").write_text(REGISTER)
    code, value = asked(f"{tmp_path}/register.py:Register", *bounds("6/2/0"), *how)
    assert (code, value["verdict"]) == (3, "unknown")
    assert "under O(writer,x,1) pre(read,0) holds and post(read,0) does not" in value["reason"]


@pytest.mark.parametrize("how", [[], ["--exhaustive"]])
def test_goals_that_fail_without_a_fault_are_no_pass(how: list[str]) -> None:
    code, value = asked("3pc", *bounds("6/0/1"), *how)
    assert (code, value["verdict"]) == (3, "unknown")
    assert "under no fault pre(termination,hello) holds" in value["reason"]
    assert "--eot" in value["reason"]


@pytest.mark.parametrize("how", [[], ["--exhaustive"]])
def test_bounds_without_any_fault_are_no_pass(how: list[str]) -> None:
    code, value = asked("retry", "--eff", "0", "--crashes", "0", *how)
    assert (code, value["verdict"]) == (3, "unknown")
    assert "no fault is within the bounds, and none was tried" in value["reason"]
    assert asked("retry", "--eff", "2", "--crashes", "0", *how)[0] == 0


def test_a_search_goes_on_only_with_the_same_program(tmp_path: Path) -> None:
    program, library, out = tmp_path / "p.ded", tmp_path / "library.ded", tmp_path / "out"
    program.write_text('include "library.ded";\npre("x") :- log("b", _);\npost("x") :- log(_, 1);')
    resend = "begin(A, N)@next :- begin(A, N);\n"
    text = 'begin("a", 1)@1;\nlog("b", N)@async :- begin("a", N);\nlog(A, N)@next :- log(A, N);\n'
    words = [str(program), "--nodes", "a,b", *bounds("5/3/1"), "--out", str(out)]
    library.write_text(text + resend)
    _, value = asked(*words, "--budget", "2")
    assert (value["verdict"], value["coverage"]["executions"]) == ("unknown", 2)
    library.write_text(text + 'log("b", 2) :- begin("b", _);\nbegin("b", 1)@2;\n')
    asked(*words, "--budget", "1")
    first = json.loads((out / "search.jsonl").read_text().splitlines()[0])
    assert len((out / "search.jsonl").read_text().splitlines()) == 2, first  # it began anew


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["simpel"], "did you mean"),
        (["simple", "--eot", "0"], "EOT must be at least 1"),
        (["simple", "--eot", "3", "--eff", "4"], "EFF must lie between"),
        (
            ["simple", "--eff", "0", "--duplicates", "1"],
            "--duplicates 1: only what is sent in rounds",
        ),
        (["simple", "--eff", "1", "--delays", "2"], "with EFF at 1 that is nothing: give --eff 2"),
        (["simple", "--crashes", "9"], "crashes must lie between"),
        (["simple", "--crash-model", "full-stopp"], "did you mean 'full-stop'"),
        (["simple", "--budget", "soon"], "--budget soon"),
        (["simple", "--faults", "random"], "random:N"),
        (["simple", "--faults", "random:3", "--exhaustive"], "choose one"),
        (["simple", "--schedule", "O(a,b,7)"], "no fault O(a,b,7)"),
        (["redun", *["--eot", "9", "--eff", "9"], "--exhaustive"], "schedules: lower them"),
        (["no_such_file.py:Class"], "there is no such Python file"),
        (["bettong.no_such:Class"], "cannot be loaded: ModuleNotFoundError"),
        (["bettong.scenarios.protocols.delivery:Simpel"], "did you mean Simple"),
        (["simple", "retry"], "name one protocol"),
    ],
)
def test_mistakes_get_one_clear_line(words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("(", r"\(").replace(")", r"\)")):
        asked(*words)
