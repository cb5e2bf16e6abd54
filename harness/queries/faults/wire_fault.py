"""A request on the wire is hit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from bettong.harness.faults.wording import ordinal
from bettong.harness.queries.faults.query_fault import Injection, QueryFault
from bettong.harness.queries.faults.wake import Wake, at_request, begins, in_batch, parse_wake
from bettong.harness.queries.faults.zombie import WAITED, WOKEN
from bettong.harness.wire import CutPoint
from bettong.harness.wire.conversation import RequestId
from bettong.harness.wire.cutpoints import Kind
from bettong.lineage.trace import TraceEvent

How = Literal[
    "lost",
    "always lost",
    "crash",
    "unawaited",
    "restarted",
    "answered",
    "paused",
    "late",
    "amid",
    "unavailable",
    "always unavailable",
    "timed out",
    "silent",
    "refused",
]
_HOW: Mapping[tuple[str, str, str], How] = {
    ("crash", "driver", "before"): "crash",
    ("crash", "driver", "after"): "crash",
    ("crash", "driver", "awaiting"): "unawaited",
    ("restart", "server", "before"): "restarted",
    ("restart", "server", "after"): "restarted",
    ("restart", "server", "answered"): "answered",
    ("pause", "server", "before"): "paused",
    ("pause", "driver", "before"): "late",
}
_MECHANISM: Mapping[How, str] = {
    "crash": "replay",
    "unawaited": "unawaited",
    "restarted": "server",
    "answered": "server",
    "paused": "server",
    "late": "zombie",
    "amid": "zombie",
    "unavailable": "unavailable",
    "always unavailable": "unavailable",
    "refused": "refused",
}
_NAMED: Mapping[str, How] = {
    "unavailable": "unavailable",
    "timeout": "timed out",
    "silence": "silent",
    "refuse": "refused",
}
_AGAIN = " and each time again"
_EACH_TIME: Mapping[How, How] = {"lost": "always lost", "unavailable": "always unavailable"}
_MET: Mapping[How, str] = {
    "always lost": "requests are lost",
    "always unavailable": "503 is the answer",
}
"""Told apart: who sends again for ever what was lost may give up after some answers."""
_REFUSAL = "HTTP/1.1 {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_ANSWERS: Mapping[How, bytes] = {
    "unavailable": _REFUSAL.format("503 Service Unavailable").encode(),
    "always unavailable": _REFUSAL.format("503 Service Unavailable").encode(),
    "timed out": _REFUSAL.format("504 Gateway Timeout").encode(),
}
_NUMBERED = re.compile(
    r"(omit|omit-reply|cut|crash|restart|pause|unavailable|timeout|silence|refuse)"
    r"\((?:(driver|server), (before|after|answered|awaiting) )?"
    r"([^/=]+)/(?:(restarted)/|batch=(\d+)/)?(.+)=(\d+)\)( and each time again)?$"
)
_AMID = re.compile(r"(pause\(driver, before .+) until (.+)\)$")


@dataclass(frozen=True, slots=True)
class WireFault(QueryFault):
    """What can hit a request.

    Attributes:
        point: the request, and whether it is lost before it arrives, after half of its bytes, or
            after it was carried out.
        how: ``lost`` once, with its connection; ``always lost``, however often this incarnation
            sends it again; ``crash``: the driver dies there; ``unawaited``: the request is slow,
            and the driver dies as soon as Spark has recorded a batch all the same, or else when it
            has waited for a while; ``restarted``: the server is killed and started there;
            ``answered``: the same, but its reply arrives: what it kept in memory alone is lost;
            ``paused``: it stands still there until the client gives up, or only what comes on that
            connection does, where it is not ours to be stopped; ``late``: the driver
            stands still there, and its request is on its way until another driver has ended the
            work; ``amid``: the same until that one is amid a batch, and waits there until what the
            first one does has come to its end; ``unavailable``: the answer is 503 of HTTP, and the
            server knows of nothing; ``always unavailable``: so it is each time that this
            incarnation sends it; ``timed out``: it is carried out, and the answer is 504 of HTTP,
            as a gateway gives it that did not wait; ``silent``: it is lost, and nothing comes on
            its connection until the client gives up; ``refused``: the answer is an error of the
            protocol, and the server has not carried it out.
        until: where that is, of ``amid``.
    """

    on_wire: ClassVar[bool] = True
    beside_steps: ClassVar[bool] = True

    point: CutPoint
    how: How
    until: Wake | None = None

    @property
    def id(self) -> str:
        """Stable: names the request by connection, number and label."""
        request = self.point.place
        if self.how == "crash":
            return f"crash(driver, {self._when} {request})"
        if self.how == "unawaited":
            return f"crash(driver, awaiting {request})"
        if self.how in ("restarted", "answered"):
            return f"restart(server, {self._when} {request})"
        if self.how == "paused":
            return f"pause(server, before {request})"
        if self.how == "late":
            return f"pause(driver, before {request})"
        if self.until is not None:
            return f"pause(driver, before {request} until {self.until})"
        again = _AGAIN if self._each_time else ""
        for name, how in _NAMED.items():
            if self.how in (how, _EACH_TIME.get(how)):
                return f"{name}({request}){again}"
        return self.point.id + again

    @classmethod
    def parse(cls, id: str) -> WireFault | None:
        """Of an id that names its request by label and number, over the run or since the restart:
        in another run it may come on another connection."""
        if (amid := _AMID.match(id)) is not None:
            held, until = amid.groups()
            late = cls.parse(f"{held})")
            return None if late is None else cls(late.point, "amid", parse_wake(until))
        found = _NUMBERED.match(id)
        if found is None:
            return None
        what, who, when, endpoint, restarted, batch, label, number, again = found.groups()
        carried_out = what in ("omit-reply", "timeout") or when in ("after", "answered")
        kind: Kind = "omit-reply" if carried_out else "omit"
        if what == "cut":
            kind = "cut"
        if what == "refuse":
            kind = "refuse"
        how = _NAMED.get(what, _HOW.get((what, who, when), "lost"))
        how = _EACH_TIME.get(how, how) if again else how
        if restarted:
            fault = cls(at_request(kind, endpoint, label, int(number)), how)
        elif batch:
            fault = cls(in_batch(kind, endpoint, "", label, int(number), int(batch)), how)
        else:
            fault = cls(CutPoint(kind, endpoint, "", "nth", label, int(number), label), how)
        return fault if fault.id == id else None

    @property
    def label(self) -> str:
        """The request's."""
        if self.point.match == "since" or self.point.by_count:
            return self.point.key
        request = RequestId.parse(self.point.request)
        return "" if request is None else request.label

    @property
    def _when(self) -> str:
        if self.how == "answered":
            return "answered"
        return "after" if self.point.kind == "omit-reply" else "before"

    def describe(self) -> str:
        reported = self._clauses
        return reported[0].upper() + reported[1:]

    @property
    def _clauses(self) -> str:
        what = self._request
        executed = self.point.kind == "omit-reply"
        became = "which was carried out" if executed else "which never arrived"
        match self.how:
            case "crash":
                return (
                    f"The driver died when it had sent {what}, {became}; the query was started "
                    "again."
                )
            case "unawaited":
                return (
                    f"{what} was on its way when the driver died, and never arrived; whoever did "
                    "not wait for its reply had gone on."
                )
            case "restarted":
                return f"The server was killed and started again at {what}, {became}."
            case "answered":
                return (
                    f"The server was killed as soon as it had answered {what}, and started again."
                )
            case "paused":
                return (
                    f"The server stood still at {what} until the client gave up, and then went on."
                )
            case "late":
                return (
                    f"The driver stood still when it had sent {what}, and a new one took over; "
                    "when that had ended the work, or waited for what the old one had locked, the "
                    "request arrived and the old one went on."
                )
            case "amid":
                assert self.until is not None
                return (
                    f"The driver stood still when it had sent {what}, and a new one took over; "
                    f"{self.until.in_words}, the request arrived, and the old one went on."
                )
            case "silent":
                return (
                    f"{what} never arrived, and nothing was heard of it until the client gave up."
                )
            case "refused":
                return (
                    f"{what} was answered with an error (a deadlock, a server that takes no "
                    "writes, too many requests, no right to write), and not carried out."
                )
            case "unavailable":
                return f"{what} was answered with 503 (Service Unavailable) and not carried out."
            case "always unavailable":
                return (
                    f"{what} was answered with 503 (Service Unavailable) and not carried out, each "
                    "time it was sent."
                )
            case "timed out":
                return f"{what} was carried out, and answered with 504 (Gateway Timeout)."
            case "always lost":
                if not executed:
                    return f"{what} was lost with its connection, each time it was sent."
                return (
                    f"{what} was carried out, but its reply was lost with the connection, each "
                    "time it was sent."
                )
        if self.point.kind == "cut":
            return f"Half of {what} arrived, then its connection was lost."
        if executed:
            return f"{what} was carried out, but its reply was lost with the connection."
        return f"{what} was lost with its connection before it arrived."

    @property
    def _request(self) -> str:
        point = self.point
        if point.match == "since":
            nth = f"{ordinal(point.occurrence)} " if point.occurrence > 1 else ""
            return f"the {nth}{point.key} to {point.endpoint} after the restart"
        if point.by_count:
            within = "" if point.batch is None else f" in batch {point.batch}"
            return f"the {ordinal(point.occurrence)} {point.key} to {point.endpoint}{within}"
        request = RequestId.parse(point.request)
        if request is None:
            return point.request
        place = f"request {request.number} of connection {request.connection}"
        return f"{request.label or 'request'} ({place} to {request.endpoint})"

    def arm(self, run: Injection, again: bool) -> None:
        """Those after a restart wait until the query is started again, those that are counted
        within a batch until it begins."""
        if again == (self.point.match == "since") and self.point.batch is None:
            self._hit(run)
        if self.until is not None:
            self.until.arm(self.id, run, again)

    def met(self, event: TraceEvent, run: Injection) -> None:
        if self.point.batch is not None and begins(self.point.batch).is_of(event):
            self._hit(run)
        if self.until is not None:
            self.until.met(self.id, event, run)

    def proven(self, evidence: str) -> bool:
        """A driver that had to wait for the first one could not come so far."""
        return self.until is None or WOKEN in evidence or WAITED in evidence

    def _hit(self, run: Injection) -> None:
        lasts: Literal["once", "retries"] = "retries" if self._each_time else "once"
        goes_on = self.takes_over or self.how in ("answered", "paused")
        answer = _ANSWERS.get(self.how, b"")
        run.hit_request(self.id, self.point, lasts, self._action(run), not goes_on, answer)

    @property
    def _each_time(self) -> bool:
        return self.how in _EACH_TIME.values()

    def _action(self, run: Injection) -> Callable[[], object] | None:
        match self.how:
            case "crash":
                return run.crash
            case "unawaited":
                return run.crash_when_recorded
            case "restarted" | "answered":
                return lambda: run.restart_server(self.point.endpoint)
            case "paused":
                return lambda: run.pause_server(self.id, self.point.endpoint)
            case "silent":
                return lambda: run.say_nothing(self.id)
            case "late" | "amid":
                return lambda: run.hold_driver(self.id)
            case "always lost" | "always unavailable" as how:
                return lambda: run.outlast_client(self.id, _MET[how])
            case "lost" | "unavailable" | "timed out" | "refused":
                return None

    @property
    def bound(self) -> str:
        return {"crash": "crash", "unawaited": "crash", "late": "pause", "amid": "pause"}.get(
            self.how, "loss"
        )

    @property
    def place(self) -> str:
        return self.point.endpoint

    @property
    def rank(self) -> int | None:
        if self.how == "late":
            return 4
        return 1 if self.how == "lost" and self.point.kind == "omit-reply" else None

    @property
    def mechanism(self) -> str:
        return _MECHANISM.get(self.how, "wire")

    @property
    def takes_over(self) -> bool:
        return self.how in ("late", "amid")

    @property
    def wakes_amid(self) -> bool:
        return self.how == "amid"

    @property
    def unheard(self) -> bool:
        return self.how == "silent"

    @property
    def crashes(self) -> bool:
        return self.how in ("crash", "unawaited")

    @property
    def forgets_answered(self) -> bool:
        """The server is started again after it has carried everything out."""
        return self.how in ("restarted", "answered") and self.point.kind == "omit-reply"

    @property
    def swallowable(self) -> bool:
        return not self.takes_over

    @property
    def doubled(self) -> str:
        if self.takes_over:
            return "Both drivers wrote the same rows."
        if self.how in ("unavailable", "always unavailable", "refused"):
            return "Whoever was refused took that for another answer."
        return "Whoever did not see the reply sent its rows again."
