"""Settings of sessions: whose win, which are joined, what is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.harness.spark import jar
from bettong.harness.spark.driver import told
from bettong.harness.spark.session import SessionConfig, merged, submit_settings
from bettong.lineage.errors import UsageError


def test_the_last_wins_and_lists_are_joined() -> None:
    assert merged(
        {"spark.jars": "a.jar", "spark.ui.enabled": "false"},
        {"spark.jars": "b.jar", "spark.ui.enabled": "true"},
    ) == {"spark.jars": "a.jar,b.jar", "spark.ui.enabled": "true"}


def test_submit_arguments_are_settings(tmp_path: Path) -> None:
    properties = tmp_path / "some.conf"
    properties.write_text("# comment\nspark.x  y z\n")
    assert submit_settings(
        "--jars a.jar --conf spark.k='v w' --driver-memory=2g --conf=spark.e=a=b "
        f"--properties-file {properties} --jars b.jar pyspark-shell"
    ) == {
        "spark.jars": "a.jar,b.jar",
        "spark.k": "v w",
        "spark.driver.memory": "2g",
        "spark.e": "a=b",
        "spark.x": "y z",
    }


def test_what_is_no_setting_is_refused() -> None:
    with pytest.raises(UsageError, match="--class"):
        submit_settings("--class Main pyspark-shell")
    with pytest.raises(UsageError, match=r"cannot read nowhere\.conf"):
        submit_settings("--properties-file nowhere.conf")


@given(
    st.dictionaries(
        st.from_regex(r"spark\.[a-z.]{1,10}", fullmatch=True), st.text("ab =',", min_size=1)
    )
)
def test_settings_survive_the_command_line(settings: dict[str, str]) -> None:
    import shlex

    words = [w for k, v in settings.items() for w in ("--conf", f"{k}={v}")]
    assert submit_settings(shlex.join(words)) == settings


def test_users_settings_win_over_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.b=submitted pyspark-shell")
    config = SessionConfig(
        master="local[1]",
        spark_config={"spark.ui.enabled": "true", "spark.plugins": "my.Plugin", "spark.b": "x"},
    )
    settings = config.settings(tmp_path)
    assert settings["spark.master"] == "local[1]"
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.b"] == "submitted"
    assert settings["spark.plugins"] == f"{jar.PLUGIN},my.Plugin"


def test_the_hook_jar_is_made_once_and_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETTONG_CACHE", str(tmp_path))
    jar.hooks.cache_clear()
    try:
        made = jar.hooks().path
        assert made.parent == tmp_path
        first = made.read_bytes()
        made.unlink()
        jar.hooks.cache_clear()
        assert jar.hooks().path.read_bytes() == first
    finally:
        jar.hooks.cache_clear()
    with zipfile.ZipFile(made) as content:
        assert "bettong/hooks/CheckpointFiles.class" in content.namelist()
    assert [p.name for p in tmp_path.iterdir()] == [made.name]


def test_no_java_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(UsageError, match="set JAVA_HOME"):
        jar.java()


@pytest.mark.parametrize(("length", "fits"), [(64, "true"), (65, "false")])
def test_sockets_are_used_where_their_paths_are_short_enough(length: int, fits: str) -> None:
    home = Path("/" + "d" * (length - 1))
    settings = SessionConfig(hooks=False).settings(home)
    assert settings["spark.python.unix.domain.socket.enabled"] == fits


@pytest.mark.parametrize(
    ("error", "log", "line"),
    [
        ("Py4JError", "Caused by: x.NoSuchClass: a\n\tat b\n", "x.NoSuchClass: a"),
        (
            "An error occurred while calling o1.x.\n: x.SparkException: no such master\n\tat y",
            "WARN something\n",
            "x.SparkException: no such master",
        ),
        ("", "first\nlast\n\n", "last"),
        ("", "", "it said nothing"),
    ],
)
def test_why_spark_has_not_started_is_one_line(error: str, log: str, line: str) -> None:
    assert told(error, log) == line


def test_how_this_process_hashes_is_nothing_to_its_drivers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("ITS_OWN", "value")
    env = SessionConfig().environment(tmp_path)
    assert ("PYTHONHASHSEED" in env, env["ITS_OWN"]) == (False, "value")
