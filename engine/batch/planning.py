"""Which messages make a batch, and how they are read.

By number alone a batch has its full share of messages of every stream, or what is left of one that
has ended: the batches of an input are always the same. Otherwise a batch also closes by time, with
what there is of each stream, and what it takes is then noted before any of it is read. Under test
the conductor is asked when the wait ends, and answers in logical time: how far each stream has come
by then.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from bettong.engine.batching import Batching
from bettong.engine.errors import MissingError
from bettong.engine.net.watched import is_watched
from bettong.engine.sources.base import Extent, StreamSource, ends_with_run
from bettong.engine.state.planned import PlannedBatch, PlannedError, note, noted
from bettong.engine.state.store import Store
from bettong.engine.steps import installed, step
from bettong.lineage.trace import MessageRange

Ends = Mapping[str, int]
"""For each stream the number of the first message that is not taken."""

_TURN_S = 0.02
"""For how long the streams are listened to in turn, all of them together."""

NEVER = "never"
"""The answer of a conductor to whom the wait does not end: the batch closes by number."""


class Planner:
    """Plans one batch after the other, for one driver. Subclasses may replace any part.

    Args:
        sources: by stream.
        store: where notes are made.
        batching: when a batch closes.
        poll_s: seconds for which :meth:`plan` waits for a first message.
    """

    def __init__(
        self,
        sources: Mapping[str, StreamSource],
        store: Store,
        batching: Batching,
        poll_s: float,
    ) -> None:
        self.sources = sources
        self.store = store
        self.batching = batching
        self._poll_s = poll_s
        self._silent_at = -float("inf")
        self._answer: tuple[int, Any] = (-1, None)
        self._ends_with_run = any(map(ends_with_run, sources.values()))

    def plan(self, batch: int, ends: Ends) -> dict[str, int] | None:
        """Where a batch ends in each stream; durably noted where time or the run's end closes any.

        Args:
            batch: its number.
            ends: where the batch before ends.

        Returns:
            None while there is nothing to make a batch of, or all streams have ended.

        Raises:
            PlannedError: the batch was planned on another state than this one.
            MissingError: see :func:`come_to`.
        """
        known = self.known(batch)
        if known is not None:
            if dict(ends) != {**ends, **known.starts}:
                raise PlannedError(
                    f"batch {batch} was planned from {dict(known.starts)} on, the state before it "
                    f"ends at {dict(ends)}: checkpoint and state log do not belong together"
                )
            return {**ends, **known.ends}
        found = self.close(batch, ends)
        if found is None:
            return None
        planned = PlannedBatch(batch, dict(ends), found)
        for part in planned.ranges if is_watched() else ():  # a step, and a request, of its own
            self.sources[part.stream].plan(part, self.step_id(batch, "source.plan", part.stream))
        if self.batching.by_number and not self._ends_with_run:
            return found  # whoever plans it again finds the same
        return self._noted(planned)

    def plan_nothing(self, batch: int, ends: Ends) -> dict[str, int]:
        """Where a batch ends that is to have no messages, since time has run out: where the one
        before does, unless another driver has noted more. Durably noted."""
        return self._noted(PlannedBatch(batch, dict(ends), dict(ends)))

    def known(self, batch: int) -> PlannedBatch | None:
        """What has been noted of a batch; raises PlannedError for messages of a stream that this
        version of the application does not read."""
        found = noted(self.store, batch)
        return None if found is None else self._of_ours(found)

    def note(self, planned: PlannedBatch) -> PlannedBatch:
        """Note what a batch takes, or learn what another driver has noted."""
        return note(self.store, planned)

    def _noted(self, planned: PlannedBatch) -> dict[str, int]:
        batch, ranges = planned.batch, planned.ranges
        steps = [self.step_id(batch, "source.plan", part.stream) for part in ranges]
        with step(f"batch={batch}/source.note", causes=steps, carries=ranges):
            # Another driver's version of the application may have fewer streams, or more.
            return {**planned.starts, **self._of_ours(self.note(planned)).ends}

    def _of_ours(self, planned: PlannedBatch) -> PlannedBatch:
        """A note without the streams that are not read here, of which it takes nothing."""
        strange = [part.stream for part in planned.ranges if part.stream not in self.sources]
        if strange:
            raise PlannedError(
                f"batch {planned.batch} was planned with messages of {', '.join(strange)}, which "
                "this version of the application does not read: start the one that does"
            )
        starts, ends = (
            {stream: at for stream, at in each.items() if stream in self.sources}
            for each in (planned.starts, planned.ends)
        )
        return PlannedBatch(planned.batch, starts, ends)

    def step_id(self, batch: int, name: str, stream: str) -> str:
        """Step id of what is done for a stream of a batch."""
        return source_step(batch, name, stream, len(self.sources))

    def close(self, batch: int, ends: Ends) -> dict[str, int] | None:
        """Where a batch that is planned for the first time ends."""
        if self.batching.by_number:
            return next_batch(self.sources, ends, self.batching.messages, self._poll_s)
        if installed().conductor is None:
            return self._by_clock(ends)
        give_up = time.monotonic() + self._poll_s
        if not any(extent.end > ends[s] for s, extent in self._listen(ends, 1, give_up).items()):
            return None  # a wait begins with a batch's first message
        while True:
            moment = self._moment(batch)
            if moment is None:
                return self._by_clock(ends)
            if moment == NEVER:
                return next_batch(self.sources, ends, self.batching.messages, self._poll_s)
            found = self._at(moment, ends)
            if found is None or found != dict(ends):
                return found
            self._answer = (-1, None)  # nothing has come by then: ask again

    def _moment(self, batch: int) -> Any:
        """What the conductor answers, asked once for each batch; None where there is none."""
        if self._answer[0] != batch:
            with step(f"batch={batch}/source.wait") as asked:
                self._answer = (batch, asked.answer)
        return self._answer[1]

    def _at(self, moment: Ends, ends: Ends) -> dict[str, int] | None:
        """Where a batch ends whose wait is over when the streams have come so far; None until
        they have."""
        extents = {}
        for stream, source in self.sources.items():
            came = max(moment.get(stream, 0), ends[stream])
            upto = min(came, ends[stream] + self.batching.messages)
            extent = come_to(stream, source, ends[stream], upto, self._poll_s)
            if extent.end < upto and not extent.ended:
                return None
            extents[stream] = extent._replace(end=min(extent.end, came))
        return self._closed(extents, ends)

    def _by_clock(self, ends: Ends) -> dict[str, int] | None:
        give_up = time.monotonic() + self._poll_s
        extents = self._listen(ends, 1, 0.0)
        while not any(extents[s].end > end for s, end in ends.items()):
            now = time.monotonic()
            if now >= give_up or all(extent.ended for extent in extents.values()):
                return None
            extents = self._listen(ends, 1, give_up)
            self._silent_at = time.monotonic()  # what comes first comes now
        until = self._silent_at + self.batching.wait_s
        while time.monotonic() < until and not self._complete(extents, ends):
            extents = self._listen(ends, self.batching.messages, until)
        self._silent_at = time.monotonic()
        return self._closed(extents, ends)

    def _closed(self, extents: Mapping[str, Extent], ends: Ends) -> dict[str, int]:
        """Where a batch ends whose wait is over now."""
        most = self.batching.messages
        return {s: min(extents[s].end, end + most) for s, end in ends.items()}

    def _complete(self, extents: Mapping[str, Extent], ends: Ends) -> bool:
        """Whether a stream has a full share, or nothing can be added."""
        full = (extents[s].end >= end + self.batching.messages for s, end in ends.items())
        return any(full) or all(extent.ended for extent in extents.values())

    def _listen(self, ends: Ends, count: int, until: float) -> dict[str, Extent]:
        """How far the streams have come, each listened to in its turn until it has so many
        messages after its end; the only one until the last moment."""
        turn = _TURN_S / len(ends) if len(ends) > 1 else self._poll_s
        found = {}
        for s, end in ends.items():
            wait = max(0.0, min(turn, until - time.monotonic()))
            found[s] = come_to(s, self.sources[s], end, end + count, wait)
        return found


def come_to(
    stream: str, source: StreamSource, taken: int, upto: int = 0, wait: float = 0.0
) -> Extent:
    """How far a stream has come, of which the messages below ``taken`` have been taken; waits as
    :meth:`StreamSource.extent` does.

    Raises MissingError where its source has fewer: what would come in their place, if anything
    did, would be taken for them. And where the source no longer has those that follow.
    """
    extent = source.extent(upto, wait)
    if extent.begin > taken:
        raise MissingError(
            f"messages {stream}/{taken} to {stream}/{extent.begin - 1} are missing: their source "
            "has let go of them, as another application or another checkpoint has done with them: "
            "give each a stream of its own"
        )
    if extent.end < taken:
        raise MissingError(
            f"messages {stream}/{extent.end} to {stream}/{taken - 1} are missing: the application "
            f"has taken them, and their source has only {extent.end} now: bring its files back "
            "from a copy, or begin again with an empty checkpoint"
        )
    return extent


def next_batch(
    sources: Mapping[str, StreamSource],
    ends: Mapping[str, int],
    batch_messages: int,
    wait: float,
) -> dict[str, int] | None:
    """Where the next batch ends in each stream: a batch has its full share of messages of every
    stream, or what is left of one that has ended. So the batches of an input are always the same.

    Args:
        sources: by stream.
        ends: where the batch before ends.
        batch_messages: the share of each stream.
        wait: for how many seconds to wait for messages.

    Returns:
        None when a stream lacks messages, or all have ended.
    """
    found: dict[str, int] = {}
    for stream, source in sources.items():
        full = ends[stream] + batch_messages
        end, ended, _ = come_to(stream, source, ends[stream], full, wait)
        if end < full and not ended:
            return None
        found[stream] = min(end, full)
    return None if found == dict(ends) else found


def source_step(batch: int, name: str, stream: str, streams: int) -> str:
    """Step id of what is done for a stream, which is named when there are several."""
    step = f"batch={batch}/{name}"
    return step if streams == 1 else f"{step}/{stream}"


def parts(planned: MessageRange, source: object, count: int) -> list[tuple[int, MessageRange]]:
    """What tasks read of a range, each with its place: slices, or a whole partition, whose place
    is its number."""
    if isinstance(partition := getattr(source, "partition", None), int):
        return [(partition, planned)] if planned.start < planned.stop else []
    return list(enumerate(slices(planned, count)))


def slices(planned: MessageRange, count: int) -> list[MessageRange]:
    """A range in at most ``count`` parts of about the same length, in order."""
    stream, start, stop = planned
    size = max(1, -(-(stop - start) // count))
    return [MessageRange(stream, a, min(a + size, stop)) for a in range(start, stop, size)]
