"""Each job that ships has the level that it is said to have."""

from __future__ import annotations

import pytest

from bettong.harness.catalog import CatalogEntry, entries
from bettong.harness.queries.job.check import check_one_job
from bettong.harness.queries.request import Request
from bettong.harness.queries.run.environment import SparkEnvironments
from bettong.lineage.search.loop import Budget
from bettong.scenarios.jobs import SHIPPED

VARIES = {
    "bettong.scenarios.jobs.stateless:NumberedByDriver",
    "bettong.scenarios.jobs.processors:Visits",
    "bettong.scenarios.jobs.processors:VisitsMarkedFirst",
    "bettong.scenarios.jobs.state:Sessions",
    "bettong.scenarios.jobs.state:SessionsAppended",
}
"""Those of which a restart between batches, without any fault, shows something else: a number
begins anew, or a timer goes off in the batch without data that comes before it."""


@pytest.mark.spark
@pytest.mark.servers
@pytest.mark.slow
@pytest.mark.parametrize("job", SHIPPED, ids=lambda job: job.name)
def test_its_level_is_found(environments: SparkEnvironments, job: CatalogEntry) -> None:
    request = Request(job.name, contract="job", faults=1, budget=Budget(seconds=900))
    result = check_one_job(request, environments)
    assert result.guarantee == job.level, result.reason
    assert (result.details["envelope"] != []) == (job.name in VARIES)
    assert result.verdict == ("valid" if job.level == "effectively-once" else "invalid")
    assert result.coverage.not_injected == 0


def test_the_catalog_names_them() -> None:
    assert {entry.name for entry in entries("job")} == {job.name for job in SHIPPED}
