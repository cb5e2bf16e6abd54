"""Why the goals of a simulated run hold: its lineage, woven backwards from the last round.

A call of a rule derives what it writes from its trigger facts and from what it had read by then.
The absence of a fact is derived too, from everything that could have brought the fact about and
did not: what the calls that might have written it read instead, the absence of facts that would
have caused further calls, the messages that were lost or not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bettong.lineage.graph import Lineage
from bettong.lineage.protocols.failure_spec import FailureSpec, RoundFaults, delay, duplication
from bettong.lineage.protocols.local import (
    CANCEL,
    DISCARD,
    TICKING,
    Arguments,
    Call,
    Fact,
    LocalRules,
    LocalStep,
    Read,
    matches,
)
from bettong.lineage.protocols.protocol import OTHERS, Message, Rule, RuleKind, Timer
from bettong.lineage.protocols.rounds import (
    alive,
    as_text,
    crashed,
    delivery,
    loss,
    remembering,
    running,
)
from bettong.lineage.protocols.world import CRASHED, condition_calls, goal_calls

Rows = frozenset[Arguments]
NONE: Rows = frozenset()


def _text(arguments: Arguments) -> str:
    return ",".join("_" if a is ... else as_text([a]) for a in arguments)


class LineageBuilder:
    """Builds the lineage of one run.

    Arguments: the protocol's rules, the failure specification, what the schedule meant for each
    round, the nodes that crashed, and for each round the step of each node.
    """

    def __init__(
        self,
        rules: LocalRules,
        spec: FailureSpec,
        rounds: Sequence[RoundFaults],
        crashed_nodes: frozenset[str],
        steps: Sequence[dict[str, LocalStep]],
    ) -> None:
        self.lineage = Lineage()
        self._rules = rules
        self._relations = rules.declared.relations
        self._spec = spec
        self._rounds = rounds
        self._crashed = crashed_nodes
        self._steps = steps
        self._todo: list[Callable[[], None]] = []
        self._local = rules.declared.of_kind("rule")
        for now in steps:
            for step in now.values():
                step.index()

    def build_lineage(self, explain: Iterable[str] = ()) -> Lineage:
        """Lineage of all goals of the postcondition that hold, of the preconditions that do, and
        of the absence of those in ``explain``."""
        last = self._steps[-1]
        protocol, declared = self._rules.protocol, self._rules.declared
        kinds: tuple[RuleKind, ...] = ("pre", "post")
        for kind in kinds:
            for call, goal, after in goal_calls(
                protocol,
                declared,
                kind,
                last,
                self._crashed,
            ):
                self.lineage.firing(f"{kind}({goal})", self._world_premises(call, after), call.rule)
        for goal in sorted(explain):
            self.lineage.fact(f"!pre({goal})", absent=True)
            self._no_precondition(goal)
        while self._todo:
            self._todo.pop()()
        return self.lineage

    # facts

    def _step(self, node: str, time: int) -> LocalStep:
        return self._steps[time - 1][node]

    def _stopped(self, node: str, time: int) -> bool:
        return node in self._rounds[time - 1].stopped

    def _running(self, node: str, time: int) -> list[str]:
        if not self._spec.stopping(node, time):
            return []
        return [running(self.lineage, self._spec, node, time)]

    def _is_stopped(self, node: str, time: int) -> str:
        return self.lineage.leaf(
            f"{node} stopped@{time}", self._spec.stopping(node, time), lost=True
        )

    def fact(self, node: str, time: int, fact: Fact) -> str:
        """Id of a fact that held; its derivations follow."""
        name, arguments = fact
        id = f"{name}({_text((node, *arguments))})@{time}"
        if id not in self.lineage.graph:
            self.lineage.fact(id)
            self._todo.append(lambda: self._derive(id, node, time, fact))
        return id

    def _derive(self, id: str, node: str, time: int, fact: Fact) -> None:
        step = self._step(node, time)
        for call, after in step.producers.get(("add", "", fact), ()):
            self.lineage.firing(id, self._premises(node, time, call, after), call.rule)
        if fact not in step.begun:
            return
        if self._spec.crash_model == "send-stop":
            self._begin(id, node, time, fact)
        else:
            self.lineage.firing(id, [self._begun(node, time, fact)], "begin")

    def _begun(self, node: str, time: int, fact: Fact) -> str:
        """Id of: the node begins the round with this fact. Distinguished from what it only derives,
        because a stopped node goes on with the one and not with the other."""
        id = f"begin {fact[0]}({_text((node, *fact[1]))})@{time}"
        if id not in self.lineage.graph:
            self.lineage.fact(id)
            self._todo.append(lambda: self._begin(id, node, time, fact))
        return id

    def _begin(self, id: str, node: str, time: int, fact: Fact) -> None:
        relation = self._relations.get(fact[0])
        if not self._stopped(node, time):
            if isinstance(relation, Message):
                self._received(id, node, time, fact)
            for given in self._rules.protocol.given():
                if (given.node, given.round) == (node, time) and (
                    given.relation,
                    given.arguments,
                ) == fact:
                    leaf = self.lineage.leaf(f"given {id}", self._spec.stopping(node, time))
                    self.lineage.firing(id, [leaf], "given")
        if time > 1:
            self._carried(id, node, time, fact)

    def _received(self, id: str, node: str, time: int, fact: Fact) -> None:
        name, (sender, *content) = fact
        message = (name, tuple(content))
        for sent in (time - 1, time - 2):
            if sent < 1 or self._stopped(sender, sent):
                continue
            if message not in self._step(sender, sent).sent.get(node, ()):
                continue
            faults, link = self._rounds[sent - 1], (sender, node)
            premises = [self._sent(sender, node, sent, message)]
            if sender != node:
                late = sent == time - 2
                again = late and link in faults.duplicated
                if link in faults.lost or ((link in faults.delayed) != late and not again):
                    continue
                premises.append(delivery(self.lineage, self._spec, sender, node, sent, time))
                if late:
                    premises.append(self._late(sender, node, sent))
            elif sent == time - 2:
                continue
            else:
                premises += self._running(node, time)  # a stopped node hears not even itself
            self.lineage.firing(id, premises, "receive")

    def _late(self, sender: str, receiver: str, sent: int) -> str:
        return self.lineage.leaf(
            f"late {sender}->{receiver}@{sent}",
            self._disordering(sender, receiver, sent),
            lost=True,
        )

    def _disordering(self, sender: str, receiver: str, sent: int) -> list[Any]:
        if sent >= self._spec.eff:
            return []
        found = []
        if self._spec.delays:
            found.append(delay(sender, receiver, sent))
        if self._spec.duplicates:
            found.append(duplication(sender, receiver, sent))
        return found

    def _sent(self, sender: str, receiver: str, time: int, message: Fact) -> str:
        name, content = message
        id = f"{name}({sender}->{receiver}{',' * bool(content)}{_text(content)})@{time}"
        if id not in self.lineage.graph:
            self.lineage.fact(id)
            step = self._step(sender, time)
            for call, after in step.producers[("send", receiver, message)]:
                premises = self._premises(sender, time, call, after)
                self.lineage.firing(id, premises + self._running(sender, time), call.rule)
        return id

    def _carried(self, id: str, node: str, time: int, fact: Fact) -> None:
        name, arguments = fact
        before = self._step(node, time - 1)
        relation = self._relations.get(name)
        memory = []
        durable = relation is not None and relation.keep and relation.durable
        if not durable and self._spec.forgetting(node, time):
            memory.append(remembering(self.lineage, self._spec, node, time))
        running = self._running(node, time - 1)
        discarding = name in self._rules.discarding
        if self._stopped(node, time - 1):
            if fact in before.begun:
                premises = [self._begun(node, time - 1, fact)]
                if relation is None or not relation.keep or discarding:
                    premises.append(self._is_stopped(node, time - 1))
                self.lineage.firing(id, premises + memory, "stays")
            return
        kept = relation is not None and relation.keep and fact in before.facts
        if kept and (name + DISCARD, arguments) not in before.facts:
            spared = []
            if discarding:
                spared = [self.absent(node, time - 1, name + DISCARD, arguments)]
            if fact in before.begun and running:
                premises = [self._begun(node, time - 1, fact), *spared]
                self.lineage.firing(id, premises + memory, "keep")
            premises = [self.fact(node, time - 1, fact), *running, *spared]
            self.lineage.firing(id, premises + memory, "keep")
        for call, after in before.producers.get(("next", "", fact), ()):
            premises = self._premises(node, time - 1, call, after)
            self.lineage.firing(id, premises + running + memory, call.rule)
        if name.endswith(TICKING):
            ident, left = arguments
            earlier = (name, (ident, left + 1))
            cancel = name.removesuffix(TICKING) + CANCEL
            if earlier in before.facts and (cancel, (ident,)) not in before.facts:
                premises = [self.fact(node, time - 1, earlier)]
                premises.append(self.absent(node, time - 1, cancel, (ident,)))
                self.lineage.firing(id, premises + running + memory, "tick")

    # premises

    def _premises(self, node: str, time: int, call: Call, after: int) -> list[str]:
        found = [self.fact(node, time, trigger) for trigger in call.triggers]
        for read in call.reads[:after]:
            found += self._read(node, time, read)
        return found

    def _read(self, node: str, time: int, read: Read) -> list[str]:
        if read.every:
            found = [self.fact(node, time, (read.relation, row)) for row in read.matches]
            return [
                *found,
                self.absent(node, time, read.relation, read.pattern, frozenset(read.matches)),
            ]
        if not read.matches:
            return [self.absent(node, time, read.relation, read.pattern)]
        if len(read.matches) == 1:
            return [self.fact(node, time, (read.relation, read.matches[0]))]
        some = f"some {read.relation}({_text((node, *read.pattern))})@{time}"
        for row in read.matches:
            self.lineage.firing(some, [self.fact(node, time, (read.relation, row))], "some")
        return [some]

    def _world_premises(self, call: Call, after: int) -> list[str]:
        end = len(self._steps)
        found = [self.fact(row[0], end, (name, row[1:])) for name, row in call.triggers]
        for read in call.reads[:after]:
            found += self._world_read(read)
        return found

    def _world_read(self, read: Read) -> list[str]:
        end = len(self._steps)
        if read.relation == CRASHED:
            leaf = crashed if read.matches else alive
            return [leaf(self.lineage, self._spec, read.pattern[0])]
        if read.every or not read.matches:
            found = [self.fact(row[0], end, (read.relation, row[1:])) for row in read.matches]
            place = read.pattern[0]
            for node in self._steps[-1] if place is ... else (place,):
                rows = frozenset(row[1:] for row in read.matches if row[0] == node)
                found.append(self.absent(node, end, read.relation, read.pattern[1:], rows))
            return found
        facts = [self.fact(row[0], end, (read.relation, row[1:])) for row in read.matches]
        if len(facts) == 1:
            return facts
        some = f"some {read.relation}({_text(read.pattern)})@{end}"
        for id in facts:
            self.lineage.firing(some, [id], "some")
        return [some]

    # absence

    def absent(self, node: str, time: int, name: str, pattern: Arguments, but: Rows = NONE) -> str:
        """Id of the fact that nothing fits the pattern, the rows in ``but`` apart."""
        id = f"!{name}({_text((node, *pattern))})@{time}"
        if but:
            id += " but " + ";".join(sorted(_text(row) for row in but))
        if id not in self.lineage.graph:
            self.lineage.fact(id, absent=True, further=bool(but))
            self._todo.append(lambda: self._explain(id, node, time, name, pattern, but))
        return id

    def _explain(
        self, id: str, node: str, time: int, name: str, pattern: Arguments, but: Rows
    ) -> None:
        relation = self._relations.get(name)
        verb = "add"
        for suffix, word in ((DISCARD, "discard"), (CANCEL, "cancel")):
            if name.endswith(suffix):
                verb = word
        base = name.split(".")[0]
        premises: list[str] = []
        if not name.endswith(TICKING) and not isinstance(relation, Timer):
            premises += self._not_called(node, time, base, verb)
        if isinstance(relation, Timer):
            ticks = frozenset((row[0], 1) for row in but)
            premises.append(self.absent(node, time, name + TICKING, (pattern[0], 1), ticks))
        if time > 1 and (name.endswith(TICKING) or (relation is not None and verb == "add")):
            premises += self._not_carried(node, time, name, pattern, but)
        if isinstance(relation, Message) and time > 1:
            if self._stopped(node, time):
                premises.append(self._is_stopped(node, time))
            else:
                for sender in self._steps[0]:
                    if pattern[0] in (..., sender):
                        premises += self._not_received(sender, node, time, name, pattern)
        if premises:
            self.lineage.firing(id, premises, "absent")

    def _writers(self, base: str, verb: str) -> list[Rule]:
        return [r for r in self._local if r.may(verb, base)]

    def _not_called(self, node: str, time: int, base: str, verb: str) -> list[str]:
        """Why the rules that could write it have written no more than they did."""
        found: list[str] = []
        for rule in self._writers(base, verb):
            found += self._calls_unchanged(node, time, rule)
        return found

    def _calls_unchanged(self, node: str, time: int, rule: Rule) -> list[str]:
        step = self._step(node, time)
        found: list[str] = []
        for call in step.by_rule.get(rule.name, ()):
            for read in call.reads:
                found += self._read(node, time, read)
        present = {t: step.rows.get(t, []) for t in rule.relations if t != OTHERS}
        empty = [t for t, rows in present.items() if not rows]
        for trigger in empty[:1] or present:
            everything = (...,) * len(self._relations[trigger].columns)
            rows = frozenset(present[trigger])
            found.append(self.absent(node, time, trigger, everything, rows))
        return found

    def _not_carried(
        self, node: str, time: int, name: str, pattern: Arguments, but: Rows
    ) -> list[str]:
        before = self._step(node, time - 1)
        base = name.split(".")[0]
        relation = self._relations.get(name)
        if self._stopped(node, time - 1):
            found = [self._is_stopped(node, time - 1)]
            if relation is None or relation.keep:
                found.append(self.absent(node, time - 1, name, pattern, but))
            return found
        found = self._not_called(
            node, time - 1, base, "start" if name.endswith(TICKING) else "next"
        )
        if name.endswith(TICKING):
            ident, left = pattern
            cancelled = set()
            for row in before.rows.get(name, ()):
                cancel = (base + CANCEL, (row[0],))
                if cancel in before.facts:
                    cancelled.add(row)
                    found += [self.fact(node, time - 1, cancel), *self._running(node, time - 1)]
            rows = frozenset((i, n + 1) for i, n in but) | frozenset(cancelled)
            earlier = (ident, left if left is ... else left + 1)
            if left is ... or left < len(self._steps):
                found.append(self.absent(node, time - 1, name, earlier, rows))
        elif relation is not None and relation.keep:
            gone = frozenset(
                row
                for row in before.rows.get(name, ())
                if matches(pattern, row) and (name + DISCARD, row) in before.facts
            )
            for row in sorted(gone - but, key=repr):
                discarded = self.fact(node, time - 1, (name + DISCARD, row))
                found += [discarded, *self._running(node, time - 1)]
            found.append(self.absent(node, time - 1, name, pattern, but | gone))
        return found

    def _not_received(
        self, sender: str, node: str, time: int, name: str, pattern: Arguments
    ) -> list[str]:
        found: list[str] = []
        for sent in (time - 1, time - 2):
            late = sent == time - 2
            if sent < 1 or (late and not self._disordering(sender, node, sent)):
                continue
            if late and sender == node:
                continue
            link, faults = (sender, node), self._rounds[sent - 1]
            sent_here = (
                () if self._stopped(sender, sent) else self._sent_of(sender, node, sent, name)
            )
            lost = link in faults.lost
            delayed = link in faults.delayed
            arrived = not lost and (delayed or link in faults.duplicated if late else not delayed)
            rows = sent_here if arrived else ()
            id = f"!{name}({sender}->{node})@{sent} for {time}"
            if rows:
                id += " but " + ";".join(sorted(_text(row) for row in rows))
            found.append(id)
            if id in self.lineage.graph:
                continue
            self.lineage.fact(id, absent=True, further=bool(rows))
            if lost:
                leaf = loss(self.lineage, self._spec, sender, node, sent)
                self.lineage.firing(id, [leaf], "lost")
            elif late and not arrived:
                leaf = self.lineage.leaf(
                    f"in time {sender}->{node}@{sent}", self._disordering(sender, node, sent)
                )
                self.lineage.firing(id, [leaf], "in time")
            elif not late and delayed:
                only = [delay(sender, node, sent)]
                leaf = self.lineage.leaf(f"delayed {sender}->{node}@{sent}", only, lost=True)
                self.lineage.firing(id, [leaf], "delayed")
            if self._stopped(sender, sent):
                self.lineage.firing(id, [self._is_stopped(sender, sent)], "stopped")
            elif arrived or not sent_here:
                self._not_sent(id, sender, sent, name)
        return found

    def _sent_of(self, sender: str, node: str, time: int, name: str) -> tuple[Arguments, ...]:
        messages = self._step(sender, time).sent.get(node, ())
        return tuple(content for kind, content in messages if kind == name)

    def _not_sent(self, id: str, sender: str, time: int, name: str) -> None:
        premises = self._not_called(sender, time, name, "send")
        if premises:
            self.lineage.firing(id, premises, "not sent")

    def _no_precondition(self, goal: str) -> None:
        last = self._steps[-1]
        protocol, declared = self._rules.protocol, self._rules.declared
        premises: list[str] = []
        for condition in declared.of_kind("pre"):
            for name in condition.relations:
                width = len(self._relations[name].columns)
                for node, step in last.items():
                    rows = frozenset(step.rows.get(name, ()))
                    premises.append(self.absent(node, len(self._steps), name, (...,) * width, rows))
        for call, _ in condition_calls(protocol, declared, "pre", last, self._crashed):
            for read in call.reads:
                premises += self._world_read(read)
        self.lineage.firing(f"!pre({goal})", premises, "vacuous")
