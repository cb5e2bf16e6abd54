"""What a node's log is quoted with."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.harness.cluster.nodes import last_words

TRACEBACK = """Traceback (most recent call last):
  File "driver_process.py", line 99, in main
    run(config)
  File "client.py", line 12, in run
    raise RefusedError(
"""


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("", "it said nothing"),
        ('{"listening": "127.0.0.1:9"}\nbatch 1\n', '{"listening": "127.0.0.1:9"} batch 1'),
        (f"batch 1\n{TRACEBACK}RefusedError: epoch 2\nis over\n", "RefusedError: epoch 2 is over"),
        (
            f"{TRACEBACK}OSError: full\n\nDuring handling of the above, this:\n\n"
            f"{TRACEBACK}ClosedError: the log is closed\n",
            "ClosedError: the log is closed",
        ),
        (f"{TRACEBACK}", TRACEBACK),
        ("x" * 600, "x" * 500),
    ],
)
def test_a_log_is_quoted_with_its_end_and_a_traceback_with_what_was_raised(
    tmp_path: Path, written: str, words: str
) -> None:
    log = tmp_path / "log"
    log.write_text(written)
    assert last_words(log) == " ".join(words.split())


def test_a_node_that_was_never_started_said_nothing(tmp_path: Path) -> None:
    assert last_words(tmp_path / "none") == "it said nothing"
