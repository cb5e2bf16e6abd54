"""Random small protocols, as source text: the simulator reads what a rule does from its code."""

from __future__ import annotations

import linecache
from typing import Any

from hypothesis import strategies as st

from bettong.lineage.protocols import protocol
from bettong.lineage.protocols.protocol import Protocol

HEAD = """
class Drawn(Protocol):
    nodes = {nodes!r}
    s0 = State("x")
    s1 = State("x", durable=False)
    s2 = State("x")
    e0 = Event("x")
    e1 = Event("x")
    m0 = Message("x")
    m1 = Message("x", keep=True)
    timer = Timer("x")

    def given(self):
        return [Given(n, r, (x,), t) for n, r, x, t in {given!r}]

    @precondition({pre!r})
    def pre(self, world, node, *row):
        if {pre_if}:
            yield (row[-1],)

    @postcondition({post!r})
    def post(self, world, node, *row):
        if {post_if}:
            yield (row[-1],)
"""
STATES = ("s0", "s1", "s2", "e0", "e1")
ALL = (*STATES, "m0", "m1", "timer")
# what may be added in a round by a rule that reads ...: nothing that comes before it
RANK = {"m0": 0, "m1": 0, "timer": 0, "e0": 1, "s0": 2, "s1": 3, "e1": 4, "s2": 5}


def _pattern(relation: str, known: str) -> str:
    return f"..., {known}" if relation.startswith("m") else known


@st.composite
def _rule(draw: st.DrawFn, number: int, nodes: tuple[str, ...]) -> str:
    trigger = draw(st.sampled_from(ALL))
    arguments = "sender, x" if trigger.startswith("m") else "x"
    lines = [f"    @rule({trigger!r})", f"    def r{number}(self, me, {arguments}):"]
    read = [trigger]
    for _ in range(draw(st.integers(0, 2))):
        relation = draw(st.sampled_from(ALL))
        read.append(relation)
        asked = f"me.{relation}.holds({_pattern(relation, draw(st.sampled_from(('x', '...'))))})"
        if draw(st.booleans()):
            asked = f"not {asked}"
        if draw(st.integers(0, 5)) == 0:
            asked = f"me.{relation}.count() >= {draw(st.integers(0, 2))}"
        lines.append(f"        if {asked}:")
        lines.append("            pass")
        lines.append("        else:")
        lines.append("            return")
    if draw(st.integers(0, 3)) == 0:
        lines.append(f"        if me.name != {draw(st.sampled_from(nodes))!r}: return")
    lowest = max(RANK[r] for r in read)
    later = [r for r in STATES if RANK[r] > lowest]
    verbs = ["next", "send", "send", "send", "start"]
    verbs += ["add", "add"] if later else []
    verbs += ["discard", "cancel"]
    verb = draw(st.sampled_from(verbs))
    value = draw(st.sampled_from(("x", "x", "1 - x")))
    if verb == "add":
        lines.append(f"        me.{draw(st.sampled_from(later))}.add({value})")
    elif verb == "next":
        lines.append(f"        me.{draw(st.sampled_from(STATES))}.next({value})")
    elif verb == "discard":
        lines.append(f"        me.{draw(st.sampled_from(('s0', 's1', 's2')))}.discard({value})")
    elif verb == "start":
        lines.append(f"        me.timer.start({value}, {draw(st.integers(2, 3))})")
    elif verb == "cancel":
        lines.append(f"        me.timer.cancel({value})")
    else:
        targets = draw(st.sampled_from((*(repr((n,)) for n in nodes), "self.nodes")))
        message = draw(st.sampled_from(("m0", "m1")))
        lines.append(f"        for to in {targets}:")
        lines.append(f"            me.{message}.send(to, {value})")
    return "\n".join(lines) + "\n"


@st.composite
def protocols(draw: st.DrawFn, nodes: tuple[str, ...] = ("a", "b", "c")) -> tuple[Protocol, str]:
    """A protocol, and its source."""
    given = [
        (draw(st.sampled_from(nodes)), relation, draw(st.integers(0, 1)), draw(st.integers(1, 2)))
        for relation in draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=3))
    ]
    pre = draw(st.sampled_from(STATES))
    post = draw(st.sampled_from(STATES))
    other = draw(st.sampled_from(STATES))
    conditions = (
        "True",
        "not world.crashed(node)",
        f"world.{other}.holds(..., row[-1])",
        f"not world.{other}.holds(..., row[-1])",
        f"all(world.{other}.holds(n, row[-1]) for n in self.nodes)",
    )
    source = HEAD.format(
        nodes=nodes,
        given=given,
        pre=pre,
        post=post,
        pre_if=draw(st.sampled_from(conditions)),
        post_if=draw(st.sampled_from(conditions)),
    )
    for number in range(draw(st.integers(2, 6))):
        source += "\n" + draw(_rule(number, nodes))
    names: dict[str, Any] = {**vars(protocol), "__name__": "drawn"}
    linecache.cache["<drawn>"] = (len(source), None, source.splitlines(True), "<drawn>")
    exec(compile(source, "<drawn>", "exec"), names)
    return names["Drawn"](), source
