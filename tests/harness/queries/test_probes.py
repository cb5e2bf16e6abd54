"""At which moments a process asks, as it writes files and SQLite databases of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import io, json, os, sqlite3, sys, tempfile
from pathlib import Path
folder = Path(sys.argv[1])
tempfile.tempdir = sys.argv[2]
from bettong.engine.steps import Instrumentation
from bettong.harness.queries.sink import probes
seen = []
class Recorder:
    def notify(self, event):
        seen.append(f"{event.detail['op']} {event.detail['path'].strip('/')}")
Instrumentation.recorder = lambda self: Recorder()
probes.install()
probes.aim(folder, Instrumentation())
path = folder / "a"
exec(sys.argv[3])
probes.aim(None, Instrumentation())
print(json.dumps(seen))
"""


def moments(tmp_path: Path, code: str) -> list[str]:
    own, aim = tmp_path / "own", tmp_path / "aim"
    own.mkdir(exist_ok=True)
    aim.mkdir(exist_ok=True)
    command = [sys.executable, "-c", PROGRAM, str(own), str(aim), code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("code", "content"),
    [
        ("with path.open('w') as f: f.writelines(['x\\n', 'y\\n'])", "x\ny\n"),
        ("with open(path, 'wb', 0) as f: f.write(b'z')", "z"),
        ("with io.open(path, 'x', encoding='utf-8', newline='') as f: f.write('é')", "é"),
        ("path.write_text('t')", "t"),
        ("f = open(path, 'ab'); f.write(b'q'); del f", "q"),
    ],
)
def test_each_write_that_reaches_a_file_is_a_moment(
    tmp_path: Path, code: str, content: str
) -> None:
    assert moments(tmp_path, code) == ["open a", "write a"]
    assert (tmp_path / "own" / "a").read_text("utf-8") == content


def test_what_is_flushed_is_written_by_then(tmp_path: Path) -> None:
    code = (
        "with path.open('w') as f:\n f.write('x'); f.flush(); os.fsync(f.fileno())\n f.write('y')"
    )
    assert moments(tmp_path, code) == ["open a", "write a", "write a"]


def test_a_file_is_read_and_written_as_ever(tmp_path: Path) -> None:
    code = """
path.write_text("one\\ntwo\\n")
with path.open("r+") as f:
    assert f.readline() == "one\\n" and f.mode == "r+" and f.name == str(path)
    f.seek(0); f.write("ONE"); f.truncate(3)
assert path.read_text() == "ONE"
for mode, error in (("x", FileExistsError), ("wz", ValueError)):
    try:
        path.open(mode)
    except error:
        pass
    else:
        raise AssertionError(mode)
assert path.read_text() == "ONE"
"""
    assert [m for m in moments(tmp_path, code) if m.startswith("write")] == ["write a"] * 2


def test_a_transaction_is_a_moment_where_it_begins_and_ends(tmp_path: Path) -> None:
    code = """
for name in (str(path), f"file:{path}?mode=rwc"):
    db = sqlite3.connect(name, uri=name.startswith("file:"))
    with db:
        db.execute("CREATE TABLE IF NOT EXISTS t (x)")
        db.execute("INSERT INTO t VALUES (1)")
    db.close()
"""
    found = [m for m in moments(tmp_path, code) if not m.startswith("open")]
    assert found == ["create a", "begin a", "commit a"] * 2
