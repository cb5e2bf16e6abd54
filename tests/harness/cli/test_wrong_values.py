"""Values that were once taken for something else, or read without end."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from bettong.harness.cli import cli
from bettong.harness.cli.printing import complain
from bettong.harness.spark.session import SessionConfig
from bettong.lineage.errors import UsageError
from bettong.lineage.files import read_json
from bettong.lineage.results import Anomaly, Result
from bettong.lineage.search.question_log import QuestionLog
from bettong.lineage.secrets import masked

WORDS = "bettong.scenarios.applications.word_count"
IN_AND_OUT = ("--input", "H@dir:in", "--read", "json:loads")


@pytest.fixture
def history(tmp_path: Path) -> str:
    path = tmp_path / "h.jsonl"
    path.write_text('{"id": 1, "v": 1}\n')
    return str(path)


@pytest.mark.parametrize(
    ("words", "output"),
    [
        (("protocol", "simple", "--schedule", "nonsense"), "'nonsense' is no fault"),
        (("protocol", "simple", "--schedule", "O(a,b,1) und"), "'und' is no fault"),
        (("protocol", "retry", "--nodes", "x,y"), "no such node; the protocol's nodes (--nodes) "),
        (("protocol", "simple", "--eot", "1" + "0" * 23), "not in the range"),
        (("protocol", "simple", "--crashes", "-1"), "not in the range"),
        (("check", "H", "H", "--ignore", "nocol"), "--ignore nocol: no such column"),
        (("check", "H", "H", "--id", ""), "--id: name at least one column"),
        (("top", "H", "--once", "--every", "-1"), "not in the range"),
        (("top", "H", "--once", "--every", "nan"), "nan"),
        (("top", "H", "--once"), "h.jsonl: not a line of a metrics file"),
        (("check", "H", "H", "--spark", "foo"), "--spark foo: write it as Spark does"),
        (("replay", "none.json"), "none.json: No such file or directory\n"),
        (("run", "counting", "--input", "none"), "the input none: No such file or directory\n"),
        (("run", "counting", "--faults", "n.yaml"), "n.yaml: No such file or directory\n"),
        (("start", f"{WORDS}:app", "--checkpoint", "c"), "was given []: give each of them once"),
        (("start", f"{WORDS}:app", "--checkpoint", "c", "--tls-ca", "no"), "'no' does not exist"),
        (("start", f"{WORDS}:app", "--checkpoint", "c", "--token-file", "no"), "does not exist"),
        (("check-job", "--script", "H", "--input", "H@dir:in"), "--script needs --read FILE.py"),
        (
            ("check-job", "--script", "H", *IN_AND_OUT, "--set", "DB=proxy:mine"),
            "proxy:mine has no address: give --endpoint mine=HOST:PORT, or name a server",
        ),
        (("top", "/dev/full", "--once"), "a line of it does not end"),
        (("run", "word_count", "--faults", "/dev/full"), "more than 256 MiB"),
        (("why", ".", "l/1", "--trace", "/dev/full"), "1: a line this long is no trace event"),
        (("state", "new", "--import", "/dev/full"), "is no savepoint"),
        (("check-sink", "m.py:S", "--endpoint", "x"), "write NAME=VALUE"),
        (
            ("check-sink", "m.py:S", "--endpoint", "x=1.2.3.4:99999"),
            "--endpoint x: '1.2.3.4:99999'",
        ),
        (("check-job", "m.py:J", "--endpoint", "x=1.2.3.4"), "write HOST:PORT"),
        (("check-sink", "m.py:S", "--endpoint", "x=1.2.3.4:0"), "port 0"),
    ],
    ids=lambda value: " ".join(value)[-40:] if isinstance(value, tuple) else "",
)
def test_it_is_refused(
    words: tuple[str, ...],
    output: str,
    history: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [history + word[1:] if word in ("H", "H@dir:in") else word for word in words]
    done = CliRunner().invoke(cli, given)
    assert done.exit_code == 2, done.output
    assert output in done.stderr and done.stderr.count("\n") == 1


def test_a_result_holds_numbers_of_json_only(tmp_path: Path) -> None:
    odd = Anomaly("Corrupt", ("a",), expected=[math.nan], seen={"v": -math.inf})
    result = Result("x", "invalid", anomalies=(odd,))

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = result.write(tmp_path).read_text()
    found = json.loads(text, parse_constant=refuse)["anomalies"][0]
    assert (found["expected"], found["seen"]) == (["NaN"], {"v": "-Infinity"})
    assert Result.read(tmp_path).anomalies[0].expected == ["NaN"]


@pytest.mark.parametrize("content", [b"[" * 50_000, b"\xff", b"{", b""])
def test_json_that_cannot_be_read_is_a_usage_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"x\.json"):
        read_json(tmp_path / "x.json", "the thing")


def test_a_search_log_that_was_changed_answers_nothing(tmp_path: Path) -> None:
    path = tmp_path / "search.jsonl"
    log = QuestionLog(path, "q", lambda value: True)
    log.add({"outcome": "violation"})
    log.close()
    seen: list[object] = []
    QuestionLog(path, "q", lambda value: seen.append(value) is None).close()
    assert seen == [{"outcome": "violation"}]
    path.write_text(path.read_text().replace("violation", "good"))
    with pytest.raises(UsageError, match="checksum is wrong"):
        QuestionLog(path, "q", lambda value: True)


@pytest.mark.parametrize(
    "text",
    [
        "401: Authorization: Bearer s3cr3t.of-mine",
        "{'Authorization': 'Basic dTpzM2NyM3Q='} s3cr3t".removesuffix(" s3cr3t"),
        "curl -H 'Cookie: session=s3cr3t'",
        "sent bearer s3cr3t to it",
    ],
)
def test_headers_are_masked(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    complain(text)
    output = capsys.readouterr().err
    for secret in ("s3cr3t", "dTpz"):
        assert secret not in masked(text)
        assert secret not in output


def test_no_secret_stands_on_the_jvms_command_line(tmp_path: Path) -> None:
    settings = {
        "spark.hadoop.fs.s3a.secret.key": "s3cr3t = \\ #1",
        "spark.app.name": "plain",
        "spark.local.dir": str(tmp_path),
    }
    words = SessionConfig(hooks=False).java_command(settings, None)
    assert not any("s3cr3t" in word for word in words)
    assert "spark.app.name=plain" in words
    file = Path(words[words.index("--properties-file") + 1])
    assert file.stat().st_mode & 0o077 == 0
    assert file.read_text() == "spark.hadoop.fs.s3a.secret.key=s3cr3t\\ \\=\\ \\\\\\ \\#1\n"
