"""``bettong protocol`` on Dedalus files: the same answers, and one line for a mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bettong.scenarios import dedalus

MAIN = "from bettong.harness.cli import main; main()"


def protocol(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, "protocol", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_is_searched_like_any_protocol() -> None:
    file = str(dedalus.path("retry"))
    bounds = "--eot 6 --eff 3 --crashes 1"
    run = protocol(file, *bounds.split(), "--find-all", "--json")
    assert run.returncode == 1, run.stderr
    result = json.loads(run.stdout)
    assert [c["faults"] for c in result["counterexamples"]] == [
        ["C(a,2)", "O(a,b,1)"],
        ["C(a,2)", "O(a,c,1)"],
        ["C(a,3)", "O(a,b,1)", "O(a,b,2)"],
        ["C(a,3)", "O(a,c,1)", "O(a,c,2)"],
    ]
    assert result["coverage"]["complete"]
    assert result["coverage"]["fault_space"] == 65536


def test_all_schedules_of_a_program_are_run_and_counted() -> None:
    file = str(dedalus.path("2pc"))
    run = protocol(
        file,
        *[
            "--nodes",
            "a,b,C,d",
            "--eot",
            "6",
            "--eff",
            "0",
            "--crashes",
            "1",
            "--exhaustive",
            "--json",
        ],
    )
    assert run.returncode == 1, run.stderr
    coverage = json.loads(run.stdout)["coverage"]
    assert (coverage["executions"], coverage["violated"], coverage["vacuous"]) == (21, 9, 1)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("pre(X) :- log(X), notin lgo(X);\n", 3, "did you mean 'log'?"),
        ("log(X) :- log(X), notin gone(X);\ngone(X) :- log(X);\n", 3, "not stratifiable"),
        ("log(X, Y)@next :- log(X);\n", 3, "columns"),
        ("log(X)@next :- log(X)\n", 4, "expected ',' or ';'"),
        ("pre(X) :- log(X);\n", 3, "expected a rule for 'post'"),
    ],
)
def test_a_mistake_in_a_file_is_one_line_with_its_place(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    file = tmp_path / "broken.ded"
    file.write_text('// a log\nlog("a")@1;\n' + text)
    run = protocol(str(file), "--nodes", "a,b", "--eot", "3")
    assert run.returncode == 2
    assert run.stdout == ""
    assert len(run.stderr.strip().splitlines()) == 1
    assert f"broken.ded:{line}: " in run.stderr
    assert words in run.stderr


LEASE = """
lease("a","L")@1;
watch("b","L",0)@1;
lease(A,L)@next :- lease(A,L);
beat("b",L)@async :- lease("a",L);
watch(B,L,0)@next :- watch(B,L,_), beat(B,L);
watch(B,L,N+1)@next :- watch(B,L,N), notin beat(B,L);
lease(B,L) :- watch(B,L,N), N > 1;
pre("held",L) :- lease("a",L);
post("held",L) :- lease("a",L);
pre("split",L) :- lease("a",L), lease("b",L);
post("split",L) :- lease("a",L), lease("b",L), never("a",L);
never(A,L) :- lease(A,L), L == "no";
"""


@pytest.mark.parametrize("how", [[], ["--exhaustive"]], ids=["search", "exhaustive"])
def test_a_goal_that_only_a_fault_asks_for_is_no_guarantee(how: list[str], tmp_path: Path) -> None:
    (program := tmp_path / "lease.ded").write_text(LEASE)
    within = ["--eot", "6", "--eff", "5", "--crashes", "0", "--out", str(tmp_path / "out")]
    run = protocol(str(program), "--nodes", "a,b", *within, *how, "--json")
    assert run.returncode == 3
    value = json.loads(run.stdout)
    assert value["verdict"] == "unknown"
    assert "pre(split,L) holds and post(split,L) does not" in value["reason"]
