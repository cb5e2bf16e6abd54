"""``bettong start`` as a service on a live feed, without Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from live_feed import Feed, bettong, gateway, shown, start
from live_service import check_goes_on, check_in_time, until

from bettong.engine.address import Address
from bettong.engine.config import RunConfig
from bettong.engine.health import Health
from bettong.engine.in_process import run_in_process
from bettong.engine.net.access import ListenConfig
from bettong.engine.net.errors import ConnectionLostError
from bettong.engine.sinks.files import FileSink, read_rows
from bettong.engine.sources.base import Extent, FileSource
from bettong.harness.cli import application_options, cli
from bettong.harness.processes.addresses import held_ports
from bettong.scenarios.applications.word_count import app


def test_outputs_show_whatever_is_silent_and_signals_end_the_run(tmp_path: Path) -> None:
    check_goes_on(tmp_path, "in-process")


@pytest.mark.slow
def test_outputs_show_within_two_seconds(tmp_path: Path) -> None:
    check_in_time(tmp_path, "in-process")


def ask(where: str, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"http://{where}{path}", timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def test_a_supervisor_is_told_how_the_run_is(tmp_path: Path) -> None:
    with held_ports(1) as (port,), gateway(tmp_path / "gateway") as where:
        health = f"127.0.0.1:{port}"
        feed = Feed(where, tmp_path / "acked")
        try:
            options = ("--health", health, "--log-format", "json", "--wait", "5ms")
            run = start(tmp_path, where, "in-process", *options)
            feed.send(6)
            until(lambda: len(shown(tmp_path)) > 5, run)
            assert ask(health, "/live") == (200, {"live": True})
            assert ask(health, "/ready") == (200, {"ready": True})
            all_done = {
                "amounts": {"done": 6, "came": 6, "lag": 0},
                "corrections": {"done": 0, "came": 0, "lag": 0},
            }
            until(lambda: ask(health, "/lag")[1]["streams"] == all_done, run)
            assert ask(health, "/lag")[0] == 200
            run.send_signal(signal.SIGTERM)
            _, err = run.communicate(timeout=600)
        finally:
            feed.close()
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["message"].split(":")[0] for line in lines] == ["starting", "SIGTERM", "ended"]
    assert lines[-1]["stopped_by"] == "SIGTERM"
    assert lines[-1]["batches"] > 0


STOPPED_AS_IT_STARTS = """
import os, signal
from bettong.scenarios.applications.word_count import app
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_run_that_is_stopped_as_it_starts_ends_well(tmp_path: Path) -> None:
    (tmp_path / "stopped.py").write_text(STOPPED_AS_IT_STARTS)
    (tmp_path / "words.txt").write_text("they know they\n")
    command = [bettong(), "start", "--runner", "in-process", "--checkpoint", "checkpoint"]
    options = ["--source", "lines=words.txt", "--sink", "totals=out", "stopped:app"]
    done = subprocess.run(
        [*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "word_count: 0 batches done; SIGTERM ended the run, the next start goes on there\n"
    )


STANDS_STILL = """
import os
from bettong.engine import application, computation, decoder, encoder, sink, source

@decoder
def line(data: bytes) -> str:
    return data.decode()

@computation
def waits(line: str) -> str:
    open("begun", "w").close()
    if os.path.exists("pipe"):
        open("pipe").close()
    return line

@encoder
def text(line: str) -> bytes:
    return line.encode()

app = application("waiting", source("lines", line).to(waits).to_sink(sink("out", text)))
"""


def test_a_second_signal_ends_a_run_amid_its_batch_and_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(STANDS_STILL)
    (tmp_path / "lines.txt").write_text("a\nb\n")
    os.mkfifo(tmp_path / "pipe")
    command = [bettong(), "start", "--runner", "in-process", "--checkpoint", "checkpoint"]
    options = ["--source", "lines=lines.txt", "--sink", "out=out", "waiting:app"]
    with subprocess.Popen(
        [*command, *options], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as run:
        until((tmp_path / "begun").exists, run)
        run.send_signal(signal.SIGTERM)
        assert run.stderr is not None
        assert "once more ends it at once" in run.stderr.readline()
        run.send_signal(signal.SIGTERM)
        assert run.wait(timeout=600) == 128 + signal.SIGTERM
    assert list(read_rows(tmp_path / "out")) == []
    (tmp_path / "pipe").unlink()
    subprocess.run([*command, *options], cwd=tmp_path, check=True, timeout=600)
    assert [row["data"] for row in read_rows(tmp_path / "out")] == ["a", "b"]


class Gone(FileSource):
    """While it is tried to be reached the run is told to end."""

    def extent(self, upto: int, wait: float) -> Extent:
        os.kill(os.getpid(), signal.SIGTERM)
        raise ConnectionLostError("gave up after 60 s")


def test_a_run_that_is_stopped_while_a_server_is_away_ends_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words.txt").write_text("they know they\n")
    monkeypatch.setattr(application_options, "FileSource", Gone)
    command = ["start", "bettong.scenarios.applications.word_count:app", "--runner", "in-process"]
    where = ["--checkpoint", str(tmp_path / "checkpoint"), "--sink", f"totals={tmp_path / 'out'}"]
    options = ["--source", f"lines={tmp_path / 'words.txt'}", "--json"]
    done = CliRunner().invoke(cli, [*command, *where, *options])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {"batches": 0, "gives_up": [], "stopped_by": "SIGTERM"}


def test_a_source_that_does_not_answer_is_why_the_lag_is_not_known(tmp_path: Path) -> None:
    class Slow(FileSource):
        def extent(self, upto: int, wait: float) -> Extent:
            raise TimeoutError

    health = Health(ListenConfig(Address("127.0.0.1", 0)), {"lines": Slow(tmp_path / "lines")})
    try:
        status, _, body = health.respond("/lag")
    finally:
        health.close()
    assert (status, json.loads(body)["why"]) == (503, "a source does not answer: too slow")


def test_the_lag_of_a_start_is_known_before_its_first_batch(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("they know they\n" * 10)
    config = RunConfig(
        tmp_path / "checkpoint",
        {"lines": FileSource(tmp_path / "words.txt")},
        {"totals": FileSink(tmp_path / "out")},
    )
    run_in_process(app, config)
    (tmp_path / "words.txt").write_text("they know they\n" * 13)
    begun = replace(config, health=ListenConfig(Address("127.0.0.1", 0))).begin(app)
    try:
        assert begun.settings.health is not None
        _, _, body = begun.settings.health.respond("/lag")
    finally:
        begun.close()
    assert json.loads(body) == {
        "batch": 0,
        "streams": {"lines": {"done": 10, "came": 13, "lag": 3}},
    }


def test_a_file_says_what_the_command_line_does_not(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("they know they\n" * 10)
    config = tmp_path / "app.toml"
    config.write_text(
        f"""
application = "bettong.scenarios.applications.word_count:app"
checkpoint = "{tmp_path / "checkpoint"}"
runner = "in-process"
batch = 4
wait = "never"
json = true

[source]
lines = "{tmp_path / "words.txt"}"

[sink]
totals = "{tmp_path / "out"}"
"""
    )
    done = CliRunner().invoke(cli, ["start", "--config", str(config), "--batch", "5"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["batches"] == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("bach = 4", "did you mean batch?"),
        ("source = 'lines'", "a table is wanted"),
        ("json = 'yes'", "is not what --json takes"),
        ("batch = [1]", "a number or a text is wanted"),
        ("batch 4", "cannot read"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "app.toml").write_text(text + "\n")
    done = CliRunner().invoke(cli, ["start", "--config", str(tmp_path / "app.toml")])
    assert done.exit_code == 2
    assert why in done.output


@pytest.mark.parametrize("wait", ["50", "-1s", "soon"])
def test_a_wait_has_a_unit(tmp_path: Path, wait: str) -> None:
    options = ["--wait", wait, "--checkpoint", str(tmp_path / "checkpoint")]
    application = "bettong.scenarios.applications.word_count:app"
    done = CliRunner().invoke(cli, ["start", application, *options])
    assert done.exit_code == 2
    assert "write 50ms, 2s, 1m or never" in done.output
