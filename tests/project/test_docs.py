"""What the README and the docs tell people to type and to write can be meant."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from docs_samples import PAGES, ROOT, arguments, blocks, commands, files, write_files

from bettong.harness.cli import cli
from bettong.harness.faults.schedule import Schedule
from bettong.harness.suites.suite import read_suites

# They need what only a reader has: a function of theirs, a server, warm nodes.
NOT_RUN = ("my_function", "psycopg", "@pytest.mark.bettong", "LocalBackend", "...", 'environ["IN"]')


@pytest.mark.parametrize(("page", "line"), commands())
def test_every_command_has_a_name_and_options_that_exist(page: str, line: str) -> None:
    name, *options = arguments(line)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"{page}: {line}"
    try:
        command.make_context(name, options)
    except click.BadParameter as e:  # a file that the reader makes
        assert "does not exist" in str(e), f"{page}: {line}: {e}"
    except click.exceptions.Exit as e:
        assert e.exit_code == 0


@pytest.mark.parametrize(("page", "code"), list(blocks("python")))
def test_every_python_sample_compiles_and_imports_what_exists(page: str, code: str) -> None:
    for node in ast.walk(ast.parse(code, page)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bettong"):
            module = __import__(str(node.module), fromlist=["_"])
            for alias in node.names:
                assert hasattr(module, alias.name), f"{page}: {node.module} has no {alias.name}"


@pytest.mark.parametrize("page", sorted({page for page, _ in blocks("python")}))
def test_the_python_samples_of_a_page_run_one_after_the_other(page: str, tmp_path: Path) -> None:
    samples = [text for _, text in blocks("python", page)]
    runnable = [text for text in samples if not any(word in text for word in NOT_RUN)]
    write_files(page, tmp_path)
    if page == "ci.md":
        write_files("check-your-sink.md", tmp_path)
    script = tmp_path / "samples.py"
    script.write_text("\n\n".join(runnable), "utf-8")
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_files_of_a_page_are_those_that_it_names() -> None:
    assert set(files("five-minutes.md")) == {"crash.yaml"}
    assert set(files("write-a-scenario.md")) == {
        "orders/pipeline.py",
        "orders/bettong_catalog.py",
        "pyproject.toml",
    }
    assert set(files("check-your-sink.md")) == {"mysink.py"}
    assert set(files("engine.md")) == {"words.py"}


LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", [*PAGES.values(), ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_inner_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.MULTILINE)
            slugs = {
                re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads
            }
            assert anchor in slugs, f"{page.name}: {target}"


OWN_KIND = "freeze:"
"""A kind of fault that the page on how to add one adds itself: `test_contributing.py` runs it."""


@pytest.mark.parametrize(
    ("page", "text"), [(page, text) for page, text in blocks("yaml") if OWN_KIND not in text]
)
def test_yaml_samples_are_schedules_or_workflows(page: str, text: str, tmp_path: Path) -> None:
    if "faults" in yaml.safe_load(text):
        file = tmp_path / "schedule.yaml"
        file.write_text(text, "utf-8")
        assert Schedule.read(file).faults
    else:
        assert "bettong " in text


def test_the_suites_of_the_page_on_ci_are_suites(tmp_path: Path) -> None:
    (text,) = (text for _, text in blocks("toml", "ci.md"))
    file = tmp_path / "bettong.toml"
    file.write_text(text, "utf-8")
    (suite,) = read_suites(file).values()
    assert [run.name for run in suite.runs] == ["word_count", "orders"]
    assert set(suite.quarantine) == {"orders"}


def test_every_page_is_in_the_contents() -> None:
    index = PAGES["index.md"].read_text("utf-8")
    for name, path in PAGES.items():
        if path.is_relative_to(ROOT / "docs") and name != "index.md":
            assert str(path.relative_to(ROOT / "docs").with_suffix("")) in index, name
