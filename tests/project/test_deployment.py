"""The image, the compose file and the systemd unit ask for what there is."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bettong.engine.ingest import gateway, sender
from bettong.engine.receiver import server
from bettong.harness.cli.start_command import command as start

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
MODULES = {module.__name__: module for module in (gateway, sender, server)}


def arguments(service: str) -> list[str]:
    """What a service is called with, where nothing is set in the environment."""
    return [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", part) for part in SERVICES[service]["command"]]


def options(words: list[str]) -> dict[str, str]:
    """The value of each option."""
    found: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if equals else following
    return found


@pytest.mark.parametrize("service", ["gateway", "receiver", "sender"])
def test_a_server_has_the_options_that_it_is_given(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *python, module = SERVICES[service]["entrypoint"]
    assert python == ["python", "-m"]
    with pytest.raises(SystemExit):
        MODULES[module].main(["--help"])
    known = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
    assert set(options(arguments(service))) <= known


def test_the_engine_is_started_with_options_that_there_are() -> None:
    name, *words = arguments("engine")
    assert name == "start"
    given = start.make_context("start", words).params
    assert given["application"] == "bettong.scenarios.applications.word_count:app"
    assert given["master"] == "spark://master:7077"
    assert f":{given['health'].rpartition(':')[2]}/ready" in str(
        SERVICES["engine"]["healthcheck"]["test"]
    )


def test_every_service_finds_the_others() -> None:
    listening = {
        f"{name}:{options(arguments(name))[option].rpartition(':')[2]}"
        for name, option in (
            ("gateway", "--listen"),
            ("receiver", "--listen"),
            ("master", "--port"),
        )
    }
    asked = re.findall(r"\b(?:gateway|receiver|master):\d+", (ROOT / "compose.yaml").read_text())
    assert set(asked) == listening
    for service in SERVICES.values():
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        assert {v.partition(":")[0] for v in service.get("volumes", ())} <= set(COMPOSE["volumes"])


def test_what_runs_for_long_is_restarted_and_can_do_little() -> None:
    for name, service in SERVICES.items():
        assert service["restart"] == ("no" if name == "sender" else "unless-stopped")
        assert service["cap_drop"] == ["ALL"]
        assert "ports" not in service
    assert COMPOSE["networks"]["inside"]["internal"]


def test_the_image_is_of_this_package_and_not_roots() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    users = re.findall(r"^USER (\d+):(\d+)$", text, re.MULTILINE)
    assert users == [("10001", "10001")]
    extras = re.search(r"/tmp/bettong\[([\w,]+)\]", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert extras and set(extras[1].split(",")) <= set(project["optional-dependencies"])
    let_in = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    assert all((ROOT / name).exists() for name in let_in)
    rooms = {path.parent.name for path in ROOT.glob("*/py.typed")}
    assert rooms <= set(let_in)


def test_the_unit_starts_with_options_that_there_are() -> None:
    text = (ROOT / "docs/run-a-service.md").read_text("utf-8")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    found = re.search(r"```ini\n(.*?)```", text, re.DOTALL)
    assert found
    unit.read_string(found[1])
    service = unit["Service"]
    program, name, *words = shlex.split(service["ExecStart"])
    assert (Path(program).name, name) == ("bettong", "start")
    assert set(options(words)) <= {option for p in start.params for option in p.opts}
    assert int(service["TimeoutStopSec"]) >= 60
    assert service["KillMode"] == "mixed"  # Spark's processes end after the batch at hand
