"""Receiver and its client as processes, the receiver killed at each of its steps."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bettong.engine import steps
from bettong.engine.address import Address
from bettong.engine.net.client import Patience
from bettong.engine.net.errors import RefusedError
from bettong.engine.receiver.client import ReceiverClient
from bettong.engine.receiver.output import read_rows
from bettong.engine.receiver.rows import Row

RECEIVER = "bettong.engine.receiver.server"
PATIENCE = Patience(timeout_s=10, give_up_s=30)


def rows(batch: int, partition: int) -> list[Row]:
    return [Row(f"lines/{batch}.{partition}{n}", f"k{n}", b"%d" % n) for n in range(3)]


IDS = [row.id for batch in range(2) for partition in range(2) for row in rows(batch, partition)]


@pytest.fixture
def watched(killer: Any) -> Iterator[None]:
    before = steps.installed()
    steps.install(steps.Instrumentation(node="driver", conductor=killer.address))
    yield
    steps.install(before)


def write_all(client: ReceiverClient) -> None:
    client.open()
    for batch in range(2):
        for partition in range(2):
            client.prepare(batch, partition, 0, rows(batch, partition))
        client.commit(batch, {0: 0, 1: 0})


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize(
    "step",
    [
        "receiver.open/epoch=1",
        "receiver.prepare/batch=1/p=0/a=0",
        "receiver.prepare/batch=1/p=1/a=0",
        "receiver.commit/batch=1",
    ],
)
def test_a_kill_loses_and_doubles_nothing(
    start: Any, killer: Any, watched: None, tmp_path: Path, step: str, phase: str
) -> None:
    options = {"node": "receiver", "conductor": killer.address}
    killer.kill_at = (step, phase)
    receiver = start(RECEIVER, "--listen", "127.0.0.1:0", "--dir", tmp_path / "out", **options)
    listen = ("--listen", receiver.address, "--dir", tmp_path / "out")
    client = ReceiverClient(receiver.address, "app", 1, patience=PATIENCE)
    driver = threading.Thread(target=write_all, args=(client,))
    driver.start()
    assert killer.killed.wait(60)
    assert receiver.wait() == -9
    receiver = start(RECEIVER, *listen, **options)
    driver.join(60)
    assert not driver.is_alive()
    assert [row["id"] for row in read_rows(tmp_path / "out" / "app")] == IDS
    lines = (tmp_path / "out" / "app" / "output.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == IDS
    asked = step.replace("receiver.open/epoch=1", "epoch=1/sink.open")
    asked = asked.replace("receiver.prepare/", "").replace("a=0", "a=0/sink.prepare")
    asked = asked.replace("receiver.commit/batch=1", "batch=1/sink.commit")
    assert killer.counts("failed")[asked] >= 1, "the driver saw it fail"
    assert killer.counts()[asked] == 1, "and did it again"
    client.close()


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize(
    "step", ["receiver.prepare/batch=1/p=0/a=0", "receiver.commit/batch=1", "receiver.open/epoch=1"]
)
def test_a_full_disk_loses_and_doubles_nothing(
    start: Any, killer: Any, watched: None, tmp_path: Path, step: str, phase: str
) -> None:
    killer.fail_at = (step, phase)
    receiver = start(
        *(RECEIVER, "--listen", "127.0.0.1:0", "--dir", tmp_path / "out"),
        node="receiver",
        conductor=killer.address,
    )
    client = ReceiverClient(receiver.address, "app", 1, patience=PATIENCE)
    write_all(client)
    client.close()
    assert killer.fail_at is None, "it has happened"
    assert [row["id"] for row in read_rows(tmp_path / "out" / "app")] == IDS


def test_two_clean_runs_take_the_same_steps_for_the_same_causes(
    start: Any, killer: Any, watched: None, tmp_path: Path
) -> None:
    traces = []
    for run in range(2):
        killer.events.clear()
        receiver = start(
            *(RECEIVER, "--listen", "127.0.0.1:0", "--dir", tmp_path / str(run)),
            node="receiver",
            conductor=killer.address,
        )
        client = ReceiverClient(receiver.address, "app", 1, patience=PATIENCE)
        write_all(client)
        client.close()
        done = [event for event in killer.events if event["phase"] == "after"]
        traces.append([(e["step"], e["node"], e.get("causes", [])) for e in done])
    assert traces[0] == traces[1]
    causes = {step: found for step, _, found in traces[0]}
    assert causes["receiver.commit/batch=1"] == [
        "batch=1/sink.commit",
        "receiver.prepare/batch=1/p=0/a=0",
        "receiver.prepare/batch=1/p=1/a=0",
    ]
    assert causes["batch=1/sink.commit"] == ["receiver.commit/batch=1"]


def test_a_zombie_of_an_older_epoch_is_fenced_on_every_connection(
    start: Any, tmp_path: Path
) -> None:
    receiver = start(RECEIVER, "--listen", "127.0.0.1:0", "--dir", tmp_path / "out")
    old = ReceiverClient(receiver.address, "app", 1, patience=PATIENCE)
    old.open()
    old.prepare(0, 0, 0, rows(0, 0))
    new = ReceiverClient(receiver.address, "app", 2, patience=PATIENCE)
    new.open()
    for action in (
        lambda: old.prepare(0, 0, 1, rows(0, 0)),
        lambda: old.commit(0, {0: 0}),
        old.open,
    ):
        with pytest.raises(RefusedError) as refusal:
            action()
        assert refusal.value.code == "fenced"
    other = ReceiverClient(receiver.address, "other-app", 1, patience=PATIENCE)
    other.open()
    new.prepare(0, 0, 0, [])
    assert not new.commit(0, {0: 0})
    assert list(read_rows(tmp_path / "out" / "app")) == []


def test_many_rows_travel_in_parts_and_any_bytes_survive(start: Any, tmp_path: Path) -> None:
    receiver = start(RECEIVER, "--listen", "127.0.0.1:0", "--dir", tmp_path / "out")
    client = ReceiverClient(receiver.address, "app", 1, patience=PATIENCE)
    client.open()
    big = [Row(f"lines/{n}.0", None, bytes([n]) * 900_000) for n in (65, 66, 67, 250, 251, 252)]
    odd = [Row('lines/9."\n', "\u2028<k>", 'ü"\\\x00'.encode())]
    client.prepare(0, 0, 0, [*big, *odd])
    client.prepare(0, 0, 0, [*big, *odd])
    client.commit(0, {0: 0})
    found = list(read_rows(tmp_path / "out" / "app"))
    assert [row["id"] for row in found] == [row.id for row in [*big, *odd]]
    assert found[0]["data"] == "A" * 900_000
    assert "base64" in found[3]
    assert found[-1] == {"id": odd[0].id, "key": odd[0].key, "data": 'ü"\\\x00', "batch": 0}


def test_clients_give_up_when_nobody_is_there(port: int) -> None:
    client = ReceiverClient(
        Address("127.0.0.1", port), "app", 1, patience=Patience(timeout_s=1, give_up_s=0)
    )
    with pytest.raises(ConnectionError, match="gave up after 0 s"):
        client.open()
