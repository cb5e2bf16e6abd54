"""Hypothesis strategies for failure specifications and fault schedules."""

from __future__ import annotations

from hypothesis import strategies as st

from bettong.lineage.faults import FaultSet
from bettong.lineage.protocols.failure_spec import CRASH_MODELS, CrashModel, FailureSpec


@st.composite
def failure_specs(
    draw: st.DrawFn,
    nodes: tuple[str, ...] = ("a", "b", "c"),
    *,
    max_eot: int = 6,
    max_crashes: int = 1,
    max_size: int | None = None,
    models: tuple[CrashModel, ...] = CRASH_MODELS,
    disorder: bool = False,
) -> FailureSpec:
    """Specifications for these nodes with at most so many rounds, crashes and schedules; with
    ``disorder`` also duplicates and delays."""
    eot = draw(st.integers(2, max_eot))
    eff = draw(st.integers(0, eot))
    crashes = draw(st.integers(0, min(max_crashes, len(nodes))))
    model = draw(st.sampled_from(models))
    down = draw(st.integers(1, 2)) if model == "restart" else 1
    some = st.integers(0, 1) if disorder else st.just(0)
    duplicates, delays = draw(some), draw(some)
    while True:
        spec = FailureSpec(nodes, eot, eff, crashes, model, down, duplicates, delays)
        if max_size is None or spec.size() <= max_size:
            return spec
        if eff > 1:
            eff -= 1
        elif crashes:
            crashes -= 1
        else:
            eot -= 1


@st.composite
def schedules(draw: st.DrawFn, spec: FailureSpec) -> FaultSet:
    """Schedules that a specification allows; they shrink to fewer faults."""
    if not spec.faults:
        return frozenset()
    chosen: set[str] = set()
    for id in draw(st.lists(st.sampled_from(list(spec.faults)), unique=True, max_size=12)):
        if spec.bounds.allow(spec.faults[i] for i in chosen | {id}):
            chosen.add(id)
    return frozenset(chosen)
