"""Why a run of a job went well: what could have struck it, beside what can strike a sink."""

from __future__ import annotations

from collections.abc import Iterator

from bettong.harness.queries.faults.kinds import AnyFault
from bettong.harness.queries.faults.operations import MORE, STOPPED
from bettong.harness.queries.search.lineage import Why


class JobWhy(Why):
    """Reads lineage out of runs of a job, whose rows are its own."""

    def _events(self) -> Iterator[AnyFault]:
        yield STOPPED
        yield MORE
