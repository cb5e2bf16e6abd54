"""What makes a scenario a mutant of another."""

from __future__ import annotations

from dataclasses import replace

from bettong.harness.scenario import Component, Resource, Scenario


def mutant(
    right: Scenario, name: str, title: str, component: Component, path: str, advice: str
) -> Scenario:
    """A scenario with one component replaced; its schedule is the file of its name."""
    return replace(
        right,
        name=name,
        title=title,
        classes={component: f"bettong.scenarios.mutants.{path}"},
        expect="invalid",
        schedule=Resource("bettong.scenarios", f"schedules/{name}.yaml"),
        advice=advice,
    )


def mended(broken: Scenario) -> Scenario:
    """The scenario that a mutant is of, with the right component in its place."""
    return replace(
        broken, name=f"{broken.name}_mended", classes={}, expect="valid", schedule=None, advice=""
    )
