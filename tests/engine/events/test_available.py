"""Sites that cannot hear each other go on, and agree when they can."""

from __future__ import annotations

import copy
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.engine import (
    application,
    decoder,
    key_extractor,
    source,
    state_computation,
    state_entity,
)
from bettong.engine.config import RunConfig
from bettong.engine.crdt import GCounter, LwwRegister, OrSet, PNCounter, acting_as
from bettong.engine.events.engine import EventEngine
from bettong.engine.events.sharing import SharedError
from bettong.engine.in_process import run_in_process
from bettong.engine.sources.base import FileSource
from bettong.harness.checkers.convergence import (
    Absorbed,
    Happened,
    Shared,
    Took,
    check_convergence,
    states_after,
)
from bettong.lineage.errors import UsageError

SITES = ("a", "b", "c")


@dataclass
class Everything:
    """One of each, so that each meets every schedule."""

    seen: GCounter = field(default_factory=GCounter)
    stock: PNCounter = field(default_factory=PNCounter)
    members: OrSet = field(default_factory=OrSet)
    name: LwwRegister = field(default_factory=LwwRegister)

    def merge(self, other: Everything) -> None:
        self.seen.merge(other.seen)
        self.stock.merge(other.stock)
        self.members.merge(other.members)
        self.name.merge(other.name)


@decoder
def command(data: bytes) -> list[str]:
    return data.decode().split()


@key_extractor
def key(words: list[str]) -> str:
    return words[0]


@state_computation(state=state_entity(Everything, consistency="available"))
def obey(words: list[str], entity: Everything) -> None:
    _, verb, what = words
    entity.seen.add()
    match verb:
        case "stock":
            entity.stock.add(int(what))
        case "add":
            entity.members.add(what)
        case "remove":
            entity.members.remove(what)
        case _:
            entity.name.set(f"name{what}", at=int(what))


app = application("sites", source("commands", command).key_by(key).to(obey).done())

commands = st.one_of(
    st.tuples(st.just("stock"), st.integers(-5, 5)),
    st.tuples(st.sampled_from(["add", "remove"]), st.sampled_from(["x", "y"])),
    st.tuples(st.just("name"), st.integers(0, 3)),
)
messages = st.builds(
    lambda key, reported: f"{key} {reported[0]} {reported[1]}".encode(),
    st.sampled_from("pq"),
    commands,
)


@st.composite
def reached(draw: st.DrawFn) -> list[Everything]:
    """States that sites have been in, as they were at several times."""
    at = {site: Everything() for site in SITES}
    snapshots = [copy.deepcopy(at["a"])]
    for _ in range(draw(st.integers(1, 12))):
        site = draw(st.sampled_from(SITES))
        if draw(st.booleans()):
            with acting_as(site):
                obey(command(draw(messages)), at[site])
        else:
            at[site].merge(copy.deepcopy(at[draw(st.sampled_from(SITES))]))
        snapshots.append(copy.deepcopy(at[site]))
    return snapshots


def merged(*states: Everything) -> Everything:
    first, *others = copy.deepcopy(states)
    for other in others:
        first.merge(other)
    return first


@settings(max_examples=150, deadline=None)
@given(reached(), st.data())
def test_merging_is_associative_commutative_and_idempotent(
    snapshots: list[Everything], data: st.DataObject
) -> None:
    one, two, three = (data.draw(st.sampled_from(snapshots)) for _ in range(3))
    assert merged(merged(one, two), three) == merged(one, merged(two, three))
    assert merged(one, two) == merged(two, one)
    assert merged(one, one) == one
    assert merged(merged(one, two), two) == merged(one, two)


def test_an_addition_that_was_not_seen_survives_a_removal() -> None:
    here, there = OrSet(), OrSet()
    with acting_as("here"):
        here.add("x")
    there.merge(copy.deepcopy(here))
    with acting_as("here"):
        here.add("x")
    there.remove("x")
    assert there.value == frozenset()
    there.merge(here)
    assert there.value == {"x"}


class Cluster:
    """Sites with their checkpoints, and what has happened that anybody can know of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engines = {site: self._start(site) for site in SITES}
        self.packed: dict[str, bytes] = {}
        self.sent: dict[str, list[bytes]] = {site: [] for site in SITES}
        self.history: list[Happened] = []
        self.unwritten: dict[str, list[Happened]] = {site: [] for site in SITES}

    def _start(self, site: str) -> EventEngine:
        return EventEngine(app, lambda *_: None, self.folder / site, site=site)

    def _note(self, event: Happened) -> None:
        self.history.append(event)
        self.unwritten[event.site].append(event)

    def take(self, site: str, data: bytes) -> None:
        self.engines[site].push("commands", data)
        self._note(Took(site, "commands", data))

    def send(self, site: str, data: bytes) -> None:
        self.sent[site].append(data)
        self.take(site, data)

    def share(self, site: str) -> str:
        name = f"{site}{len(self.packed)}"
        self.packed[name] = self.engines[site].share()
        self._note(Shared(site, name))
        self.unwritten[site].clear()
        return name

    def absorb(self, site: str, name: str) -> None:
        self.engines[site].absorb(self.packed[name])
        self._note(Absorbed(site, name))

    def crash(self, site: str) -> None:
        """What was not written never happened; the messages come again."""
        lost = {id(event) for event in self.unwritten[site]}
        self.history = [event for event in self.history if id(event) not in lost]
        self.unwritten[site].clear()
        self.engines[site] = self._start(site)
        for data in self.sent[site][self.engines[site].next("commands") :]:
            self.take(site, data)

    def heal(self) -> None:
        """Everybody hears of everything."""
        for _ in range(2):
            for name in [self.share(site) for site in SITES]:
                for site in SITES:
                    self.absorb(site, name)

    def states(self) -> dict[str, Any]:
        return {site: engine._compiled.entities for site, engine in self.engines.items()}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_sites_converge_whatever_is_lost(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    cluster = Cluster(tmp_path_factory.mktemp("sites"))
    for _ in range(data.draw(st.integers(1, 15))):
        site = data.draw(st.sampled_from(SITES))
        match data.draw(st.sampled_from(["send", "send", "share", "absorb", "crash"])):
            case "send":
                cluster.send(site, data.draw(messages))
            case "share":
                cluster.share(site)
            case "absorb" if cluster.packed:
                cluster.absorb(site, data.draw(st.sampled_from(sorted(cluster.packed))))
            case "crash":
                cluster.crash(site)
    cluster.heal()
    assert check_convergence(app, cluster.history, cluster.states()) == ()
    stock = sum(int(m.split()[2]) for sent in cluster.sent.values() for m in sent if b"stock" in m)
    entities = cluster.states()["a"]["Everything"].values()
    assert sum(e.stock.value for e in entities) == stock
    assert sum(e.seen.value for e in entities) == sum(map(len, cluster.sent.values()))


def test_the_oracle_sees_a_site_that_did_not_converge(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.send("a", b"p stock 3")
    cluster.heal()
    cluster.states()["b"]["Everything"]["p"].stock.added["a"] = 4  # as if it was counted twice
    (wrong,) = {a.key for a in check_convergence(app, cluster.history, cluster.states())}
    assert wrong == "Everything 'p' at b"


def test_a_site_that_has_lost_a_whole_state_or_is_gone_did_not_converge() -> None:
    history: list[Happened] = [Took("a", "commands", b"p stock 3")]
    for site in ("b", "c"):
        history += [Shared("a", site), Absorbed(site, site)]
    right = states_after(app, SITES, history)
    assert check_convergence(app, history, right) == ()
    gone = {site: states for site, states in right.items() if site != "c"}
    for observed in ({**right, "c": {}}, gone):
        assert {a.key for a in check_convergence(app, history, observed)} == {"Everything 'p' at c"}
    assert check_convergence(app, history, {site: {} for site in SITES})


def test_what_is_no_share_is_refused_whole(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.send("a", b"p stock 3")
    shared = cluster.engines["a"].share()
    for damaged in (b"", shared[:-40], b"x" + shared[1:]):
        with pytest.raises(SharedError, match="not what a site of the application shares"):
            cluster.engines["b"].absorb(damaged)
    assert cluster.states()["b"]["Everything"] == {}


def test_where_it_cannot_be_had_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give the engine site= and checkpoint="):
        EventEngine(app, lambda *_: None, site="a")
    (tmp_path / "in").write_text("")
    config = RunConfig(tmp_path, {"commands": FileSource(tmp_path / "in")}, {})
    with pytest.raises(UsageError, match="state Everything is available, and here each key has"):
        run_in_process(app, config)

    class Plain:
        pass

    with pytest.raises(UsageError, match="state Plain cannot be available"):
        state_entity(Plain, consistency="available")


def test_damage_to_what_is_shared_is_found_before_it_is_read(tmp_path: Path) -> None:
    with (
        closing(EventEngine(app, lambda *_: None, tmp_path / "a", site="a")) as one,
        closing(EventEngine(app, lambda *_: None, tmp_path / "b", site="b")) as other,
    ):
        one.push("commands", b"k stock 3")
        shared = one.share()
        for place in range(len(shared)):
            damaged = bytearray(shared)
            damaged[place] ^= 1
            with pytest.raises(SharedError, match="its checksum is wrong"):
                other.absorb(bytes(damaged))
        for length in (0, 3, len(shared) - 1):
            with pytest.raises(SharedError, match="its checksum is wrong"):
                other.absorb(shared[:length])
        assert other._compiled.entities["Everything"] == {}
        other.absorb(shared)
        assert other._compiled.entities["Everything"]["k"].stock.value == 3
