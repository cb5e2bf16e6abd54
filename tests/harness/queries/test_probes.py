"""At which moments a process asks, as it writes files and SQLite databases of its own."""

from __future__ import annotations

import ctypes
import errno
from pathlib import Path

import pytest
from probed import BATCH, TASK, moments

from bettong.harness.queries.sink import folder_watch
from bettong.harness.queries.sink.processes import command_of


@pytest.mark.parametrize(
    ("code", "content"),
    [
        ("with path.open('w') as f: f.writelines(['x\\n', 'y\\n'])", "x\ny\n"),
        ("with open(path, 'wb', 0) as f: f.write(b'z')", "z"),
        ("with io.open(path, 'x', encoding='utf-8', newline='') as f: f.write('é')", "é"),
        ("path.write_text('t')", "t"),
        ("f = open(path, 'ab'); f.write(b'q'); del f", "q"),
        (
            "f = os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR), 'w+')\n"
            "f.write('n')\nf.close()",
            "n",
        ),
        ("import shutil; shutil.copy(folder.parent / 'from', path)", "c"),
    ],
)
def test_each_write_that_reaches_a_file_is_a_moment(
    tmp_path: Path, code: str, content: str
) -> None:
    (tmp_path / "from").write_text("c")
    assert moments(tmp_path, code) == ["open a", "write a"]
    assert (tmp_path / "own" / "a").read_text("utf-8") == content


def test_writes_to_a_file_that_an_opener_opens_are_moments(tmp_path: Path) -> None:
    code = """
with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
    file.write("n")
os.rename(file.name, path)
with tempfile.TemporaryFile("w", dir=folder) as file:
    file.write("of nobody")
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("elsewhere"); file.seek(0)
    assert file.read() == "elsewhere"
seen[:] = [what.partition(" ")[0] for what in seen]
"""
    assert moments(tmp_path, code)[:3] == ["open", "write", "rename"]
    assert "write" not in moments(tmp_path, code)[3:]
    assert (tmp_path / "own" / "a").read_text() == "n"


def test_what_is_flushed_is_written_by_then(tmp_path: Path) -> None:
    code = (
        "with path.open('w') as f:\n f.write('x'); f.flush(); os.fsync(f.fileno())\n f.write('y')"
    )
    assert moments(tmp_path, code) == ["open a", "write a", "write a"]


def test_a_file_that_is_written_over_is_a_moment_where_its_rest_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a").write_text("longer")
    code = "with path.open('r+') as f:\n f.write('new')\n f.truncate()"
    assert moments(tmp_path, code) == ["open a", "write a", "truncate a"]
    assert (tmp_path / "own" / "a").read_text() == "new"


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


@pytest.mark.parametrize("made", ["sqlite3.Connection", "Own", "sqlite3.dbapi2.Connection"])
def test_a_connection_that_is_made_by_its_class_is_watched(tmp_path: Path, made: str) -> None:
    code = f"""
class Own(sqlite3.Connection): pass
assert isinstance(sqlite3.connect(":memory:", factory=Own), Own)
with {made}(path) as db:
    db.execute("CREATE TABLE t (x)")
    db.execute("INSERT INTO t VALUES (1)")
"""
    found = [m for m in moments(tmp_path, code) if not m.startswith("open")]
    assert found == ["create a", "begin a", "commit a"]


def test_a_backup_is_a_moment_of_where_it_goes(tmp_path: Path) -> None:
    code = """
memory = sqlite3.connect(":memory:")
memory.execute("CREATE TABLE t (x)")
db = sqlite3.connect(path)
memory.backup(db, pages=1)
db.backup(memory)
db.close()
"""
    assert [m for m in moments(tmp_path, code) if not m.startswith("open")] == ["backup a"]


def test_what_is_written_by_the_number_of_a_file_is_a_moment(tmp_path: Path) -> None:
    code = """
n = os.open(path, os.O_RDWR | os.O_CREAT)
m = os.open(folder / "b", os.O_RDWR | os.O_CREAT)
os.write(n, b"xy"); os.pwrite(n, b"z", 1); os.writev(n, [b"1", b"2"])
os.copy_file_range(n, m, 2, 0, 0)
r, w = os.pipe(); os.write(w, b"x")
nameless = tempfile.TemporaryFile(dir=folder); os.write(nameless.fileno(), b"x")
assert path.read_bytes() == b"xz12" and (folder / "b").read_bytes() == b"xz"
try:
    os.write(9999, b"x")
except OSError as e:
    assert e.errno == 9
"""
    found = [m for m in moments(tmp_path, code) if m.startswith("write")]
    assert found == ["write a", "write a", "write a", "write b"]


def test_what_sqlite_changes_without_a_journal_may_be_done_in_part(tmp_path: Path) -> None:
    code = """
db = sqlite3.connect(path, isolation_level=None)
db.execute("CREATE TABLE t (x)")
db.execute("PRAGMA journal_mode=MEMORY")
db.execute("INSERT INTO t VALUES (1)")
db.execute("PRAGMA journal_mode=DELETE")
db.execute("DELETE FROM t")
"""
    told = "SQLite with journal_mode=MEMORY"
    found = moments(tmp_path, code)
    assert found[-3:] == ["create a", f"insert a: {told}", "delete a"]


LIMITED = """
asked = Recorder.notify
def notify(self, event):
    asked(self, event)
    if seen.count("write a") == NTH and seen[-1] == "write a":
        raise OSError(ANSWER, "by order")
Recorder.notify = notify
def attempt(call):
    try:
        return call()
    except OSError as e:
        return e.errno
"""
AT_ONCE = "with open(path, 'wb') as f: f.write(b'abcd'); f.flush()"


@pytest.mark.parametrize(
    ("code", "content", "nth"),
    [
        (f"def user():\n {AT_ONCE}\nassert attempt(user) == errno.ENOSPC", "ab", 1),
        (
            "with open(path, 'wb', 0) as f:\n"
            " assert f.write(b'abcd') == 2\n"
            " assert [attempt(lambda: f.write(b'c')) for _ in range(2)] == [errno.ENOSPC] * 2",
            "ab",
            1,
        ),
        (
            "n = os.open(path, os.O_WRONLY | os.O_CREAT)\n"
            "assert os.write(n, b'abcd') == 2\n"
            "assert attempt(lambda: os.write(n, b'cd')) == errno.ENOSPC\n"
            "assert os.write(n, b'cd') == 2",
            "abcd",
            1,
        ),
        ("assert attempt(lambda: path.write_text('a')) == errno.ENOSPC", "", 1),
        (
            "n = os.open(path, os.O_WRONLY | os.O_CREAT)\n"
            "assert attempt(lambda: os.writev(n, [b'ab', b'cd'])) == errno.ENOSPC",
            "",
            1,
        ),
        (
            "f = open(path, 'wb', 0); f.write(b'x'); f.write(b'abcd')\n"
            "aiming.aim(folder, Instrumentation(incarnation=2)); f.write(b'y')",
            "xaby",
            2,
        ),
    ],
)
def test_of_a_write_to_a_disk_that_is_full_half_is_taken_and_the_next_one_fails(
    tmp_path: Path, code: str, content: str, nth: int
) -> None:
    """Until another driver begins."""
    order = LIMITED.replace("ANSWER", "errno.ENOSPC").replace("NTH", str(nth))
    moments(tmp_path, f"import errno\n{order}{code}")
    assert (tmp_path / "own" / "a").read_text() == content


@pytest.mark.parametrize(
    "code",
    [
        AT_ONCE,
        "os.write(os.open(path, os.O_WRONLY | os.O_CREAT), b'abcd')",
        "os.writev(os.open(path, os.O_WRONLY | os.O_CREAT), [b'abcd'])",
    ],
)
def test_amid_a_write_in_which_the_driver_dies_there_is_a_moment(tmp_path: Path, code: str) -> None:
    order = LIMITED.replace("ANSWER", "errno.EINTR").replace("NTH", "1")
    half = """
def halves(self, event):
    if event.detail["op"] == "half":
        seen.append(path.read_text())
        return
    notify(self, event)
Recorder.notify = halves
"""
    found = moments(tmp_path, f"import errno\n{order}{half}{code}")
    assert found == ["open a", "write a", "" if "writev" in code else "ab"]
    assert (tmp_path / "own" / "a").read_text() == "abcd"


def test_a_statement_that_is_its_own_transaction_is_a_moment(tmp_path: Path) -> None:
    code = """
db = sqlite3.connect(path, isolation_level=None)
db.execute("CREATE TABLE t (x)")
db.executescript("/* two */ INSERT INTO t VALUES (1); -- and one\\n UPDATE t SET x = 2;")
db.executemany("INSERT INTO t VALUES (?)", [(3,), (4,)])
db.execute("WITH n AS (SELECT 5) INSERT INTO t SELECT * FROM n")
db.execute("SELECT * FROM t").fetchall()
db.execute("SAVEPOINT s"); db.execute("DELETE FROM t"); db.execute("RELEASE s")
db.close()
"""
    found = [m for m in moments(tmp_path, code) if not m.startswith("open")]
    verbs = ("create", "insert", "update", "insert", "insert", "with", "savepoint", "release")
    assert found == [f"{verb} a" for verb in verbs]


def test_a_number_that_sqlite_keeps_for_its_user_is_a_moment_when_set(tmp_path: Path) -> None:
    code = """
db = sqlite3.connect(path)
db.execute("PRAGMA synchronous = FULL")
db.execute("PRAGMA user_version").fetchall()
db.execute("PRAGMA main.user_version = 7")
db.execute("pragma application_id(9)")
db.execute("BEGIN"); db.execute("PRAGMA user_version = 8"); db.commit()
db.close()
"""
    found = [m for m in moments(tmp_path, code) if not m.startswith("open")]
    assert found == ["pragma a", "pragma a", "begin a", "commit a"]


def test_a_file_that_is_given_by_its_number_can_be_truncated(tmp_path: Path) -> None:
    code = """
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 4)
os.close(fd)
assert path.stat().st_size == 4
"""
    assert moments(tmp_path, code) == ["open a", "truncate a"]


def test_a_statement_says_what_it_does(tmp_path: Path) -> None:
    code = """
Recorder.notify = lambda self, event: seen.append(event.detail.get("sql", ""))
db = sqlite3.connect(path, isolation_level=None)
db.execute("CREATE TABLE t (x)")
db.execute("INSERT INTO  t VALUES (?)", ("one",))
"""
    assert [found for found in moments(tmp_path, code) if found] == [
        "CREATE TABLE t (x)",
        "INSERT INTO t VALUES (?)",
    ]


def test_a_link_is_a_moment(tmp_path: Path) -> None:
    code = "path.touch(); os.link(path, folder / 'b'); (folder / 'c').symlink_to(path)"
    assert moments(tmp_path, code) == ["open a", "link b", "symlink c"]


@pytest.mark.parametrize(
    ("imported", "connect"),
    [("import duckdb", "duckdb.connect"), ("from duckdb import connect", "connect")],
)
def test_duckdb_asks_where_it_connects_to_a_file(
    tmp_path: Path, imported: str, connect: str
) -> None:
    pytest.importorskip("duckdb")
    code = f"""
{imported}
{connect}(path).execute("CREATE TABLE t (x INTEGER)").close()
{connect}(str(path), read_only=True).close()
{connect}(database=path, config={{}}).close()
{connect}().close(); {connect}(":memory:").close()
"""
    found = [m for m in moments(tmp_path, code) if m.startswith("connect")]
    assert found == ["connect a", "connect a"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["n = os.open(a, os.O_CREAT | os.O_WRONLY)", "os.write(n, b'x')", "os.write(n, b'y')"],
            ["open a", "change a", "write a", "change a", "write a", "change a"],
        ),
        (["past_python(a)", "past_python(b)"], ["change a", "change b"]),
        (
            [
                "f = open(a, 'wb+'); f.truncate(4)",
                "m = mmap.mmap(f.fileno(), 4)",
                "m[0] = 1",
                "m[0]",
                "m[1] = 1",
            ],
            ["open a", "truncate a", "change a", "change a", "change a"],
        ),
        (["beside(a)", "return"], ["change a", "change a"]),
        (["past_python(a); open(b, 'w').close()"], ["open b", "change b"]),
        (
            ["open(a, 'w').write('x')", "os.rename(a, b)"],
            ["open a", "write a", "change a", "rename b", "change b"],
        ),
        (
            ["folder.joinpath('c').mkdir()", "past_python(f'{folder}/c/d')"],
            ["mkdir c", "change c", "change c/d"],
        ),
        (["(db := sqlite3.connect(a)).execute('CREATE TABLE t (x)')", "db.close()"], ["create a"]),
        (
            ["sqlite3.connect(a).execute('CREATE TABLE t (x)')", "past_python(f'{a}.parquet')"],
            ["create a", "change a.parquet"],
        ),
        (["len(folder.name)", "open(__file__).close()"], []),
        (
            ["os.listdir(folder)", "open(a, 'w').close()", "open(a).close()", "os.scandir(folder)"],
            ["look *", "open a", "change a", "look a", "look *"],
        ),
        (
            [
                "db = sqlite3.connect(a, isolation_level=None)",
                "db.execute('SELECT 1')",
                "db.execute('PRAGMA user_version')",
                "db.execute('PRAGMA journal_mode')",
                "db.execute('BEGIN IMMEDIATE')",
                "db.execute('SELECT 2')",
                "db.close()",
            ],
            ["look a", "look a", "begin a"],
        ),
        (
            [
                "held = open(a, 'w')",
                "open(b).close() if os.path.exists(b) else None",
                "fcntl.flock(held, fcntl.LOCK_EX)",
                "past_python(b)",
                "fcntl.flock(held, fcntl.LOCK_UN); fcntl.lockf(held, fcntl.LOCK_EX)",
            ],
            ["open a", "change a", "look b", "lock a", "change b", "lock a"],
        ),
        (
            ["os.path.exists(a)", "folder.joinpath('b').exists()", "os.access('/', os.R_OK)"],
            ["look a", "look b"],
        ),
        (
            ["os.listdir('/')", "os.mkdir(a)", "os.mkdir(b)"],
            ["mkdir a", "change a", "mkdir b", "change b"],
        ),
    ],
)
def test_after_each_change_there_is_a_moment_before_the_next_line(
    tmp_path: Path, lines: list[str], expected: list[str]
) -> None:
    (tmp_path / "aim").mkdir()
    users = [
        "import ctypes, fcntl, mmap, os, sqlite3",
        "def past_python(path):",
        " c = ctypes.CDLL(None)",
        " c.close(c.creat(path.encode(), 0o600))",
        "def beside(path):",
        " past_python(path)",
        " past_python(path)",
        "def each(folder, batch):",
        " a, b = f'{folder}/a', f'{folder}/b'",
        *(f" {line}" for line in lines),
        " last = True",
    ]
    (tmp_path / "aim" / "users.py").write_text("\n".join(users))
    assert moments(tmp_path, BATCH) == expected


def test_what_was_imported_of_os_is_sent_to_workers_by_its_name(tmp_path: Path) -> None:
    code = """
import pickle
from pyspark import cloudpickle
from os import access, stat, waitpid, write
sent = pickle.loads(cloudpickle.dumps(lambda: (access, stat, waitpid, write)))()
assert sent == (os.access, os.stat, os.waitpid, os.write)
path.mkdir()
"""
    assert moments(tmp_path, code) == ["mkdir a"]


PAST_PYTHON = """import ctypes
def past_python(path):
    c = ctypes.CDLL(None)
    c.close(c.creat(path.encode(), 0o600))
"""
TELLS_LINES = (
    "Recorder.notify = lambda self, e: seen.append([e.detail['op'], e.detail.get('line')])\n"
)


def test_a_change_past_python_tells_which_line_made_it_the_last_one_too(tmp_path: Path) -> None:
    (tmp_path / "aim").mkdir()
    (tmp_path / "aim" / "users.py").write_text(
        f"{PAST_PYTHON}def each(folder, batch):\n"
        "    for name in 'ab':\n"
        "        past_python(f'{folder}/{name}')\n"
        "    open(f'{folder}/c', 'w').close()\n"
        "    past_python(f'{folder}/d')\n"
    )
    assert moments(tmp_path, TELLS_LINES + BATCH) == [
        ["change", [4, 1]],
        ["change", [4, 2]],
        ["open", None],
        ["change", None],
        ["change", [4, 3]],
    ]


def test_before_a_line_there_is_a_moment_where_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "aim").mkdir()
    (tmp_path / "aim" / "users.py").write_text(
        f"{PAST_PYTHON}def each(folder, batch):\n    past_python(f'{{folder}}/a')\n    x = 1\n"
    )
    asked = "aiming.aim(folder, Instrumentation(), lines=[4])\n"
    assert moments(tmp_path, asked + TELLS_LINES + BATCH) == [
        ["line", [4, 1]],
        ["change", [4, 1]],
    ]


@pytest.mark.parametrize("within", [BATCH, TASK])
def test_what_starts_a_query_is_told_from_what_a_batch_or_a_task_does(
    tmp_path: Path, within: str
) -> None:
    (tmp_path / "aim").mkdir()
    (tmp_path / "aim" / "users.py").write_text(
        "import os\ndef each(folder, batch):\n    os.mkdir(f'{folder}/rows')\n"
    )
    told = (
        "Recorder.notify = lambda self, e: seen.append([e.detail['op'], 'outside' in e.detail])\n"
    )
    found = moments(tmp_path, f"{told}os.mkdir(path)\n{within}")
    assert [each for each in found if each[0] == "mkdir"] == [["mkdir", True], ["mkdir", False]]


@pytest.mark.parametrize(
    ("within", "noted"), [(BATCH, True), (TASK, True), ("users.each(1, 2)", False)]
)
def test_which_processes_a_batch_or_a_task_has_started_is_noted(
    tmp_path: Path, within: str, noted: bool
) -> None:
    (tmp_path / "aim").mkdir()
    (tmp_path / "aim" / "users.py").write_text(
        "import subprocess\ndef each(folder, batch):\n    subprocess.run(['true'], check=True)\n"
    )
    imports = "sys.path.insert(0, sys.argv[2])\nimport users\n"
    code = f"{imports}{within}\nseen[:] = aiming.processes()\naiming.forget_notes()\n"
    assert moments(tmp_path, code) == (["the process 'true'"] if noted else [])
    assert not (tmp_path / "aim" / "bettong-processes.txt").exists()


def test_a_secret_in_a_command_is_masked() -> None:
    shown = "the process 'psql postgresql://me:***@db/orders -c true'"
    assert command_of("os.system", ("psql postgresql://me:s3cr3t@db/orders -c true",)) == shown


@pytest.mark.parametrize("refused", ["inotify_init1", "inotify_add_watch"])
def test_what_cannot_be_watched_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    c = ctypes.CDLL(None, use_errno=True)

    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.ENOSPC)
        return -1

    monkeypatch.setattr(c, refused, refuse, raising=False)
    monkeypatch.setattr(folder_watch.ctypes, "CDLL", lambda *_, **__: c)
    with pytest.raises(OSError, match=r"fs\.inotify\.max_user"):
        folder_watch.FolderWatch(f"{tmp_path}/", ())


def test_what_spark_changes_in_a_call_is_no_moment(tmp_path: Path) -> None:
    (tmp_path / "aim").mkdir()
    (tmp_path / "aim" / "users.py").write_text(
        "import ctypes\ndef each(folder, batch):\n spark.send_command(f'{folder}/a')\n x = 1\n"
    )
    code = BATCH.replace(
        "sys.audit",
        """
def creates(self, path):
    users.ctypes.CDLL(None).creat(path.encode(), 0o600)
py4j.clientserver.ClientServerConnection.send_command = creates
sys.audit""",
    ).replace(
        "each =",
        "users.spark = object.__new__(py4j.clientserver.ClientServerConnection); each =",
    )
    assert moments(tmp_path, code) == []


def test_what_is_changed_elsewhere_is_a_moment_where_that_is_asked(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    code = f"""
other = Path({str(place)!r})
db = sqlite3.connect(other / "d")
db.execute("CREATE TABLE t (n)")
db.execute("INSERT INTO t VALUES (1)")
db.commit()
(other / "a").write_text("x")
(other / "a").rename(other / "b")
tempfile.NamedTemporaryFile().close()
sqlite3.connect(":memory:").execute("CREATE TABLE t (n)")
path.write_text("x")
"""
    own = ["open a", "write a"]
    assert moments(tmp_path, code) == own
    for file in place.iterdir():
        file.unlink()
    at = str(place).strip("/")
    elsewhere = [f"{op} {at}/d" for op in ("create", "begin", "commit")]
    elsewhere += [f"open {at}/a", f"write {at}/a", f"rename {at}/b"]
    assert moments(tmp_path, code, "elsewhere") == [*elsewhere, *own]


def test_what_python_reads_of_its_own_sources_is_no_look_at_what_is_kept_elsewhere(
    tmp_path: Path,
) -> None:
    """PySpark looks at the stack each time that it calls Spark: of looks the first few count."""
    place, aim = tmp_path / "place", tmp_path / "aim"
    for folder in (place, aim):
        folder.mkdir()
    users = [
        "import os, traceback",
        "def each(folder, batch):",
        " str(traceback.extract_stack())",
        f" os.path.exists({str(place / 'marker')!r})",
        f" os.listdir({str(place)!r})",
    ]
    (aim / "users.py").write_text("\n".join(users))
    at = str(place).strip("/")
    assert moments(tmp_path, BATCH, "elsewhere") == [f"look {at}/marker", f"look {at}/*"]


def test_a_file_is_the_same_however_it_is_named(tmp_path: Path) -> None:
    """From within its folder, by a way round, and by a folder that is open, as shutil.rmtree
    does."""
    code = """
import shutil
(folder / "b").mkdir()
os.chdir(folder / "b")
with open("x", "w") as f:
    f.write("1")
os.rename("x", "y")
Path(f"{folder}/../{folder.name}/b/z").write_text("2")
db = sqlite3.connect("d", isolation_level=None)
db.execute("CREATE TABLE t (n)")
db.close()
os.remove("d")
shutil.rmtree(folder / "b")
"""
    found = moments(tmp_path, code)
    assert {"remove b/y", "remove b/z"} < set(found)
    either = [moment.rstrip("yz") if moment.startswith("remove") else moment for moment in found]
    assert either == [
        "mkdir b",
        *("open b/x", "write b/x", "rename b/y"),
        *("open b/z", "write b/z"),
        *("create b/d", "remove b/d"),
        *("remove b/", "remove b/"),
        "rmdir b",
    ]
