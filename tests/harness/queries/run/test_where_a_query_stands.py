"""Which line is named of a query that does nothing more."""

from __future__ import annotations

import threading

from bettong.harness.queries.run.standing import stands
from bettong.harness.spark.driver import Frame

FLUSH = Frame("/venv/lib/python3.11/site-packages/kafka/producer.py", 7, "flush", "self.wait()")
WAIT = Frame(threading.__file__, 324, "wait", "waiter.acquire()")
SPARK = Frame("/venv/lib/python3.11/site-packages/pyspark/sql/utils.py", 120, "call", "f()")
APPLY = Frame("/home/ann/sinks.py", 12, "apply", "self.send(rows)")
SEND = Frame("/home/ann/sinks.py", 20, "send", "producer.flush()")
SHIPPED = Frame("/venv/lib/python3.11/site-packages/bettong/scenarios/sinks/kafka.py", 4, "s", "")


def test_the_last_line_of_the_users_own_and_what_it_waits_for() -> None:
    told = stands([[SPARK, WAIT], [SPARK, APPLY, SEND, FLUSH, WAIT]])
    assert told == (
        "; it stands in sinks.py, line 20, in send: producer.flush(), which waits in "
        "threading.py, line 324, in wait: waiter.acquire()"
    )


def test_what_the_users_line_does_itself_is_said_once() -> None:
    assert stands([[SPARK, APPLY]]) == "; it stands in sinks.py, line 12, in apply: self.send(rows)"


def test_what_ships_is_as_a_users_own() -> None:
    assert stands([[SPARK, SHIPPED]]) == "; it stands in kafka.py, line 4, in s"


def test_nothing_is_said_where_no_thread_is_in_their_code() -> None:
    assert stands([[SPARK, WAIT], []]) == ""


def test_secrets_in_the_line_are_masked() -> None:
    line = 'psycopg.connect("postgresql://ann:secret@db/x")'
    assert "secret" not in stands([[Frame("/home/ann/sinks.py", 1, "write", line)]])
