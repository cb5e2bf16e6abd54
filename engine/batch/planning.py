"""Which messages make a batch, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping

from bettong.engine.sources.base import StreamSource
from bettong.lineage.trace import MessageRange


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
        end, ended = source.extent(full, wait)
        if end < full and not ended:
            return None
        found[stream] = min(end, full)
    return None if found == dict(ends) else found


def source_step(batch: int, name: str, stream: str, streams: int) -> str:
    """Step id of what is done for a stream, which is named when there are several."""
    step = f"batch={batch}/{name}"
    return step if streams == 1 else f"{step}/{stream}"


def slices(planned: MessageRange, count: int) -> list[MessageRange]:
    """A range in at most ``count`` parts of about the same length, in order."""
    stream, start, stop = planned
    size = max(1, -(-(stop - start) // count))
    return [MessageRange(stream, a, min(a + size, stop)) for a in range(start, stop, size)]
