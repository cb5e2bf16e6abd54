"""What makes a scenario a mutant of another."""

from __future__ import annotations

from dataclasses import replace

from bettong.harness.scenario import Component, Resource, Scenario

_right: dict[str, Scenario] = {}
"""By the name of a mutant: the scenario that it is of."""


def mutant(
    right: Scenario, name: str, title: str, component: Component, path: str, advice: str
) -> Scenario:
    """A scenario with one component replaced; its schedule is the file of its name."""
    _right[name] = right
    return replace(
        right,
        name=name,
        title=title,
        classes={**right.classes, component: f"bettong.scenarios.mutants.{path}"},
        expect="invalid",
        schedule=Resource("bettong.scenarios", f"schedules/{name}.yaml"),
        advice=advice,
    )


def mended(broken: Scenario) -> Scenario:
    """The scenario that a mutant is of, by another name."""
    return replace(_right[broken.name], name=f"{broken.name}_mended")
