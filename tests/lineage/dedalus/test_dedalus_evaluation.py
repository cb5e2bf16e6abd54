"""The Dedalus evaluator against a naive reference, and lineage against runs."""

from __future__ import annotations

import pytest
from dedalus_programs import NODES, follows, programs
from dedalus_reference import Reference
from hypothesis import assume, given
from hypothesis import strategies as st

from bettong.lineage.dedalus import DedalusError, DedalusProgram
from bettong.lineage.dedalus.loader import load_text
from bettong.lineage.faults import CLEAN, FaultSet
from bettong.lineage.protocols.executor import RoundExecutor
from bettong.lineage.protocols.failure_spec import CrashModel, FailureSpec
from bettong.lineage.protocols.rounds import Play


def compiled(text: str) -> DedalusProgram:
    return DedalusProgram(load_text(text, "p.ded"), NODES)


def shown(play: Play) -> set[tuple[str, int]]:
    return {
        (fact, time)
        for held in play.facts.values()
        for fact, times in held.items()
        for time in times
    }


@st.composite
def schedules(draw: st.DrawFn, spec: FailureSpec) -> FaultSet:
    faults = draw(st.lists(st.sampled_from(sorted(spec.faults)), unique=True, max_size=4))
    assume(spec.bounds.allow(spec.faults[f] for f in faults))
    return frozenset(faults)


@given(programs(), st.data())
def test_every_fact_of_every_round_is_that_of_the_reference(text: str, data: st.DataObject) -> None:
    program = compiled(text)
    spec = FailureSpec(NODES, 4, 3, 1)
    schedule = data.draw(schedules(spec))
    play = program.play(spec, schedule)
    reference = Reference(load_text(text, "p.ded"), spec, schedule)
    expected = {
        (f"{relation}({','.join(map(str, row))})", time)
        for time in range(1, 5)
        for relation, row in reference.rounds[time]
        if relation != "crash"
    }
    assert shown(play) == expected
    last = {(relation, ",".join(map(str, row))) for relation, row in reference.rounds[4]}
    assert {("pre", g) for g in play.judged.pre} == {x for x in last if x[0] == "pre"}
    assert {("post", g) for g in play.judged.post} == {x for x in last if x[0] == "post"}


@given(programs(), st.sampled_from(["send-stop", "full-stop", "restart"]), st.data())
def test_what_a_lineage_says_of_another_schedule_is_so(
    text: str, model: CrashModel, data: st.DataObject
) -> None:
    program = compiled(text)
    spec = FailureSpec(NODES, 4, 3, 1, model, delays=1, duplicates=1)
    goals = program.play(spec, CLEAN, lineage=False).judged.post
    schedule = data.draw(schedules(spec))
    play = program.play(spec, schedule, explain=goals)
    assert play.lineage is not None
    for other in [schedule, CLEAN, *(data.draw(schedules(spec)) for _ in range(6))]:
        claimed = follows(play.lineage, other)
        seen = program.play(spec, other, lineage=False).judged
        for goal in goals | play.judged.post:
            if f"post({goal})" in claimed:
                assert goal in seen.post, (sorted(schedule), sorted(other), goal)
            if f"!pre({goal})" in claimed:
                assert goal not in seen.pre, (sorted(schedule), sorted(other), goal)
            if other == schedule:
                assert (f"post({goal})" in claimed) == (goal in play.judged.post)
                assert goal in play.judged.pre or goal not in goals or f"!pre({goal})" in claimed


@given(programs(), st.data())
def test_worlds_lead_where_plays_lead(text: str, data: st.DataObject) -> None:
    program = compiled(text)
    spec = FailureSpec(NODES, 4, 3, 1, data.draw(st.sampled_from(["send-stop", "full-stop"])))
    schedule = data.draw(schedules(spec))
    world = program.start()
    faults = spec.rounds(schedule)
    for time in range(1, 4):
        world = program.step(world, time, faults[time - 1])
    judged = program.judge(world, 4, faults[3], frozenset(spec.crash_times(schedule)))
    assert judged == program.play(spec, schedule, lineage=False).judged


GOAL = 'pre("x") :- out(_, _);\npost("x") :- out(_, _);\n'


def run(text: str, eot: int = 3, **bounds: int) -> Play:
    spec = FailureSpec(NODES, eot, **bounds)  # type: ignore[arg-type]
    return compiled(text + GOAL).play(spec, CLEAN)


def test_arithmetic_rounds_towards_zero_and_binds_as_it_should() -> None:
    play = run(
        'n("a", 7)@1;\nout(A, X / 2 - 3 * 2) :- n(A, X);\nout(A, Y) :- n(A, X), Y == -X / 2;'
    )
    assert {f for f, t in shown(play) if t == 1} >= {"out(a,-3)"}


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("out(A, X / 0) :- n(A, X);", "a division by zero, in out (p.ded:2)"),
        ('out(A, "s" + X) :- n(A, X);', "'+' needs numbers, but \"s\" is a string"),
        ('out(A, X) :- n(A, X), X < "s";', "cannot be compared: a number and a string"),
        ("out(A, X * X * X) :- n(A, X);", "leaves the range of 64 bits"),
        ("out(A, X) :- n(A, X);\nout(A, X + 1) :- out(A, X);", "feed itself without end"),
        ('m(A, "t") :- n(A, _);\nm(A, X) :- n(A, X);\nout(A, max<X>) :- m(A, X);', "compares a"),
        ("out(A, sum<B>) :- n(A, _), n(B, _);", 'needs numbers, not "a"'),
    ],
)
def test_what_cannot_be_computed_is_one_clear_error(rule: str, words: str) -> None:
    with pytest.raises(DedalusError) as error:
        run(f'n("a", 9000000000)@1;\n{rule}\n')
    assert words in str(error.value)
    assert str(error.value).startswith("p.ded:")


def test_aggregates_range_over_distinct_values() -> None:
    play = run(
        'n("a", 1, "u")@1;\nn("a", 1, "v")@1;\nn("a", 3, "v")@1;\n'
        "c(A, count<X>) :- n(A, X, _);\ns(A, sum<X>) :- n(A, X, _);\n"
        "m(A, min<X>, max<X>) :- n(A, X, _);\nout(A, X) :- n(A, X, _);\n"
    )
    found = {f for f, t in shown(play) if t == 1}
    assert {"c(a,2)", "s(a,4)", "m(a,1,3)"} <= found


def test_aggregates_of_messages_are_made_where_they_arrive() -> None:
    play = run(
        'n("a", "b")@1;\nn("b", "b")@1;\nseen(To, count<From>)@async :- n(From, To);\n'
        "out(A, N) :- seen(A, N);\n"
    )
    assert ("seen(b,2)", 2) in shown(play)


@pytest.mark.parametrize(("volatile", "left"), [(frozenset(), True), ({"top"}, False)])
def test_what_an_aggregate_has_made_is_lost_with_the_relation(
    volatile: frozenset[str], left: bool
) -> None:
    text = 'n("a", 1)@1;\ntop(A, max<X>)@next :- n(A, X);\nout(A, X) :- top(A, X);\n'
    program = DedalusProgram(load_text(text + GOAL, "p.ded"), NODES, volatile=frozenset(volatile))
    spec = FailureSpec(NODES, 3, 0, 1, "restart")
    play = program.play(spec, frozenset({"C(a,2)"}))
    assert (("top(a,1)", 2) in shown(play)) == left


def test_crash_is_known_everywhere_from_the_first_round_and_messages_to_oneself_arrive() -> None:
    text = (
        'n("a", "a")@1;\nsaid(B, A)@async :- n(A, B);\nn(A, B)@next :- n(A, B);\n'
        "out(X, Y) :- said(X, Y);\nknown(S, N, T) :- crash(S, N, T);\n"
    )
    program = compiled(text + GOAL)
    spec = FailureSpec(NODES, 3, 0, 1)
    play = program.play(spec, frozenset({"C(a,2)"}))
    assert {("known(b,a,2)", 1), ("known(a,a,2)", 3), ("out(a,a)", 3)} <= shown(play)


def test_clock_tells_deliveries() -> None:
    text = 'n("a", 1)@1;\nout(B, T) :- clock("a", B, T);\n'
    program = compiled(text + GOAL)
    spec = FailureSpec(NODES, 3, 2, 0)
    play = program.play(spec, frozenset({"O(a,b,1)"}), explain=frozenset({"x"}))
    assert {f for f in shown(play) if f[0].startswith("out")} == {
        ("out(a,1)", 2),
        ("out(a,2)", 3),
        ("out(b,2)", 3),
    }


def test_a_crash_that_leads_to_later_rounds_is_played_but_not_stepped() -> None:
    program = compiled('n("a", 1)@1;\nout(A, T)@next :- n(A, _), crash(A, "b", T);\n' + GOAL)
    spec = FailureSpec(NODES, 2, 0, 1)
    assert program.play(spec, frozenset({"C(b,1)"})).judged.post == {"x"}
    with pytest.raises(Exception, match="without --exhaustive"):
        program.step(program.start(), 1, spec.rounds(CLEAN)[0])


def test_programs_without_a_question_are_refused() -> None:
    with pytest.raises(DedalusError, match=r"p\.ded:1: .*expected a rule for 'pre'"):
        compiled('n("a")@1;')
    with pytest.raises(DedalusError, match=r"p\.ded:3: post has 2 columns and pre has 1"):
        compiled('n("a")@1;\npre(A) :- n(A);\npost(A, A) :- n(A);')


def test_a_message_to_what_is_no_node_is_refused() -> None:
    text = 'n("a", "c")@1;\nn("b", "a")@1;\nout(B, A)@async :- n(A, B);\n'
    with pytest.raises(DedalusError, match=r"p\.ded:3: in round 1 a sends out to 'c', which is"):
        run(text)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ('out("a", N)@next :- limit(N);', r"p\.ded:2: in round 1 out stays at 3, which is none of"),
        ('out("a", N)@async :- limit(N);', r"p\.ded:2: in round 1 out is sent by 3, which is none"),
    ],
)
def test_what_is_at_no_node_does_not_vanish(rule: str, says: str) -> None:
    with pytest.raises(DedalusError, match=says):
        run("limit(3)@1;\n" + rule + "\n")


def test_where_the_postcondition_fails_without_a_fault_that_is_said() -> None:
    text = 'n("a", 1)@1;\npre(A) :- n(A, _)@1;\npost(A) :- n(A, 2);\n'
    program = compiled(text)
    execution = RoundExecutor(program, FailureSpec(NODES, 3)).run()
    assert execution.outcome == "vacuous"
    assert execution.note == "the precondition holds for a, but the postcondition does not"
