"""Running sums by key over two streams: what an output says depends on how the streams meet."""

from __future__ import annotations

from bettong.engine import application, sink, source
from bettong.scenarios.applications import running_sum
from bettong.scenarios.applications.running_sum import add, amount, line, name

app = application(
    "running_sum_merged",
    source("amounts", amount)
    .merge(source("corrections", amount))
    .key_by(name)
    .to(add)
    .to_sink(sink("sums", line)),
)


def messages(count: int, seed: int = 0) -> dict[str, list[bytes]]:
    """So many amounts, and as many corrections."""
    return {
        stream: running_sum.messages(count, seed + number)["amounts"]
        for number, stream in enumerate(("amounts", "corrections"))
    }
