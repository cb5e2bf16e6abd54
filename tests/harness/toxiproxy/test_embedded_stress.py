"""The embedded server while toxics come and go under load: no error of its own, no hung call."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from toxiproxy_ends import EchoServer, receive

from bettong.harness.toxiproxy import Proxy, Toxic, Toxiproxy, spec


@pytest.fixture
def embedded() -> Iterator[tuple[Toxiproxy, subprocess.Popen[str]]]:
    """A server whose own errors can be seen."""
    command = [sys.executable, "-m", "bettong.harness.toxiproxy.embedded", "--port", "0"]
    with subprocess.Popen(
        [*command, "--until-eof"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield Toxiproxy(process.stdout.readline().strip(), time_limit=20), process
        process.kill()


def some_toxic(rng: random.Random, number: int) -> Toxic:
    stream = rng.choice(spec.STREAMS)
    name = f"t{number}"
    toxic = rng.choice(
        [
            spec.latency(rng.choice([0, 1, 20]), rng.choice([0, 5]), stream, name),
            spec.bandwidth(rng.choice([0, 1, 1000]), stream, name),
            spec.slow_close(rng.choice([0, 10]), stream, name),
            spec.timeout(rng.choice([0, 5]), stream, name),
            spec.reset_peer(rng.choice([0, 5]), stream, name),
            spec.slicer(rng.choice([1, 50]), 0, rng.choice([0, 100]), stream, name),
            spec.limit_data(rng.choice([0, 10, 5000]), stream, name),
        ]
    )
    return Toxic(toxic.type, toxic.stream, toxic.attributes, name, rng.choice([0.5, 1.0]))


def change(api: Toxiproxy, rng: random.Random, names: list[str], number: int) -> None:
    act = rng.random()
    if act < 0.5 or not names:
        api.add_toxic("link", some_toxic(rng, number))
        names.append(f"t{number}")
    elif act < 0.85:
        api.remove_toxic("link", names.pop(rng.randrange(len(names))))
    elif act < 0.95:
        toxic = rng.choice(api.proxy("link").toxics)
        changed = some_toxic(rng, number)
        attributes = changed.attributes if changed.type == toxic.type else {}
        api.update_toxic("link", toxic.name, attributes, toxicity=rng.choice([0.0, 1.0]))
    else:
        api.disable("link")
        api.enable("link")


def talk(address: tuple[str, int], seed: int, stop: threading.Event) -> None:
    """Echo after echo; a connection that fails or stalls is given up for a new one."""
    rng = random.Random(seed)
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(address, timeout=0.2) as sock:
            for _ in range(20):
                data = rng.randbytes(rng.choice([1, 100, 20_000]))
                sock.sendall(data)
                if receive(sock, len(data)) != data:
                    break


@pytest.mark.parametrize("seed", range(6))
def test_toxics_may_come_and_go_under_load(
    embedded: tuple[Toxiproxy, subprocess.Popen[str]], echo: EchoServer, seed: int
) -> None:
    api, process = embedded
    proxy = api.create(Proxy("link", echo.address))
    stop = threading.Event()
    talkers = [
        threading.Thread(target=talk, args=(proxy.address, seed * 10 + i, stop)) for i in range(6)
    ]
    for talker in talkers:
        talker.start()
    rng, names = random.Random(seed), list[str]()
    try:
        for number in range(150):
            change(api, rng, names, number)
    finally:
        stop.set()
        for talker in talkers:
            talker.join()
    api.reset()
    with socket.create_connection(proxy.address, timeout=20) as sock:
        sock.sendall(b"well")
        assert receive(sock, 4) == b"well"
    traffic = api.traffic("link")
    assert traffic is not None
    for flow in (traffic.upstream, traffic.downstream):
        assert flow.received > 0
        assert min(flow.passed, flow.held, flow.dropped) >= 0
        assert flow.received == flow.passed + flow.held + flow.dropped
    _, errors = process.communicate(input="", timeout=20)
    assert errors == ""
