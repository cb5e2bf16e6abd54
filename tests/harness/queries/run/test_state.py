"""The durable state of a run: kept at a crash, brought back."""

from __future__ import annotations

import threading
from pathlib import Path

from bettong.harness.queries.run.state import copy_state, replace_state


def test_what_still_tidies_up_in_the_dead_state_does_no_harm(tmp_path: Path) -> None:
    """Dying tasks delete their own files, by names that they have, while the state is replaced."""
    for round_ in range(40):
        state, kept = tmp_path / f"{round_}", tmp_path / f"{round_}-1"
        files = [state / "out" / "_temporary" / str(n) / "part" for n in range(50)]
        for file in files:
            file.parent.mkdir(parents=True)
            file.write_bytes(b"x")
        (state / "kept").write_bytes(b"kept")
        copy_state(state, kept)
        start = threading.Barrier(2)

        def tidy(files: list[Path] = files, start: threading.Barrier = start) -> None:
            start.wait()
            for file in files:
                file.unlink(missing_ok=True)

        dying = threading.Thread(target=tidy)
        dying.start()
        start.wait()
        replace_state(state, kept)
        dying.join()
        assert (state / "kept").read_bytes() == b"kept"
        assert not kept.exists()
