"""Python's clock, set ahead in a process of its own and in those that it forks."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

PROGRAM = """
import json, os, sys, tempfile, time
from datetime import date, datetime
from pathlib import Path
tempfile.tempdir = sys.argv[1]
from bettong.engine.steps import Instrumentation
from bettong.harness.queries.sink import aiming, probes
probes.install()

def clock():
    return [str(date.today()), str(datetime.now().date()), time.strftime("%Y-%m-%d"), time.time()]

def forked():
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(clock()).encode())
        os._exit(0)
    os.wait()
    return json.loads(os.read(reading, 1000))

measured = time.monotonic()
found = {"before": clock()}
home = Path(tempfile.gettempdir())
aiming.aim(home / "work", Instrumentation(), home=home, ahead_s=90060)  # as another process does
found["child"] = forked()
found["parent"] = clock()
aiming.aim(home / "work", Instrumentation(), ahead_s=90060)
found["own"] = clock()
aiming.aim(None, Instrumentation())
found["after"] = clock()
found["measured"] = time.monotonic() - measured
print(json.dumps(found))
"""


def test_it_is_a_day_later_for_whom_it_should_be(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(done.stdout)
    today, now = found["before"][0], found["before"][-1]
    for who in ("child", "own"):
        *days, at = found[who]
        assert len(set(days)) == 1
        assert date.fromisoformat(days[0]) >= date.fromisoformat(today) + timedelta(days=1)
        assert 90060 <= at - now < 90060 + 3600
    for who in ("before", "parent", "after"):
        assert found[who][-1] - now < 3600
    assert found["measured"] < 3600
