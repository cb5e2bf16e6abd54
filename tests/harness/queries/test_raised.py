"""An error in one line, and what to do about it."""

from __future__ import annotations

import sys

import pytest

from bettong.harness.queries.raised import JVM_GONE, cause, jvm_is_gone, raised_in, remedy
from bettong.harness.queries.run.failure import Failures

MISSING = """StreamingQueryException: [STREAM_FAILED] Query [id = 1] terminated with exception: \
TransformWithStateInPySpark driver worker exited unexpectedly (crashed) SQLSTATE: XXKST
=== Streaming Query ===
\tat org.apache.spark.StreamExecution$$anon$1.run(StreamExecution.scala:236)
Caused by: org.apache.spark.StreamingPythonRunnerInitializationException: failed, returned -2. \
Cause: Traceback (most recent call last):
  File "worker.py", line 83, in main
    process(
  File "StateMessage_pb2.py", line 24, in <module>
    from google.protobuf import descriptor as _descriptor
ImportError: cannot import name 'descriptor' from 'google.protobuf' (unknown location)
 SQLSTATE: XXKST
\tat org.apache.spark.TransformWithStateInPySparkExec.runPreInitRunner(X.scala:446)
\t... 23 more
"""


def test_a_package_that_a_worker_lacks_is_named_and_how_to_install_it() -> None:
    raised = cause(MISSING)
    assert raised == (
        "ImportError: cannot import name 'descriptor' from 'google.protobuf' (unknown location)"
    )
    assert remedy(raised).endswith(f"{sys.executable} -m pip install protobuf")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("ModuleNotFoundError: No module named 'shapely.geometry'", "brings shapely.geometry"),
        ("SparkException: Python worker exited unexpectedly (crashed)", "without a word"),
        ("ValueError: no such table", "mend that first"),
        ("ImportError: cannot import name 'x' from 'mine' (/home/me/mine.py)", "mend that first"),
    ],
)
def test_what_to_do_goes_by_what_was_raised(error: str, said: str) -> None:
    assert said in remedy(cause(error))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        # What Java has raised first stands last, as what Python has raised from something else.
        (
            "SparkException: Job aborted\n\tat x\nCaused by: java.io.IOException: full\n\tat y",
            "java.io.IOException: full",
        ),
        (
            "SparkException: Python worker died\nCaused by: java.io.EOFException\n\tat y",
            "SparkException: Python worker died",
        ),
        (
            'Traceback (most recent call last):\n  File "m.py", line 7, in f\n    g()\n'
            "mine.Refused: row 3\n\tat x",
            "mine.Refused: row 3",
        ),
        (
            'Traceback (most recent call last):\n  File "/a/m.py", line 7, in f\n'
            "    assert n == 3\nAssertionError\n\tat x",
            "AssertionError (m.py, line 7: assert n == 3)",
        ),
        (
            "Py4JJavaError: An error occurred while calling o1.save.\n: java.net.ConnectException: "
            "refused\n\tat x",
            "java.net.ConnectException: refused",
        ),
        (
            "SparkException: Python worker exited unexpectedly (crashed)\n\tat x\nTraceback (most "
            'recent call last):\n  File "daemon.py", line 7, in f\n    g()\n'
            "BrokenPipeError: [Errno 32] Broken pipe\n",
            "SparkException: Python worker exited unexpectedly (crashed)",
        ),
    ],
)
def test_the_line_that_says_most(text: str, line: str) -> None:
    assert cause(text) == line


def test_a_text_without_an_exception_is_its_first_line() -> None:
    assert raised_in("it does not return") is None
    assert cause("it does not return\nat all") == "it does not return"


def test_no_password_is_said() -> None:
    assert "hunter2" not in cause("OperationalError: password=hunter2 is wrong")


def test_what_an_error_came_of_in_the_jvm_is_part_of_it() -> None:
    inner, error = RuntimeError("y"), RuntimeError("[STREAM_FAILED]")
    vars(inner)["_stackTrace"] = "org.apache.spark.X: y\nCaused by: java.io.IOException: full"
    vars(error)["_cause"] = inner  # as pyspark keeps it
    assert cause(Failures().in_words(error)) == "java.io.IOException: full"


def test_both_ends_of_a_very_long_error_are_kept() -> None:
    error = RuntimeError("begun " + "x" * 200_000 + "\nValueError: no such table")
    words = Failures().in_words(error)
    assert len(words) < 60_000
    assert words.startswith("RuntimeError: begun")
    assert cause(words) == "ValueError: no such table"


def test_a_jvm_that_is_gone_is_told_from_a_server_that_refuses() -> None:
    said = "ConnectionRefusedError: [Errno 111] Connection refused"
    of_a_client = (
        f'Traceback (most recent call last):\n  File "sink.py", line 3, in write\n{said}\n'
    )
    of_py4j = f"{of_a_client}  in connect_to_java_server\n    self.socket.connect(at)\n{said}\n"
    assert not jvm_is_gone(of_a_client)
    assert jvm_is_gone(of_py4j)
    assert jvm_is_gone("py4j.protocol.Py4JNetworkError: Answer from Java side is empty")
    assert cause(JVM_GONE) == JVM_GONE
    assert "--one-at-a-time" in remedy(JVM_GONE)
