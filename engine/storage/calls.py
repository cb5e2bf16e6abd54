"""Calls to the disk as a run under test sees them: each is numbered within its step, may be told to
fail, and is noted in the node's account of what is not durable. In production nothing is asked."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from types import TracebackType
from zlib import crc32

from bettong.engine import steps
from bettong.engine.storage.disk_log import DiskLog

_one_at_a_time = threading.RLock()  # so that the account has the order in which things happened
_logs: dict[tuple[str, str], DiskLog] = {}


class _Unwatched:
    __slots__ = ()

    def granted(self, data: memoryview) -> memoryview:
        return data

    def wrote(self, data: memoryview) -> None:
        pass

    def __enter__(self) -> _Unwatched:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Call:
    """One call.

    Args:
        operation: as in the account.
        path: of the file or directory that it changes.
        operands: as in the account.
        touches: files that it needs or changes.
    """

    def __init__(
        self,
        operation: str,
        path: Path,
        operands: tuple[Path | str | int, ...],
        touches: tuple[Path, ...],
    ) -> None:
        self._operation = operation
        self._path = path
        self._operands = operands
        self._touches = touches
        self._orders: steps.Orders | None = None
        self._number = 0
        self._is_short = False
        self._written = b""

    def granted(self, data: memoryview) -> memoryview:
        """How much of what is still to be written the system takes at a time."""
        if self._orders is None or self._orders.done:
            return data
        if self._is_short and self._orders.errno:
            raise _error(self._orders.errno)
        if self._is_short:
            return data
        self._is_short = True
        return data[: (len(data) + 1) // 2]

    def wrote(self, data: memoryview) -> None:
        """So much was written."""
        self._written += bytes(data)

    def __enter__(self) -> Call:
        edge = steps.current_edge()
        if edge is not None:
            edge.await_turn(self._operation, self._path.name)
        _one_at_a_time.acquire()
        try:
            log = _log()
            if log is not None:
                log.found(*self._touches)
            if edge is not None:
                self._orders = edge.call(self._operation, self._path.name)
                self._number = edge.calls
            orders = self._orders
            # A full disk takes a part of what is written; a broken one takes nothing.
            in_part = (
                orders is not None
                and self._operation == "append"
                and (orders.errno in (0, errno.ENOSPC))
            )
            if orders is not None and not in_part and not orders.done:
                if self._operation == "sync":
                    if log is not None:
                        log.write("sync failed", *self._operands)
                    if edge is not None:
                        edge.done(self._number, ["sync failed", *map(_short, self._operands)], 0)
                raise _error(orders.errno)
        except BaseException:
            _one_at_a_time.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None or self._written:
                edge, log = steps.current_edge(), _log()
                if edge is not None:
                    call = [self._operation, *map(_short, self._operands)]
                    if self._operation == "append":
                        call.append(crc32(self._written))
                    edge.done(self._number, call, len(self._written))
                if log is not None:
                    log.write(self._operation, *self._operands, data=self._written)
                if edge is not None and self._orders is not None and self._orders.done:
                    edge.denied(self._operation, self._path.name)
                    raise _error(self._orders.errno)
        finally:
            _one_at_a_time.release()


_UNWATCHED = _Unwatched()


def disk_call(
    operation: str, path: Path, *operands: Path | str | int, touches: tuple[Path, ...] = ()
) -> Call | _Unwatched:
    """Make a call within this context; raises OSError when it has been told to fail."""
    return Call(operation, path, operands, touches) if steps.is_recorded() else _UNWATCHED


def reads(path: Path) -> None:
    """A file or a folder is about to be opened to be read; raises OSError when that has been told
    to fail."""
    edge = steps.current_edge() if steps.is_recorded() else None
    code = edge.read(path.name) if edge is not None else 0
    if code:
        raise OSError(code, os.strerror(code), str(path))


def _log() -> DiskLog | None:
    installed = steps.installed()
    if installed.disk is None:
        return None
    key = installed.disk, installed.node
    if key not in _logs:
        _logs[key] = DiskLog(Path(installed.disk), installed.node)
    return _logs[key]


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def _short(operand: Path | str | int) -> str | int:
    """An operand without the folder that the run's files are in."""
    if not isinstance(operand, Path):
        return operand
    disk = steps.installed().disk
    root = f"{Path(disk).parent}/" if disk is not None else ""
    return str(operand).removeprefix(root)
