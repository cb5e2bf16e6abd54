"""The checkers that judge each run of a scenario beside the oracle: those that ship, and those of
packages that are installed, which name a function in the entry point group ``bettong.checkers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata

from bettong.harness.checkers.fencing import check_fencing
from bettong.harness.checkers.records import Record
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly
from bettong.lineage.trace import TraceEvent
from bettong.lineage.user_code import guarded, in_one_line

GROUP = "bettong.checkers"


@dataclass(frozen=True, slots=True)
class History:
    """What a run leaves to be judged.

    Attributes:
        expected: each output once, in the order in which it should be seen.
        observed: every output that a reader sees, in the order seen.
        events: the trace, in the order of arrival.
    """

    expected: Sequence[Record]
    observed: Sequence[Record]
    events: Sequence[TraceEvent]


Checker = Callable[[History], Iterable[Anomaly]]
"""A pure function; what it cannot judge it raises an error for: the verdict is unknown then."""


class CheckerError(BettongError):
    """A checker of a package that cannot be used."""


def _fencing(history: History) -> Iterable[Anomaly]:
    return check_fencing(history.events)


SHIPPED: Mapping[str, Checker] = {"fencing": _fencing}


@cache
def checkers() -> Mapping[str, Checker]:
    """All checkers by name.

    Raises:
        CheckerError: one is no function, or has the name of another one.
        UserCodeError: one cannot be loaded.
    """
    found = dict(SHIPPED)
    for point in metadata.entry_points(group=GROUP):
        with guarded(f"the checker {point.name} ({point.value})"):
            checker = point.load()
        if not callable(checker):
            raise CheckerError(f"the checker {point.name} ({point.value}) is no function")
        if point.name in found:
            raise CheckerError(f"two checkers are called {point.name!r}: rename one of them")
        found[point.name] = checker
    return found


def check_history(
    history: History, checkers: Mapping[str, Checker]
) -> tuple[list[Anomaly], list[str]]:
    """What the checkers find, and for each one that fails its name and error."""
    anomalies: list[Anomaly] = []
    failures: list[str] = []
    for name, checker in checkers.items():
        try:
            found = list(checker(history))
        except Exception as e:
            failures.append(f"the checker {name} failed: {in_one_line(e)}")
            continue
        odd = next((a for a in found if not isinstance(a, Anomaly)), None)
        if odd is not None:
            failures.append(f"the checker {name} gave {odd!r}, which is no Anomaly")
            continue
        anomalies += found
    return anomalies, failures
