"""The Dedalus parser: what it reads, what it refuses, and that it never does anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.lineage.dedalus import DedalusError
from bettong.lineage.dedalus.loader import load, load_text
from bettong.lineage.dedalus.lowering import lower
from bettong.lineage.dedalus.parser import parse
from bettong.lineage.dedalus.strata import stratify
from bettong.lineage.errors import UsageError
from bettong.scenarios import dedalus

PROGRAM = """
// a comment
include_me(A, "x y", 3)@next :- r(A, B, _), notin s(A, B)@1, B != "z", /* another
one */ A == B;
total(A, sum<X>, count<Y>) :- r(A, X, Y), X + 2 * (Y - 1) >= -4;
msg(B, A)@async :- r(A, B, C), C < 10 / 2;
r("a", "b", 1)@1;
s("a", "b")@12;
"""


def check(text: str) -> None:
    stratify(lower(load_text(text, "p.ded")))


def test_a_program_reads_as_it_is_written() -> None:
    clauses = [str(c) for c in parse(PROGRAM, "p.ded")]
    assert clauses[0] == (
        'include_me(A, "x y", 3)@next :- r(A, B, _), notin s(A, B)@1, B != "z", A == B;'
    )
    assert clauses[1] == ("total(A, sum<X>, count<Y>) :- r(A, X, Y), (X + (2 * (Y - 1))) >= -4;")
    assert clauses[2] == "msg(B, A)@async :- r(A, B, C), C < (10 / 2);"
    assert [c.position.line for c in parse(PROGRAM, "p.ded")] == [3, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("p(X) :- q(X)", 1, "expected ',' or ';' after a body term, found the end of the file"),
        ("p(X) :- q(X).\n", 1, "unexpected character '.'"),
        ('p("a)@1;', 1, "a string is not closed"),
        ("\n/* never closed", 2, "a comment is not closed"),
        ("p(X) :- q(X), X = 3;", 1, "equality is written =="),
        ('p("a");', 1, "a fact needs the round in which it holds: p(…)@1"),
        ('p("a")@next;', 1, "a fact needs the round"),
        ("p(X)@1;", 1, "'X' is neither"),
        ("p(X)@3 :- q(X);", 1, "only facts are given @3"),
        ("p(X)@nex :- q(X);", 1, "did you mean 'next'?"),
        ("p(X) :- q(X)@async;", 1, "@async belongs at a rule's head"),
        ("notin p(X) :- q(X);", 1, "'notin' belongs in a rule's body"),
        ("p(X, cuont<Y>) :- q(X, Y);", 1, "did you mean 'count'?"),
        ("p(X) :- q(X, count<Y>);", 1, "an aggregate belongs in a rule's head"),
        ("p(X, count<_>) :- q(X, _);", 1, "expected a variable in count<…>"),
        ("p(X) :- ;", 1, "expected a variable, a number"),
        ("p() :- q(X);", 1, "expected a variable"),
        ("p(X) : q(X);", 1, "unexpected character ':'"),
        ("p(X) q(X);", 1, "expected ':-' or ';' after p(…), found 'q'"),
        ("p(X)@0 ;", 1, "rounds count from 1"),
        ("p(X, " + "(" * 5000 + "X" + ")" * 5000 + ") :- q(X);", 1, "nested deeper"),
        ("p(" + "+".join(["X"] * 5000) + ") :- q(X);", 1, "more than 200 operators"),
        ("p(X) :- " + ",".join(["q(X)"] * 5000) + ";", 1, "more than 100 terms"),
        ("p(" + ",".join(["X"] * 5000) + ") :- q(X);", 1, "more than 100 columns"),
        ("p(X, 9" + "9" * 5000 + ") :- q(X);", 1, "digits"),
        ("include p;", 1, "expected '('"),
    ],
)
def test_a_mistake_has_a_place_and_says_what_was_expected(text: str, line: int, words: str) -> None:
    with pytest.raises(DedalusError) as error:
        parse(text, "p.ded")
    assert str(error.value).startswith(f"p.ded:{line}: ")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('p("a", 1)@1;\nq(X) :- p(X);', 2, "p has 1 column here, but 2 columns at p.ded:1"),
        ('crash("a")@1;', 1, "crash has 1 column here, but 3 columns as a built-in"),
        ('crash("a", "b", 1)@1;', 1, "crash is built in and cannot be written"),
        ('log("a")@1;\np(X) :- lgo(X);', 2, "fills the relation 'lgo'; did you mean 'log'?"),
        ('log("a")@1;\np(X) :- log(X), notin ack(X);', 2, "fills the relation 'ack'"),
        ('q("a")@1;\np(X, Y) :- q(X);', 2, "unsafe variable 'Y' in the head of p"),
        ('q("a")@1;\np(X) :- q(X), notin q(Y);', 2, "write _ if any value will do"),
        ('q("a")@1;\np(X) :- notin q(X);', 2, "unsafe variable 'X'"),
        ('q("a")@1;\np(X) :- q(X), X < Z;', 2, "unsafe variable 'Z' in the comparison"),
        ('q("a")@1;\np(X, count<N>) :- q(X);', 2, "unsafe variable 'N'"),
        ('q("a")@1;\np(_) :- q(_);', 2, "'_' cannot stand in the head"),
        ('q("a")@1;\np(X) :- q(X), X != _;', 2, "'_' cannot stand in a comparison"),
        ('q("a", 1)@1;\np(X)@async :- q(_, X);', 2, "must name its sender"),
        ('q("a")@1;\np(X) :- q(X), notin r(X);\nr(X) :- p(X);', 2, "not stratifiable"),
        ('q("a", 1)@1;\np(X, sum<N>) :- q(X, N), r(X);\nr(X) :- p(X, _);', 2, "an aggregate"),
        ('q("a")@1;\np(X) :- X == "a";', 2, "names at least one relation"),
    ],
)
def test_a_program_that_means_nothing_is_refused(text: str, line: int, words: str) -> None:
    with pytest.raises(DedalusError) as error:
        check(text)
    assert str(error.value).startswith(f"p.ded:{line}: ")
    assert words in str(error.value)


def test_a_circle_through_rounds_is_stratified() -> None:
    check('q("a")@1;\np(X)@next :- q(X), notin r(X);\nr(X) :- p(X);')


def test_includes_are_found_beside_the_file_and_beside_the_first_one(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "main.ded").write_text('include "lib/one.ded";\np(X) :- q(X), r(X);\n')
    (tmp_path / "lib" / "one.ded").write_text('include "two.ded";\ninclude "three.ded";\n')
    (tmp_path / "lib" / "two.ded").write_text('include "../main.ded";\nq("a")@1;\n')
    (tmp_path / "three.ded").write_text('r("a")@1;\n')
    program = load([tmp_path / "main.ded"])
    assert len(program.rules) == 1 and len(program.facts) == 2
    assert {Path(f).name for f in program.included} == {"one.ded", "two.ded", "three.ded"}


def test_a_library_may_leave_a_relation_to_its_user_but_not_misspell_one(tmp_path: Path) -> None:
    (tmp_path / "main.ded").write_text('include "lib.ded";\nset("a")@1;\n')
    library = tmp_path / "lib.ded"
    library.write_text("on(X)@next :- set(X), notin cancel(X);\n")
    lower(load([tmp_path / "main.ded"]))
    library.write_text("on(X)@next :- set(X), notin sett(X);\n")
    with pytest.raises(DedalusError, match=r"lib.ded:1: .*'sett'; did you mean 'set'"):
        lower(load([tmp_path / "main.ded"]))


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 1_000_001])
def test_files_that_are_no_programs_are_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "p.ded"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"p\.ded"):
        load([file])


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such Dedalus file"):
        load([tmp_path / "none.ded"])
    (tmp_path / "p.ded").write_text('\ninclude "none.ded";')
    with pytest.raises(DedalusError, match=r"p\.ded:2: cannot include 'none\.ded'"):
        load([tmp_path / "p.ded"])


TEXTS = [dedalus.path(name).read_text(encoding="utf-8") for name in dedalus.names()]
MARKS = ["(", ")", ",", ";", ":-", "@", "@next", "notin ", "<", ">", '"', "_", "1", "/*", "//", "="]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from([*TEXTS, PROGRAM]))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.sampled_from([0, 0, 1, 2, 10, 10**6])))
        text = text[:at] + draw(st.sampled_from(["", *MARKS]) | st.text(max_size=5)) + text[end:]
    return text


@given(damaged())
def test_a_damaged_program_is_accepted_or_refused_with_one_clear_error(text: str) -> None:
    try:
        check(text)
    except DedalusError as e:
        assert str(e).startswith("p.ded:")
        assert 1 <= e.position.line <= text.count("\n") + 1


@given(st.text(alphabet=st.sampled_from('pqXY_,;()@:-<>+*/!="1 \nn'), max_size=60))
def test_noise_is_refused_with_one_clear_error(text: str) -> None:
    try:
        check(text)
    except DedalusError as e:
        assert str(e).startswith("p.ded:")
