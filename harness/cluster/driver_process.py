"""The driver without Spark: a process that runs the in-process runner.

``python -m bettong.harness.cluster.driver_process JSON``, the arguments of
:func:`bettong.harness.cluster.driver_config.configurations`.
"""

from __future__ import annotations

import json
import sys

# Not used here: the runner imports them with its first batch, which takes ten times as long as the
# batch. A fork server that has this module ready has them ready too.
import pandas  # noqa: F401
import pyarrow.pandas_compat  # noqa: F401
import pyspark.cloudpickle  # noqa: F401

from bettong.engine import steps
from bettong.engine.in_process import run_in_process
from bettong.engine.steps import Instrumentation
from bettong.harness.cluster.driver_config import configurations


def main() -> None:
    """Run until the stream has ended and everything of it is committed."""
    steps.install(Instrumentation.from_env())
    for application, config in configurations(**json.loads(sys.argv[1])):
        run_in_process(application, config)


if __name__ == "__main__":
    main()
