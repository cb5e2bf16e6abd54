"""The java that a script's driver is started with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bettong.harness.queries.job import script_java
from bettong.harness.queries.job.script_java import java_home
from bettong.harness.spark import jar
from bettong.harness.spark.archive_maker import make_in_background

HOOKS = Path("/cache/hooks.jar")
CONFIGURATION = Path("/run/it's/conf")
OF_SPARK = f"{HOOKS}:{CONFIGURATION}/:/spark/jars/slf4j.jar:/spark/jars/*"


def asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str, archive: Path | None
) -> list[str]:
    """What the machine's own java is asked for."""
    own = folder / "machine's own" / "bin" / "java"
    own.parent.mkdir(parents=True)
    (own.parent / "keytool").touch()
    (own.parent.parent / "release").write_text("17")
    own.write_text('#!/bin/sh\nprintf "%s\\0" "$@" "$JAVA_HOME"\n')
    own.chmod(0o755)
    monkeypatch.setattr(jar, "java", lambda: str(own))
    monkeypatch.setattr(jar, "hooks", lambda: jar.Hooks(HOOKS, ()))
    monkeypatch.setattr(script_java, "current_archive", lambda: archive)
    home = java_home(folder, CONFIGURATION)
    assert java_home(folder, CONFIGURATION) == home
    assert (home / "release").read_text() == "17"
    assert (home / "bin" / "keytool").exists()
    of_script = {"JAVA_HOME": str(home)}
    command = [home / "bin" / "java", *words]
    done = subprocess.run(command, capture_output=True, check=True, env=of_script)
    *asked, sees = done.stdout.decode().split("\0")[:-1]
    shares = any(word.startswith("-XX:SharedArchiveFile=") for word in asked)
    assert sees == str(own.parent.parent if shares else home)
    return asked


def test_a_driver_shares_class_data_and_its_configuration_comes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("-cp", OF_SPARK, "-Dx=a  b", "org.apache.spark.deploy.SparkSubmit", "", "$HOME\n'")
    archive = tmp_path / "some classes.jsa"
    assert asked(tmp_path, monkeypatch, *words, archive=archive) == [
        *(f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-cp"),
        f"{HOOKS}:/spark/jars/slf4j.jar:/spark/jars/*:{CONFIGURATION}/",
        *words[2:],
    ]


@pytest.mark.parametrize("class_path", ["/spark/jars/*", f"/own.jar:{OF_SPARK}"])
def test_what_begins_otherwise_than_the_archive_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, class_path: str
) -> None:
    words = ["-cp", class_path, "Main"]
    assert asked(tmp_path, monkeypatch, *words, archive=tmp_path / "classes.jsa") == words


def test_without_an_archive_it_is_the_machines_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(tmp_path, monkeypatch, "-version", archive=None) == ["-version"]
    assert not (tmp_path / "java").exists()


@pytest.mark.spark
def test_spark_itself_is_started_with_shared_class_data(tmp_path: Path) -> None:
    maker = make_in_background()
    if maker is not None:
        maker.wait()
    configuration = tmp_path / "conf"
    configuration.mkdir()
    defaults = f"spark.driver.extraClassPath {jar.hooks().path}\n"
    (configuration / "spark-defaults.conf").write_text(defaults)
    loaded = tmp_path / "loaded"
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home(tmp_path, configuration)),
        "SPARK_CONF_DIR": str(configuration),
        "SPARK_SUBMIT_OPTS": f"-XX:+UseSerialGC -Xlog:class+load:file={loaded}",
    }
    submit = jar.spark_home() / "bin" / "spark-submit"
    subprocess.run([submit, "--version"], env=environment, capture_output=True, check=True)
    [submits] = [line for line in loaded.read_text().splitlines() if "deploy.SparkSubmit " in line]
    assert "shared objects file (top)" in submits
