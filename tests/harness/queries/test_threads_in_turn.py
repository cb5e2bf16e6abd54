"""What a batch gives to threads and waits for goes on one piece at a time: in batches with an even
number at once, in the others when it is waited for, the last one first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from probed import moments

USERS = """
import concurrent.futures, os, threading, time
from concurrent.futures import ThreadPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool
from bettong.harness.queries.sink import turns

WAITS = threading.Event()

def make(path):
    os.mkdir(path)
    return path

def make_beside(path):
    return make(path + "b")

def past_python(path):
    os.mkfifo(path)

def fails(path):
    raise ValueError(path)

def by_map(paths, batch):
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(make, paths)) == paths

def by_results(paths, batch):
    with ThreadPoolExecutor(3) as pool:
        given = [pool.submit(make, path) for path in paths]
        assert [one.result() for one in given] == paths

def by_exceptions(paths, batch):
    with ThreadPoolExecutor(3) as pool:
        given = [pool.submit(make, path) for path in paths]
        assert not any(one.exception() for one in given)

def as_they_are_over(paths, batch):
    with ThreadPoolExecutor(3) as pool:
        given = [pool.submit(make, path) for path in paths]
        over = [one.result() for one in as_completed(given)]
    assert over == (paths[::-1] if batch % 2 else paths)

def by_wait(paths, batch):
    pool = ThreadPoolExecutor(3)
    given = [pool.submit(make, path) for path in paths]
    assert len(concurrent.futures.wait(given).done) == 3

def by_the_end_of_the_pool(paths, batch):
    pool = ThreadPoolExecutor(3)
    for path in paths:
        pool.submit(make, path)
    pool.shutdown()

def by_threads(paths, batch):
    given = [threading.Thread(target=make, args=(path,)) for path in paths]
    for one in given:
        one.start()
    for one in given:
        one.join()

def a_thread_meanwhile(paths, batch):
    one = threading.Thread(target=make, args=(paths[0],))
    one.start()
    make(paths[1])
    one.join()

def a_pool_meanwhile(paths, batch):
    one = ThreadPoolExecutor(1).submit(make, paths[0])
    make(paths[1])
    one.result()

def one_thread(paths, batch):
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(make, paths))

def two_threads(paths, batch):
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(make, paths))

def one_waits_for_another(paths, batch):
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(make, paths[0])
        pool.submit(lambda: make_beside(first.result())).result()

def one_fails(paths, batch):
    with ThreadPoolExecutor(2) as pool:
        try:
            pool.submit(fails, paths[0]).result()
        except ValueError as e:
            make(str(e))

def changes_past_python(paths, batch):
    def both():
        past_python(paths[0])
        past_python(paths[1])
    with ThreadPoolExecutor(1) as pool:
        pool.submit(both).result()

def beats(paths, batch):
    over = []
    def beat():
        while not over:
            time.sleep(0.001)
    thread = threading.Thread(target=beat)
    thread.start()
    make(paths[0])
    over.append(True)
    thread.join()
    make(paths[1])

def goes_on_until_it_is_told_to_stop(paths, batch):
    turns._LONGEST_AT_ONCE_S, longest = 0.01, turns._LONGEST_AT_ONCE_S
    stop = []
    def poll():
        while not stop:
            pass
    thread = threading.Thread(target=poll)
    thread.start()
    make(paths[0])
    stop.append(True)
    thread.join()
    turns._LONGEST_AT_ONCE_S = longest

def sleeps_until_it_is_there(paths, batch):
    thread = threading.Thread(target=make, args=paths[:1])
    thread.start()
    while not os.path.exists(paths[0]):
        time.sleep(0.001)
    thread.join()

def asks_until_it_is_over(paths, batch):
    one = ThreadPoolExecutor(1).submit(make, paths[0])
    while not one.done():
        pass
    one.result()

def meet_each_other(paths, batch):
    meets = threading.Barrier(2)
    def meet(path):
        meets.wait()
        if path == paths[0]:
            make(path)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(meet, paths[:2]))

def nobody_waits(paths, batch):
    nobody_waits.left = ThreadPoolExecutor(1).submit(WAITS.wait if batch % 2 else make, paths[0])
    make(paths[1])

def gives_up(paths, batch):
    gives_up.left = ThreadPoolExecutor(1).submit(WAITS.wait)
    try:
        gives_up.left.result(timeout=0.001)
    except TimeoutError:
        make(paths[0])

POOL = ThreadPoolExecutor(3)

def by_a_pool_that_stays(paths, batch):
    list(POOL.map(make, paths))

def by_the_threads_of_a_library(paths, batch):
    with ThreadPool(1) as pool:
        pool.apply(make, paths[:1])
"""
ALL = """
import pyspark.sql.utils
import py4j.clientserver
sys.audit("socket.connect", None, None)  # as when PySpark reaches its JVM
sys.path.insert(0, sys.argv[2])
import users
for batch in 0, 1, 2:
    for name, each in list(vars(users).items()):
        if getattr(each, "__code__", None) and each.__code__.co_varnames[:2] == ("paths", "batch"):
            seen.append(f"= {name} {batch}")
            given = [f"{folder}/{name}-{batch}-{file}" for file in "abc"]
            pyspark.sql.utils.ForeachBatchFunction(None, each).func(given, batch)
seen.append("= the end")
users.WAITS.set()
"""
EVEN, ODD, NEXT = 0, 1, 2
PAST = "changes_past_python"


@pytest.fixture(scope="module")
def all_done(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, int], list[str]]:
    """By the function and the number of the batch: what was made in which order, each with who has
    worked beside the function."""
    folder = tmp_path_factory.mktemp("turns")
    (folder / "aim").mkdir()
    (folder / "aim" / "users.py").write_text(USERS)
    found: dict[tuple[str, int], list[str]] = {}
    for moment in moments(folder, ALL):
        if moment.startswith("= "):
            name, _, batch = moment[2:].rpartition(" ")
            made: list[str] = []
            found[name, int(batch) if batch.isdigit() else 0] = made
        elif not moment.startswith(("change ", "look ")) or ": " in moment or name == PAST:
            made.append(moment.replace(f"{name}-{batch}-", "").removeprefix("mkdir "))
    return found


Done = Mapping[tuple[str, int], list[str]]
WAYS = [
    "by_map",
    "by_results",
    "by_exceptions",
    "as_they_are_over",
    "by_wait",
    "by_the_end_of_the_pool",
    "by_threads",
    "by_a_pool_that_stays",
]


@pytest.mark.parametrize("way", WAYS)
def test_one_goes_on_after_the_other_and_in_each_second_batch_the_last_one_first(
    all_done: Done, way: str
) -> None:
    assert all_done[way, EVEN] == ["a", "b", "c"]
    assert all_done[way, ODD] == ["c", "b", "a"]
    assert all_done[way, NEXT] == ["a", "b", "c"]


@pytest.mark.parametrize("own", ["a_thread_meanwhile", "a_pool_meanwhile"])
def test_each_comes_before_and_after_what_the_function_does_meanwhile(
    all_done: Done, own: str
) -> None:
    assert all_done[own, EVEN] == ["a", "b"]
    assert all_done[own, ODD] == ["b", "a"]


def test_those_of_one_thread_keep_their_order(all_done: Done) -> None:
    assert all_done["one_thread", ODD] == ["a", "b", "c"]


def test_of_two_threads_the_second_does_all_that_it_can_first(all_done: Done) -> None:
    assert all_done["two_threads", ODD] == ["b", "c", "a"]


@pytest.mark.parametrize("batch", [EVEN, ODD])
@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("one_waits_for_another", ["a", "ab"]),
        ("one_fails", ["a"]),
        (PAST, ["change a", "change b"]),
        ("beats", ["a", "b"]),
        ("sleeps_until_it_is_there", ["a"]),
        ("asks_until_it_is_over", ["a"]),
    ],
)
def test_all_else_is_as_it_would_be_without(
    all_done: Done, name: str, made: list[str], batch: int
) -> None:
    assert all_done[name, batch] == made


@pytest.mark.parametrize("batch", [EVEN, ODD])
def test_who_goes_on_until_it_is_told_to_stop_stops_nobody(all_done: Done, batch: int) -> None:
    assert all_done["goes_on_until_it_is_told_to_stop", batch][0] == "a"


@pytest.mark.parametrize("batch", [EVEN, ODD])
def test_what_waits_in_another_way_goes_on_at_will_and_is_told(all_done: Done, batch: int) -> None:
    assert "a: the thread 'ThreadPoolExecutor' did mkdir " in " ".join(
        all_done["meet_each_other", batch]
    )


STILL = "the thread 'ThreadPoolExecutor' was still at work when the function returned"


def test_what_nobody_has_waited_for_is_told(all_done: Done) -> None:
    nobody = "change *: nobody waited for the thread 'ThreadPoolExecutor'"
    assert all_done["nobody_waits", EVEN] == ["a", "b", nobody]
    assert all_done["nobody_waits", ODD] == ["b", f"change *: {STILL}"]


@pytest.mark.parametrize("batch", [EVEN, ODD])
def test_a_wait_that_is_given_up_leaves_the_others_at_work(all_done: Done, batch: int) -> None:
    assert all_done["gives_up", batch] == ["a", f"change *: {STILL}"]


def test_what_libraries_give_to_their_own_threads_is_left_to_them(all_done: Done) -> None:
    first, *_ = all_done["by_the_threads_of_a_library", EVEN]
    assert first.startswith("a: the thread 'Thread (worker)' did mkdir ")
