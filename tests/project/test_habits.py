"""Hooks, workflows and changelog fragments name what there is."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def tox_environments() -> tuple[str, configparser.ConfigParser]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini")
    return parser["tox"]["env_list"], parser


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_environments_that_tox_has(path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    known = {s.removeprefix("testenv:") for s in tox_environments()[1].sections()}
    called = []
    for job in workflow["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        called += matrix.get("environment", [])
        called += [e for row in matrix.get("include", ()) for e in row["environments"].split(",")]
        for step in job["steps"]:
            named = re.search(r"tox -e ([\w,-]+)", step.get("run", ""))
            called += named[1].split(",") if named else []
    assert called
    assert all(name in known or re.fullmatch(r"unit-py3\d\d", name) for name in called)


def test_the_workflows_of_a_change_run_all_that_tox_runs_by_default() -> None:
    listed, parser = tox_environments()
    all_commands = parser["testenv:all"]["commands"]
    joined = re.findall(r"\[testenv:(\w+)\]commands", all_commands)
    marked = re.findall(r"-m \"\((\w+) or (\w+)\) and", all_commands)
    assert (joined, marked) == (["types", "docs"], [("spark", "image")])
    listed_names = [name.strip() for name in listed.split(",") if name.strip() != "all"]
    names = [*listed_names, *joined, *marked[0]]
    text = "".join((ROOT / f".github/workflows/{n}.yml").read_text("utf-8") for n in ("ci", "docs"))
    assert not [name for name in names if not re.search(rf"\b{name}\b", text)]


def test_a_busy_machine_makes_no_example_fail() -> None:
    """Each example may take its time; who names the checks that are left out must name that too."""
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
    for path in {*(ROOT / "tests").rglob("*.py")} - {Path(__file__)}:
        for left_out in re.findall(r"suppress_health_check=(\S.*)", path.read_text("utf-8")):
            assert re.search(r"too_slow|list\(HealthCheck\)|CHECKS", left_out), path


def test_the_hooks_check_what_tox_checks() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0][
        "hooks"
    ]
    entries = {hook["id"]: hook["entry"] for hook in hooks}
    rooms = set(
        re.findall(r"-p (bettong\.\w+)", tox_environments()[1]["testenv:types"]["commands"])
    )
    assert set(re.findall(r"-p (bettong\.\w+)", entries["mypy"])) == rooms
    assert entries["ruff-check"].startswith("ruff check")
    assert entries["ruff-format"].startswith("ruff format")


def test_what_a_run_writes_is_not_part_of_the_project() -> None:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("no work tree of git")
    listed = subprocess.run(
        [git, "-C", str(ROOT), "ls-files", ":(top,glob)*"],
        capture_output=True,
        text=True,
        check=True,
    )
    written = {".json", ".jsonl", ".err", ".log", ".time", ".html", ".xml"}
    tracked = [Path(name) for name in listed.stdout.split()]
    assert Path("tox.ini") in tracked
    assert [str(path) for path in tracked if path.suffix in written] == []


def test_fragments_of_the_changelog_have_a_kind_that_is_known() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
    kinds = {kind["directory"] for kind in config["type"]}
    for path in (ROOT / config["directory"]).iterdir():
        if path.name not in config["ignore"]:
            name, kind, suffix = path.name.split(".")
            assert name.startswith("+") and suffix == "md", f"{path.name}: +NAME.KIND.md"
            assert kind in kinds, f"{path.name}: {kinds}"
    assert config["start_string"] in (ROOT / config["filename"]).read_text("utf-8")
