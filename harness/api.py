"""Running scenarios from Python, as ``bettong run`` does."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bettong.harness.backends.base import Backend
from bettong.harness.catalog import find
from bettong.harness.events import Finished, Handler, Started, ignore
from bettong.harness.faults.schedule import Schedule
from bettong.harness.runs.campaign import Campaign, run_campaign
from bettong.harness.runs.counterexample import CounterexampleFile
from bettong.harness.runs.course import Limits
from bettong.harness.runs.record import RunRecord
from bettong.harness.scenario import Scenario
from bettong.harness.search import exhaustive
from bettong.harness.search.bounds import SearchBounds, bounds_of
from bettong.harness.search.fault_plan import FaultPlan, parse_plan
from bettong.harness.search.ldfi import LOG, search_scenario
from bettong.harness.search.system import code_of
from bettong.lineage.own_folder import own_folder
from bettong.lineage.results import Guarantee, Result, begin_answer
from bettong.lineage.search.loop import Budget


def run_scenario(
    scenario: Scenario | str,
    faults: str | Schedule | FaultPlan | SearchBounds = "none",
    *,
    backend: Backend,
    beside: Sequence[Backend] = (),
    out: Path,
    input_file: Path | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    expected: Guarantee = "effectively-once",
    limits: Limits | None = None,
    on_event: Handler = ignore,
    label: Callable[[Result], Result] = lambda result: result,
) -> Result:
    """Run a scenario without faults, then under faults, and judge it.

    Args:
        scenario: one, or its name in the catalog.
        faults: ``none``, ``each-step``, ``random:N``, the name of a schedule's file or of a
            folder of them, a schedule, ``ldfi`` for a lineage-driven search within the standard
            bounds, or how far one is to go.
        backend: where it runs, entered already; good for any number of calls.
        beside: further ones, so that as many runs more go on at a time.
        out: folder for result.json, traces and counterexamples.
        input_file: messages, one for each line, in place of the scenario's; of several streams a
            folder with a file for each.
        seed: of random schedules.
        budget: how much may be run.
        expected: the level asked for.
        on_event: given what happens, from :class:`~bettong.harness.events.Started` to
            :class:`~bettong.harness.events.Finished`.
        label: adds to the result what else belongs to it, such as its suite.

    Raises:
        UsageError: the scenario, the faults or the input cannot be meant, or another process
            writes to the folder.
        BettongError: the system cannot be started.
    """
    found = load_scenario(scenario)
    on_event(Started(found.name, "scenario"))
    topology = backend.topology(found)
    asked = (budget or Budget()).begun()
    if faults == "ldfi":
        faults = bounds_of()
    if isinstance(faults, SearchBounds):
        resume = (out / LOG).exists() or (out / exhaustive.LOG).exists()
        with _campaign(
            found, backend, out, input_file, seed, limits, on_event, resume, beside, asked, expected
        ) as campaign:
            result = _searched(campaign, faults, asked)
            return _finished(label(result), out, on_event)
    if isinstance(faults, Schedule):
        faults.check(topology)
        plan = FaultPlan.of(faults)
    elif isinstance(faults, FaultPlan):
        plan = faults
    else:
        plan = parse_plan(faults, seed, topology)
    with _campaign(
        found, backend, out, input_file, seed, limits, on_event, False, beside, asked, expected
    ) as campaign:

        def planned(clean: Sequence[RunRecord]) -> Sequence[Schedule]:
            # Not before: what fails at each new start would count as wrong without a fault.
            campaign.again, campaign.power_cut = plan.hits, plan.hits_disks
            return plan.schedules(clean[0], topology)

        result = run_campaign(
            campaign,
            planned,
            clean_runs=plan.clean_runs,
            budget=asked,
            wanted=plan.wanted,
            assumptions=plan.assumptions,
        )
        return _finished(label(result), out, on_event)


def replay(
    file: Path,
    *,
    backend: Backend,
    out: Path,
    on_event: Handler = ignore,
) -> Result:
    """Run the one schedule of a counterexample's file again; raises UsageError."""
    found = CounterexampleFile.read(file)
    own_input = found.options.get("input")
    input_file = file.parent / own_input if isinstance(own_input, str) else None
    scenario = load_scenario(found.scenario)
    assumptions = FaultPlan.of(found.schedule).assumptions
    on_event(Started(scenario.name, "scenario"))
    with _campaign(
        scenario, backend, out, input_file, 0, None, on_event, expected=found.expected
    ) as campaign:
        campaign.spares_jvm = False
        campaign.replay = found.options.get("replay") is not False
        campaign.again = found.options.get("again") is True
        campaign.power_cut = found.options.get("power_cut") is True
        if found.options.get("code", campaign.code) != campaign.code:
            assumptions += ("the engine or the application has changed since this was found",)
        result = run_campaign(
            campaign, lambda _: [found.schedule], clean_runs=0, assumptions=assumptions
        )
        return _finished(result, out, on_event)


def _searched(campaign: Campaign, reach: SearchBounds, budget: Budget) -> Result:
    """What a search found; where every set is to be run as well, that comes first."""
    if not reach.exhaustive:
        return search_scenario(campaign, reach, budget=budget)
    whole = exhaustive.run_everything(campaign, reach, budget)
    if whole.left:
        return exhaustive.unfinished(campaign, whole)
    found = search_scenario(campaign, reach, budget=budget)
    return exhaustive.compare(whole, found)


def _finished(result: Result, out: Path, on_event: Handler) -> Result:
    result.write(out)
    on_event(Finished(result, out))
    return result


def load_scenario(scenario: Scenario | str) -> Scenario:
    """A scenario by its name; raises UsageError with the nearest name."""
    if isinstance(scenario, Scenario):
        return scenario
    found: Scenario = find(scenario, "scenario").load()
    return found


@contextmanager
def _campaign(
    scenario: Scenario,
    backend: Backend,
    out: Path,
    input_file: Path | None,
    seed: int,
    limits: Limits | None,
    on_event: Handler,
    resume: bool = False,
    beside: Sequence[Backend] = (),
    budget: Budget = Budget(),  # noqa: B008 - immutable
    expected: Guarantee = "effectively-once",
) -> Iterator[Campaign]:
    with own_folder(out):
        begin_answer(out)
        messages = scenario.messages(input_file)
        options: dict[str, object] = {
            "workers": len(backend.workers),
            "runner": backend.runner,
            "backend": backend.kind,
            "master": backend.master,
        }
        if input_file is not None:
            copy = out / "input"
            if input_file.resolve() == copy.resolve():
                pass  # a search that goes on
            elif input_file.is_dir():
                shutil.copytree(input_file, copy, dirs_exist_ok=True)
            else:
                shutil.copyfile(input_file, copy)
            options["input"] = copy.name
        yield Campaign(
            backend,
            scenario,
            out,
            messages,
            expected,
            seed=seed,
            options=options,
            code=code_of(scenario),
            limits=replace(limits or Limits(), until=budget.ends),
            resume=resume,
            on_event=on_event,
            beside=beside,
        )
