"""What the notes of batches say when a run is over. Each was made before its batch was read, so
that whoever does the batch again takes the same messages: what the state has taken is what the note
says, or the next replay would take others."""

from __future__ import annotations

from contextlib import suppress

from bettong.engine.state.manifest import read_version, stored
from bettong.engine.state.planned import all_noted
from bettong.engine.state.store import LocalStore
from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.left_over import STATE
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly


def check_notes(layout: Layout) -> tuple[Anomaly, ...]:
    """A StateDivergence for each version of the state that has taken other messages than the note
    of its batch says.

    Args:
        layout: of the run; nobody is at work in it.
    """
    store = LocalStore(layout.checkpoint / STATE)
    found = []
    with suppress(BettongError):  # who reads the state says so
        notes = {planned.batch: planned for planned in all_noted(store)}
        for batch, epoch in stored(store):
            if batch not in notes:
                continue
            taken = read_version(store, batch, epoch).offsets
            noted = notes[batch].ends
            differ = [s for s in noted if taken.get(s, notes[batch].starts.get(s, 0)) != noted[s]]
            if differ:
                found.append(
                    Anomaly(
                        "StateDivergence",
                        expected={"batch": batch, "ends": {s: taken.get(s) for s in differ}},
                        seen={"batch": batch, "ends": {s: noted[s] for s in differ}},
                        note=f"batch {batch} would take other messages if it was done again: its "
                        "note says that it ends elsewhere than its state does",
                    )
                )
    return tuple(found)
