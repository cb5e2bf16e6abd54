"""An application on three workers, each on a machine of its own, with its state in a bucket."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from bettong.engine import interpret
from bettong.scenarios.applications.word_count import app
from bettong.scenarios.benchmarks import workers
from bettong.scenarios.benchmarks.machines import Machines
from bettong.scenarios.benchmarks.spark_machines import SparkMachines

pytest.importorskip("moto.server")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None,
        reason="NO MACHINES: network namespaces take root and iproute2",
    ),
]

ENGINE = "bettong.engine"


def shown(folder: Path) -> dict[str, str]:
    """What each visible output says, by its id."""
    path = folder / "receiver" / "word_count" / "output.jsonl"
    rows = [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []
    assert len({row["id"] for row in rows}) == len(rows), "an output shows twice"
    return {row["id"]: row["data"] for row in rows}


def test_a_machine_is_lost_and_one_joins_while_messages_come(tmp_path: Path) -> None:
    """Its network goes first, so that nobody hears that its processes end."""
    with Machines(tmp_path) as machines:
        cluster = SparkMachines(machines, tmp_path)
        state = cluster.serve_s3()
        gateway = cluster.serve("gateway", f"{ENGINE}.ingest.gateway")
        receiver = cluster.serve("receiver", f"{ENGINE}.receiver.server")
        for name in ("w1", "w2"):
            cluster.join(name)
        machines.add("sender")
        options = ["--gateway", str(gateway), "--stream", "lines", "--input", "-"]
        command = [sys.executable, "-m", f"{ENGINE}.ingest.sender", *options]
        sender = machines.start("sender", command, hears=True)
        driver = cluster.start(
            "bettong.scenarios.applications.word_count:app",
            *("--source", f"lines={gateway}", "--sink", f"totals={receiver}"),
            *("--checkpoint", str(tmp_path / "checkpoint"), "--state", state),
        )

        lines: list[str] = []

        def send(count: int) -> None:
            new = [f"they know they found it {n % 9}" for n in range(count)]
            sender.requests.write("".join(f"{line}\n" for line in new).encode())
            sender.requests.flush()
            lines.extend(new)

        def all_show() -> bool:
            return len(shown(tmp_path)) == sum(len(line.split()) for line in lines)

        def have_worked(*names: str) -> bool:
            """Whether all of them have; while they have not, there is always something to do."""
            if all_show():
                send(20)
            return all(map(cluster.has_worked, names))

        send(100)
        cluster.until(lambda: have_worked("w1", "w2"), driver)
        send(100)
        machines.lose("w1")
        send(100)
        cluster.until(all_show, driver)
        cluster.join("w3")
        cluster.until(lambda: have_worked("w3"), driver)
        send(100)
        sender.requests.close()
        assert sender.wait(1000) == 0
        assert driver.wait(1000) == 0
        outputs = interpret(app, {"lines": [line.encode() for line in lines]}).outputs
        assert shown(tmp_path) == {str(o.id): o.data.decode() for o in outputs}


def test_the_bench_of_workers_checks_each_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MOST_WORKERS", 1)
    monkeypatch.setattr(workers, "BATCH", 2_000)
    figures = workers.bench(events=12_000)["figures"]
    for store in ("folder", "S3"):
        assert figures[f"1 workers, state in {store}"]["value"] > 0
        assert figures[f"1 workers, state in {store}, driver"]["value"] > 0
    assert figures["1 workers, state in folder, manifest"]["value"] > 0
