"""A Dedalus program as a :class:`bettong.lineage.protocols.rounds.RoundProgram`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from bettong.lineage.dedalus import loader
from bettong.lineage.dedalus.errors import DedalusError, hint
from bettong.lineage.dedalus.evaluation import RuleSet, Tables
from bettong.lineage.dedalus.explanation import Explainer, Seen
from bettong.lineage.dedalus.lowering import Lowered, lower, uses_clock
from bettong.lineage.dedalus.names import CRASH
from bettong.lineage.dedalus.scenery import Scenery
from bettong.lineage.dedalus.strata import needed_for, stratify
from bettong.lineage.dedalus.syntax import Wildcard
from bettong.lineage.dedalus.universe import Universe
from bettong.lineage.dedalus.worlds import Crashes, Fact, Rounds, World
from bettong.lineage.errors import UsageError
from bettong.lineage.faults import FaultSet
from bettong.lineage.protocols.failure_spec import FailureSpec, RoundFaults
from bettong.lineage.protocols.rounds import Judged, Play, as_text
from bettong.lineage.protocols.rounds import World as AnyWorld

PRE, POST = "pre", "post"
UNIVERSES = 8


def load(
    paths: Sequence[Path | str],
    nodes: tuple[str, ...] = (),
    *,
    volatile: frozenset[str] = frozenset(),
) -> DedalusProgram:
    """The program of some files and their includes, ready to run.

    ``nodes`` are the places where facts can be; without any they are read from the first columns
    of the facts given. ``volatile`` names the relations whose facts a restarting node loses.
    Raises UsageError (DedalusError, with file and line, for what is in the files).
    """
    name = "+".join(Path(p).stem for p in paths)
    return DedalusProgram(loader.load(paths), nodes, name=name, volatile=volatile)


class DedalusProgram:
    """A checked and compiled program on its nodes.

    Attributes:
        name: for results.
        nodes: in order.
        files: the program's text, includes among them.
    """

    def __init__(
        self,
        program: loader.Program,
        nodes: tuple[str, ...] = (),
        *,
        name: str = "program",
        volatile: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.files = program.files
        self._lowered = lower(program)
        strata = stratify(self._lowered)
        _check_goals(program, self._lowered)
        self.nodes = nodes or _places(self._lowered)
        if not self.nodes:
            raise UsageError(f"{name}: no nodes were given and no fact names one")
        for relation in sorted(volatile):
            if relation not in self._lowered.columns:
                near = hint(relation, self._lowered.columns)
                raise UsageError(f"no relation '{relation}' that could be volatile{near}")
        relevant = needed_for(self._lowered, (PRE, POST), within_round=False)
        everything = frozenset(r for s in strata for r in s.relations)
        carried = _carried(self._lowered, relevant)
        given = _given(self._lowered)
        # what an aggregate has been given is lost with it
        volatile |= {a.source for a in self._lowered.aggregations if a.relation in volatile}

        def rounds(within: frozenset[str], outward: frozenset[str]) -> Rounds:
            return Rounds(
                RuleSet(self._lowered, strata, within, outward),
                RuleSet(self._lowered, strata, outward, frozenset()),
                self.nodes,
                given,
                volatile,
                self._lowered.ticks,
                uses_clock(self._lowered),
            )

        self._rounds = rounds(carried, relevant)
        self._scenery = Scenery(rounds(everything, everything))
        self._crash_in_rules = _reads_crash(self._lowered, carried, relevant)
        self._crash_time = _reads_crash_time(self._lowered, relevant)
        self._judged: dict[Hashable, Judged] = {}
        self._universes: dict[FailureSpec, Universe] = {}

    # -- RoundProgram ------------------------------------------------------------------------

    def start(self) -> AnyWorld:
        """The world at the start of round 1."""
        return self._rounds.start()

    def step(self, world: AnyWorld, time: int, faults: RoundFaults) -> AnyWorld:
        """The world at the start of round ``time + 1``."""
        assert isinstance(world, World)
        if self._crash_in_rules:
            raise UsageError(
                f"{self.name}: rules that lead to later rounds read crash(…), which cannot be "
                "explored round by round: run the program without --exhaustive"
            )
        return self._rounds.step(world, time, faults)

    def judge(
        self, world: AnyWorld, eot: int, faults: RoundFaults, crashed: frozenset[str]
    ) -> Judged:
        """What holds in the last round."""
        assert isinstance(world, World)
        if self._crash_time:
            raise UsageError(
                f"{self.name}: the third column of crash(…) is read, which cannot be explored "
                "round by round: run the program without --exhaustive"
            )
        return self._judge(world, eot, faults, frozenset((n, 1) for n in crashed))

    def play(
        self,
        spec: FailureSpec,
        schedule: FaultSet,
        *,
        lineage: bool = True,
        explain: frozenset[str] = frozenset(),
    ) -> Play:
        """Run it from round 1 to EOT under a schedule."""
        if set(spec.nodes) != set(self.nodes):
            raise UsageError(
                f"{self.name} runs on {', '.join(self.nodes)}, not on {', '.join(spec.nodes)}"
            )
        faults = spec.rounds(schedule)
        crashes: Crashes = frozenset(spec.crash_times(schedule).items())
        early = crashes if self._crash_in_rules else frozenset()
        worlds = [self._rounds.start()]
        for time in range(1, spec.eot):
            worlds.append(self._rounds.step(worlds[-1], time, faults[time - 1], early))
        late = crashes if self._crash_time else frozenset((n, 1) for n, _ in crashes)
        judged = self._judge(worlds[-1], spec.eot, faults[-1], late)
        if not lineage:
            return Play(judged)
        seen = Seen(
            tuple(
                self._rounds.tables(w, t, faults[t - 1], late, views=t == spec.eot)
                for t, w in enumerate(worlds, 1)
            ),
            tuple(self._rounds.kept(w, faults[t]) for t, w in enumerate(worlds)),
            schedule,
        )
        explainer = Explainer(self._universe(spec), seen)
        messages, facts = self._scenery.of(spec, faults, crashes)
        return Play(judged, messages, explainer.explain(judged, explain), facts)

    # -- inside ------------------------------------------------------------------------------

    def _judge(self, world: World, eot: int, faults: RoundFaults, crashes: Crashes) -> Judged:
        key = (world, eot, faults.stopped, faults.restarted, crashes)
        found = self._judged.get(key)
        if found is None:
            tables = self._rounds.tables(world, eot, faults, crashes, views=True)
            found = self._judged[key] = Judged(_goals(tables, PRE), _goals(tables, POST))
        return found

    def _universe(self, spec: FailureSpec) -> Universe:
        if spec not in self._universes:
            if len(self._universes) >= UNIVERSES:
                self._universes.clear()
            self._universes[spec] = Universe(self._rounds, spec, crash_time=self._crash_time)
        return self._universes[spec]


def _check_goals(program: loader.Program, lowered: Lowered) -> None:
    written = {r.relation for r in lowered.rules} | {a.relation for a in lowered.aggregations}
    written |= {f.relation for f in lowered.facts}
    for goal in (PRE, POST):
        if goal not in written:
            places = [r.position for r in program.rules] + [f.position for f in program.facts]
            if not places:
                raise UsageError("the program is empty: it has no rules and no facts")
            raise DedalusError(
                places[0],
                f"the program asks for nothing: expected a rule for '{goal}' "
                "(pre: when something is asked of a run's last round; post: what is asked)",
            )
    if lowered.columns[PRE] != lowered.columns[POST]:
        rule = next(r for r in program.rules if r.head.relation == POST)
        raise DedalusError(
            rule.position,
            f"post has {lowered.columns[POST]} columns and pre has {lowered.columns[PRE]}: "
            "a goal has the same columns in both",
        )


def _places(lowered: Lowered) -> tuple[str, ...]:
    found = dict.fromkeys(f.values[0] for f in lowered.facts)
    return tuple(n for n in found if isinstance(n, str))


def _given(lowered: Lowered) -> dict[int, list[Fact]]:
    found: dict[int, list[Fact]] = {}
    for fact in lowered.facts:
        found.setdefault(fact.tick, []).append((fact.relation, fact.values))
    return found


def _carried(lowered: Lowered, relevant: frozenset[str]) -> frozenset[str]:
    """Relations that a round must fill for the sake of later ones."""
    roots = {relation for relation, _ in lowered.ticks if relation in relevant}
    for rule in lowered.rules:
        if rule.timing != "now" and rule.relation in relevant:
            roots |= {t.predicate.relation for t in rule.reads}
    found = needed_for(lowered, roots, within_round=True)
    return found | {f"{r}@{t}" for r, t in lowered.ticks if r in found}


def _reads_crash(lowered: Lowered, carried: frozenset[str], relevant: frozenset[str]) -> bool:
    return any(
        t.predicate.relation == CRASH
        for r in lowered.rules
        if (r.relation in carried if r.timing == "now" else r.relation in relevant)
        for t in r.reads
    )


def _reads_crash_time(lowered: Lowered, relevant: frozenset[str]) -> bool:
    return any(
        t.predicate.relation == CRASH and not isinstance(t.predicate.terms[2], Wildcard)
        for r in lowered.rules
        if r.relation in relevant
        for t in r.reads
    )


def _goals(tables: Tables, relation: str) -> frozenset[str]:
    return frozenset(as_text(row) for row in tables[relation].rows)
