"""Where a second fault hits requests while the query is being started again."""

from __future__ import annotations

from collections.abc import Sequence

from bettong.harness.queries.faults.alike import kind_of
from bettong.harness.queries.faults.crash_points import DURABLE
from bettong.harness.queries.faults.wire import CLOCK
from bettong.harness.queries.run.observation import QueryRun
from bettong.harness.queries.search.after_restart import second_on_wire
from bettong.harness.wire import Recording
from bettong.harness.wire.conversation import Conversation, History, Ledger, Request
from bettong.harness.wire.framing.base import Info
from bettong.lineage.trace import TraceEvent

RESTARTED, BEGUN = 100, 200


def event(step: str, incarnation: int, at: int) -> TraceEvent:
    detail = {CLOCK: at, DURABLE: "files"}
    return TraceEvent(step, "before", "driver", incarnation, detail=detail)


def hit(starting: Sequence[str], replay: Sequence[str], known: Sequence[str] = ()) -> list[str]:
    """Ids of the second faults: what is asked when the query is started again, before its first
    step and after; ``known``: of what clean runs ask."""
    history, requests = History("db", Ledger()), []
    sent = [(50, "INSERT"), *((RESTARTED + n, x) for n, x in enumerate(starting, 1))]
    sent += [(BEGUN + n, x) for n, x in enumerate(replay, 1)]
    for number, (order, label) in enumerate(sent, 1):
        keys = history.add(Info(label, content=f"{number}".encode()))
        requests.append(Request("db", 1, number, order, label, "", 100, 9, keys))
    run = QueryRun(
        recording=Recording((Conversation("db", 1, "test", tuple(requests), (), 1, 1, None),)),
        events=[
            event("batch=1/offsets", 1, 10),
            event("batch=1/commits", 1, 60),
            event("batch=1/offsets", 2, BEGUN),
            event("batch=1/commits", 2, 300),
        ],
        starts=[0, RESTARTED],
    )
    pinned = {kind_of(request) for request in requests if request.label in known}
    return [fault.id for fault, _ in second_on_wire(run, 1, pinned)]


def before(request: str) -> str:
    return f"crash(driver, before db/restarted/{request})"


def test_the_last_request_of_the_replay_is_lost_in_each_way() -> None:
    assert hit([], ["INSERT", "COMMIT"], known=["INSERT", "COMMIT"]) == [
        "omit(db/restarted/COMMIT=1)",
        "omit-reply(db/restarted/COMMIT=1)",
        "crash(driver, after db/restarted/COMMIT=1)",
    ]


def test_the_driver_dies_before_what_only_the_replay_asks() -> None:
    found = hit([], ["DELETE", "INSERT"], known=["INSERT"])
    assert before("DELETE=1") in found
    assert before("INSERT=1") not in found


def test_the_driver_dies_amid_what_puts_things_right_before_the_query_is_begun() -> None:
    found = hit(["BEGIN", "INSERT", "DELETE"], ["INSERT"], known=["INSERT"])
    assert [id for id in found if "before" in id] == [before("INSERT=1"), before("DELETE=1")]
    assert "omit(db/restarted/INSERT=2)" in found


def test_of_many_that_are_alike_the_first_and_the_last_stand_for_all() -> None:
    found = hit(["DELETE"] * 5, ["INSERT"], known=["INSERT"])
    assert [id for id in found if "before" in id] == [before("DELETE=1"), before("DELETE=5")]


def test_a_request_that_is_called_otherwise_in_each_run_is_told_by_what_is_not() -> None:
    """An object of a random name is put under another one when the same fault set is run again."""
    asked = [f"PUT /data/{n:08x}-1111-4222-8333-{n:012x}.json" for n in (9, 0xABCDEF)]
    found = hit([], [*asked, "POST /done"], known=["POST /done"])
    assert before("PUT /data/?.json=2") in found
    asked.insert(1, "PUT /data/abcdefab-1111-4222-8333-000000000000.json")
    found = hit([], [*asked, "POST /done"], known=[asked[0], "POST /done"])
    assert [id for id in found if "PUT" in id] == []
