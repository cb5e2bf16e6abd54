"""The bench: draws mutants, has each searched by a process of its own, and keeps a log."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec

from bettong.harness.api import load_scenario
from bettong.scenarios.benchmarks.mutants import overlay
from bettong.scenarios.benchmarks.mutants.executed import Executed, failure
from bettong.scenarios.benchmarks.mutants.judge import Finding, Question
from bettong.scenarios.benchmarks.mutants.operators import SWALLOW, Mutant
from bettong.scenarios.benchmarks.mutants.population import sinks_of
from bettong.scenarios.benchmarks.mutants.ranking import Trail, trails

LOG = "mutants.jsonl"
_GRACE_S = 120.0
"""A search may take so much longer than its budget, for the run in which it ends."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One mutant and what became of it."""

    mutant: Mutant
    finding: Finding


@dataclass(frozen=True, slots=True)
class _Line:
    """One line of the log."""

    key: str
    id: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Bench:
    """How mutants are searched.

    Attributes:
        out: folder of the log.
        recorded: what each scenario runs, in the order in which they are searched.
        bounds: of each search, by name.
        seconds: that a mutant may take in all.
        parallel: how many are searched at a time.
        first: fault sets that are put up first, behind those that have shown other mistakes.
    """

    out: Path
    recorded: Mapping[str, Executed]
    bounds: str
    seconds: float
    parallel: int
    first: Sequence[tuple[str, ...]] = ()
    _shown_by: dict[str, Counter[tuple[str, ...]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def scenarios_of(self, mutant: Mutant) -> list[str]:
        """The scenarios that run the mistake: those first where it was seen to make a difference,
        and those that run it without a fault; of these, those that run the most of its module, what
        few others run of it most of all.
        Those that were seen to run no more than the line that it is in come last: what leads on
        from there may be a fault that was not among the recorded ones.

        One with a broker takes long to start: it is for what no other runs.
        """
        place = mutant.path, mutant.statement
        near = mutant.path, mutant.line
        found = [(n, e) for n, e in self.recorded.items() if e.runs(*place) or e.runs(*near)]
        rareness = self._rareness(mutant.path)
        found.sort(key=lambda of: -rareness[of[0]])
        found.sort(key=lambda of: not of[1].runs_clean(*place))
        found.sort(key=lambda of: not of[1].runs(*place))
        found.sort(key=lambda of: not of[1].runs(mutant.path, _difference(mutant)))
        names = [name for name, _ in found]
        return [n for n in names if "kafka" not in load_scenario(n).servers] or names

    def _rareness(self, path: str) -> dict[str, float]:
        """How much of a module each scenario runs, where what several run is shared by them."""
        run = {name: executed.lines_of(path) for name, executed in self.recorded.items()}
        times = Counter(line for lines in run.values() for line in lines)
        return {name: sum(1 / times[line] for line in lines) for name, lines in run.items()}

    def is_run(self, mutant: Mutant) -> bool:
        """Whether any scenario or sink runs the mistake; where it swallows an exception, whether
        there is one."""
        place = mutant.path, _difference(mutant)
        return bool(sinks_of(mutant.path)) or any(e.runs(*place) for e in self.recorded.values())

    def judge(
        self, mutants: Sequence[Mutant], progress: Callable[[Judged], None]
    ) -> Iterator[Judged]:
        """Search mutants, those of the log left out, which come first."""
        known = self._known()
        missing = []
        for mutant in mutants:
            finding = known.get(_key(mutant, self.bounds))
            if finding is None:
                missing.append(mutant)
            else:
                self._learn(finding)
                yield Judged(mutant, finding)
        self.out.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(self.parallel) as pool, (self.out / LOG).open("a") as log:
            futures = [pool.submit(self._searched, mutant) for mutant in missing]
            try:
                for future in as_completed(futures):
                    judged = future.result()
                    key, finding = _key(judged.mutant, self.bounds), judged.finding
                    self._learn(finding)
                    line = _Line(key, judged.mutant.id, finding)
                    log.write(msgspec.json.encode(line).decode() + "\n")
                    log.flush()
                    progress(judged)
                    yield judged
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _known(self) -> dict[str, Finding]:
        file = self.out / LOG
        lines = file.read_bytes().splitlines() if file.exists() else ()
        found = [msgspec.json.decode(line, type=_Line) for line in lines]
        return {line.key: line.finding for line in found}

    def _learn(self, finding: Finding) -> None:
        if finding.status == "killed" and finding.faults:
            with self._lock:
                self._shown_by.setdefault(finding.shown_by, Counter())[finding.faults] += 1

    def _trails(self, mutant: Mutant, scenarios: Sequence[str]) -> dict[str, Trail]:
        """Of the mistake in each scenario, with what has shown the most mistakes first."""
        with self._lock:
            shown = {s: self._shown_by.get(s, Counter()).most_common() for s in self.recorded}
        known = {
            s: [frozenset(ids) for ids in dict.fromkeys([*(ids for ids, _ in some), *self.first])]
            for s, some in shown.items()
        }
        place = mutant.path, mutant.statement, _difference(mutant)
        found = trails(self.recorded, *place, known)
        return {name: found[name] for name in scenarios}

    def _searched(self, mutant: Mutant) -> Judged:
        with tempfile.TemporaryDirectory(prefix="bettong-overlay-") as name:
            folder = Path(name)
            overlay.build(folder, {mutant.path: mutant.applied(overlay.source_of(mutant.path))})
            scenarios = tuple(self.scenarios_of(mutant))
            question = Question(
                overlay.in_front(folder),
                scenarios,
                sinks_of(mutant.path),
                self.bounds,
                self.seconds,
                self._trails(mutant, scenarios),
            )
            return Judged(mutant, _asked(question))


def _difference(mutant: Mutant) -> int:
    """The line whose run makes a mistake felt: of its statement, or of the failure of that."""
    swallows = mutant.operator == SWALLOW
    return failure(mutant.statement) if swallows else mutant.statement


def _asked(question: Question) -> Finding:
    """What a process of its own finds: nothing that a mutant does reaches this one."""
    try:
        ended = subprocess.run(
            [sys.executable, "-m", f"{__package__}.judge"],
            input=msgspec.json.encode(question).decode(),
            env=os.environ.copy(),
            capture_output=True,
            text=True,
            check=False,
            timeout=question.seconds + _GRACE_S,
        )
    except subprocess.TimeoutExpired:
        return Finding("aborted", seconds=question.seconds, note="its search does not end")
    if ended.returncode:
        words = " ".join(ended.stderr[-300:].split())
        return Finding("aborted", note=f"its search ended with {ended.returncode}: {words}")
    return msgspec.json.decode(ended.stdout, type=Finding)


def _key(mutant: Mutant, bounds: str) -> str:
    """A finding is of this mutant in this text of its module, within these bounds."""
    found = blake2b(mutant.applied(overlay.source_of(mutant.path)).encode(), digest_size=8)
    found.update(f"{mutant.path} {bounds}".encode())
    return found.hexdigest()
