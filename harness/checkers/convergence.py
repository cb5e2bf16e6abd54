"""The oracle of available states: what sites must agree on once they have heard of each other.

It goes through what happened at the sites one by one, with the sequential interpreter and the
states' own ``merge``, and shares nothing else with the engine.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bettong.engine import Application
from bettong.engine.crdt import acting_as
from bettong.engine.interpreter import Interpreter
from bettong.engine.keys import Key
from bettong.harness.checkers.state import check_state
from bettong.lineage.results import Anomaly

States = Mapping[str, Mapping[Key, Any]]
"""For each state its entities by key."""


@dataclass(frozen=True)
class Took:
    """A site took the next message of a stream of its own."""

    site: str
    stream: str
    data: bytes


@dataclass(frozen=True)
class Shared:
    """A site packed its states for others."""

    site: str
    name: str


@dataclass(frozen=True)
class Absorbed:
    """A site merged what another one had packed under a name."""

    site: str
    name: str


Happened = Took | Shared | Absorbed


def states_after(
    app: Application, sites: Sequence[str], history: Sequence[Happened]
) -> dict[str, States]:
    """What each site's states are after a history."""
    runs = {site: Interpreter(app) for site in sites}
    numbers = {(site, s.name): 0 for site in sites for s in app.sources}
    packed: dict[str, dict[str, dict[Key, Any]]] = {}
    for event in history:
        run = runs[event.site]
        match event:
            case Took(site, stream, data):
                with acting_as(site):
                    run.message(stream, numbers[site, stream], data)
                numbers[site, stream] += 1
            case Shared(_, name):
                packed[name] = copy.deepcopy(run.state)
            case Absorbed(_, name):
                for state, entities in copy.deepcopy(packed[name]).items():
                    for key, other in entities.items():
                        if key in run.state[state]:
                            run.state[state][key].merge(other)
                        else:
                            run.state[state][key] = other
    return {site: run.state for site, run in runs.items()}


def check_convergence(
    app: Application, history: Sequence[Happened], observed: Mapping[str, States]
) -> tuple[Anomaly, ...]:
    """StateDivergence for every entity at every site that is not what the history makes it, or
    not the same as at the first site.

    Args:
        app: the application.
        history: all that happened, ended by an exchange of everything with everybody.
        observed: the states that each site has; one that is not there has no entity.
    """
    sites = sorted(observed.keys() | {event.site for event in history})
    expected = states_after(app, sites, history)
    found: list[Anomaly] = []
    for site in sites:
        seen, first = observed.get(site, {}), observed.get(sites[0], {})
        for state in sorted(expected[site].keys() | seen.keys()):
            named = _named(site, state, seen.get(state, {}))
            found += check_state(_named(site, state, expected[site].get(state, {})), named)
            found += check_state(_named(site, state, first.get(state, {})), named)
    return tuple(found)


def _named(site: str, state: str, entities: Mapping[Key, Any]) -> dict[str, Any]:
    return {f"{state} {key!r} at {site}": entity for key, entity in entities.items()}
