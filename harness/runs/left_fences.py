"""Whether the sinks would keep an older driver from writing, by what is on their disks when all is
done. What only their memory knows is gone with the next restart; a driver that was taken for dead
and comes back then would write beside its successor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from bettong.engine import Application
from bettong.engine.endpoints import kept_as
from bettong.engine.errors import FencedError
from bettong.engine.names import load_class
from bettong.engine.net.errors import RefusedError
from bettong.engine.receiver.ledger import Ledger
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.base import Noted
from bettong.engine.sinks.files import FileSink
from bettong.engine.state.manifest import current_epoch
from bettong.engine.state.store import LocalStore
from bettong.harness.cluster.layout import Layout
from bettong.harness.runs.folder_content import MOST_KNOWN, FolderContent
from bettong.harness.runs.left_over import STATE
from bettong.harness.scenario import Outputs
from bettong.lineage.errors import BettongError
from bettong.lineage.results import Anomaly

_NEVER_DONE = 1 << 40
"""A batch that no run comes to."""


def check_fences(
    layout: Layout, application: Application, outputs: Outputs, own: str = ""
) -> tuple[Anomaly, ...]:
    """A StateDivergence for each sink that would take a commit of the epoch before the newest.

    Args:
        layout: of the run, whose last driver has come to its end; nobody is at work in it.
        own: the class of a scenario's own sink, ``module:Name``: what it makes of the epochs there
            is another thing than what the engine's would.
    """
    newest = current_epoch(LocalStore(layout.checkpoint / STATE))
    if outputs not in _TAKES or not newest:
        return ()
    found = []
    for sink in application.sinks:
        folder = (
            layout.receiver / kept_as(application, sink.name)
            if outputs == "receiver"
            else layout.files / sink.name
        )
        if not folder.is_dir():
            continue  # what it had is lost, and who reads it says so
        content = FolderContent.of(folder)
        if (
            _own_takes(load_class(own, _SINKS[outputs]), content, newest - 1)
            if own and outputs in _SINKS
            else _takes(outputs, content, newest - 1)
        ):
            found.append(
                Anomaly(
                    "StateDivergence",
                    expected={"sink": sink.name, "refuses": f"epoch {newest - 1}"},
                    seen={"sink": sink.name, "takes": f"epoch {newest - 1}"},
                    note=f"the sink {sink.name} has not noted that epoch {newest} has begun: "
                    "it would let an older driver write",
                )
            )
    return tuple(found)


@lru_cache(MOST_KNOWN)
def _takes(outputs: Outputs, content: FolderContent, epoch: int) -> bool:
    with content.copied() as copy:
        return _TAKES[outputs](copy, epoch)


def _own_takes(kind: type[FileSink | ArrowSink], content: FolderContent, epoch: int) -> bool:
    """Of a sink that may go by more than what is in its folder, and may refuse in its own way."""
    with content.copied() as copy:
        try:
            return _folder_takes(kind)(copy, epoch)
        except Exception:
            return False


def _ledger_takes(folder: Path, epoch: int) -> bool:
    try:
        ledger = Ledger(folder, folder.name)
    except BettongError:
        return False  # who starts from it says so
    try:
        ledger.commit(epoch, _NEVER_DONE, {})
    except RefusedError as e:
        return e.code != "fenced"
    finally:
        ledger.close()
    return True


def _folder_takes(kind: type[FileSink | ArrowSink]) -> Callable[[Path, int], bool]:
    def takes(folder: Path, epoch: int) -> bool:
        try:
            kind(folder).commit(epoch, _NEVER_DONE, {}, Noted("", ()))
        except FencedError:
            return False
        except OSError:
            pass  # where it keeps its epochs, there is nothing
        return True

    return takes


_SINKS: Mapping[Outputs, type[FileSink | ArrowSink]] = {"files": FileSink, "arrow": ArrowSink}
"""What a scenario's own sink is derived from."""
_TAKES: Mapping[Outputs, Callable[[Path, int], bool]] = {
    "receiver": _ledger_takes,
    **{outputs: _folder_takes(kind) for outputs, kind in _SINKS.items()},
}
