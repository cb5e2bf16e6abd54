"""Every single fault at every step, run without asking any lineage: the judge of the search."""

from __future__ import annotations

from dataclasses import replace

from bettong.harness.campaign import Campaign
from bettong.harness.planning import each_step
from bettong.harness.schedule import Schedule
from bettong.harness.search.ldfi import Reach
from bettong.lineage.results import Result


def compare_exhaustively(campaign: Campaign, reach: Reach, result: Result) -> Result:
    """Run every single fault in the batches that the search covered, and say in the result's
    details whether the two agree; if they do not, the verdict is unknown."""
    clean = campaign.run(Schedule())
    topology = campaign.backend.topology(campaign.scenario)
    schedules = {
        schedule.ids: schedule
        for batch in range(reach.batches)
        for schedule in each_step(clean.events, batch, topology)
    }
    seen = [campaign.run(schedule) for schedule in schedules.values()]
    broken = sorted({s.schedule.ids[0] for s in seen if s.outcome == "violation"})
    unclear = sorted({s.schedule.ids[0] for s in seen if s.outcome not in ("good", "violation")})
    agree = bool(broken) == _breaks_singly(result) and not unclear
    told = {
        "runs": len(seen),
        "violations": broken,
        "not_judged": unclear,
        "agrees": agree,
    }
    result = replace(
        result,
        details={**result.details, "exhaustive": told},
        runs=(*result.runs, *(s.to_run() for s in seen)),
    )
    if agree:
        return result
    return replace(
        result,
        verdict="unknown",
        reason="the search and every single fault run on its own do not agree: "
        f"{', '.join([*broken, *unclear][:3])}",
    )


def _breaks_singly(result: Result) -> bool:
    return any(len(c.faults) <= 1 for c in result.counterexamples)
