"""Whether the messages of a folder's files keep their numbers, by what is on the disk when all is
done. An entry that is lost is made anew as long as the same files are there; with one more among
them, other messages get the numbers that have been taken."""

from __future__ import annotations

from collections.abc import Iterable

from bettong.engine.sources.directory import DirectorySource
from bettong.engine.state.query import version
from bettong.engine.state.store import LocalStore
from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.left_over import STATE
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly


def check_numbers(layout: Layout, streams: Iterable[str]) -> tuple[Anomaly, ...]:
    """A StateDivergence for each stream of which the state has taken messages that have no number.

    Args:
        layout: of the run; nobody is at work in it.
        streams: those that come from files of a folder.
    """
    found = []
    for stream in streams:
        source = DirectorySource(layout.input_folder(stream), layout.index(stream))
        try:
            taken = version(LocalStore(layout.checkpoint / STATE)).offsets.get(stream, 0)
            numbered = sum(file.lines for file in source.taken())
        except BettongError:
            continue  # who starts from it says so
        if numbered < taken:
            found.append(
                Anomaly(
                    "StateDivergence",
                    expected={"stream": stream, "numbered": taken},
                    seen={"stream": stream, "numbered": numbered},
                    note=f"the index of {stream} has numbers for {numbered} messages, the state "
                    f"has taken {taken}: with further files they would be numbered otherwise",
                )
            )
    return tuple(found)
