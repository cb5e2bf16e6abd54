"""Hypothesis profiles: ``HYPOTHESIS_PROFILE=nightly`` tries many more examples.

Examples are timed nowhere: a busy machine makes no test fail.
"""

from __future__ import annotations

import os

from hypothesis import settings

from bettong.harness.spark.cache import ENV_CACHE, cache_directory

# Tests that change HOME share what is made once for a machine.
os.environ[ENV_CACHE] = str(cache_directory())

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))
