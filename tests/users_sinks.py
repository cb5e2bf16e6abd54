"""A user's file of sinks: one that appends, and what may be wrong with one."""

from __future__ import annotations

from pathlib import Path

USERS = """
import json
from bettong.harness import Sink

class Mine(Sink):
    def write(self, rows, env):
        path = env.workdir / "rows.jsonl"
        def append(batch, batch_id):
            with path.open("a") as out:
                for row in batch.collect():
                    out.write(json.dumps({"id": row.id}) + "\\n")
        return rows.writeStream.foreachBatch(append).option(
            "checkpointLocation", env.checkpoint).start()

    def read(self, env):
        return [json.loads(line) for line in (env.workdir / "rows.jsonl").open()]

class Blind(Mine):
    def read(self, env):
        return []

class Elsewhere(Mine):
    def write(self, rows, env):
        return rows.writeStream.format("noop").option(
            "checkpointLocation", str(env.workdir / "other")).start()

class Unreadable(Mine):
    def read(self, env):
        return open(env.workdir / "wrong")

class Failing(Mine):
    def write(self, rows, env):
        def fail(batch, batch_id):
            raise RuntimeError("no such table")
        return rows.writeStream.foreachBatch(fail).option(
            "checkpointLocation", env.checkpoint).start()

class Returnless(Mine):
    def write(self, rows, env):
        super().write(rows, env)

class Several(Mine):
    def write(self, rows, env):
        rows.writeStream.format("noop").option(
            "checkpointLocation", str(env.workdir / "other")).start()
        return super().write(rows, env)

class OneAfterTheOther(Mine):
    def write(self, rows, env):
        first = rows.writeStream.format("noop").trigger(availableNow=True)
        first.option("checkpointLocation", str(env.workdir / "first")).start().awaitTermination()
        return super().write(rows, env)

class CatchesUp(OneAfterTheOther):
    def write(self, rows, env):
        again = (env.workdir / "rows.jsonl").exists()
        return super().write(rows, env) if again else Mine.write(self, rows, env)

class Nameless(Mine):
    def read(self, env):
        return [{"value": 1}]

class Direct(Mine):
    endpoints = {"db": "127.0.0.1:9"}
"""

LIBRARY = """
_done = set()

def append_once(path, batch_id, rows):
    if (path, batch_id) not in _done:
        with path.open("a") as out:
            out.write(rows)
    _done.add((path, batch_id))
"""
"""A module that is not a part of the user's code, and remembers what it has done."""


def written_to(folder: Path, more: str) -> str:
    """The path of such a file, with more in it."""
    path = folder / "theirs.py"
    path.write_text(f"{USERS}\n{more}")
    return str(path)
