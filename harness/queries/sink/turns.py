"""What a ``foreachBatch`` function gives to threads and waits for goes on one piece at a time.

The threads are real, and each *piece*, a call that a pool was given or a thread of its own, waits
for its turn, so that it is no chance what the others have done when the driver dies. In a batch
with an even number each has its turn as soon as it is given; in one with an odd number none before
it is waited for, and then the last one first. So each of two pieces comes before the other one, and
each piece before and after what the function does meanwhile: who gets the order of two events wrong
is found (bugs of depth two, in the words of Burckhardt et al., "A Randomized Scheduler with
Probabilistic Guarantees of Finding Bugs", ASPLOS 2010).

Where pieces wait for each other in another way than for their ends (locks aside), or a wait comes
to its own time-out, all go on at will, and are threads like any other.
"""

from __future__ import annotations

import concurrent.futures
import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import _base as futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from types import FrameType
from typing import Any

_LONGEST_S = 150.0
"""Longer than any client is made to wait. What is not there by then waits for something else."""
_LONGEST_AT_ONCE_S = 30.0
"""The same of a thread of its own that has its turn as soon as it is given, for there are such as
go on until they are told to stop."""
_BETWEEN = (f"{__package__}.", futures.__name__)
"""How the names of modules begin whose calls are made for who has called them."""
_wait = threading.Condition.wait
_monotonic = time.monotonic


class _State(Enum):
    GIVEN = auto()  # and no thread has begun with it
    READY = auto()  # a thread waits with it for its turn
    GOES_ON = auto()
    SLEEPS = auto()
    ENDS = auto()  # but nobody has been told so
    OVER = auto()
    AT_WILL = auto()


_BUSY = (_State.READY, _State.GOES_ON, _State.SLEEPS, _State.ENDS, _State.AT_WILL)
_COMES = (_State.SLEEPS, _State.ENDS)


@dataclass(eq=False)
class _Piece:
    """A call in a thread.

    Attributes:
        pool: that it was given to; None for a thread of its own.
        awaited: somebody has waited for its end.
        end: how many had ended when it did.
    """

    round: _Round
    pool: ThreadPoolExecutor | None
    thread: threading.Thread | None = None
    state: _State = _State.GIVEN
    awaited: bool = False
    end: int = 0

    @property
    def is_over(self) -> bool:
        return self.state is _State.OVER


@dataclass(eq=False)
class _Round:
    """The pieces of one batch, in the order in which they were given.

    Attributes:
        at_once: each has its turn as soon as it is given.
        at_will: all go on as they like.
    """

    batch: Any
    at_once: bool
    pieces: list[_Piece] = field(default_factory=list)
    at_will: bool = False

    def next(self) -> _Piece | None:
        ready = [piece for piece in self.pieces if piece.state is _State.READY]
        return ready[0 if self.at_once else -1] if ready else None


class Turns:
    """Of one process.

    Args:
        is_own: whether a frame is of the code of a batch, and not of a library's, which knows what
            its threads do.
        begins: is given the batch for which this thread works from now on.
        ends: this thread does so no longer; is given its number.
        at_will: is given a batch, and a thread that works beside it from now on.
    """

    def __init__(
        self,
        is_own: Callable[[Any, FrameType], bool],
        begins: Callable[[Any], None],
        ends: Callable[[int], None],
        at_will: Callable[[Any, threading.Thread], None],
    ) -> None:
        self._is_own = is_own
        self._begins = begins
        self._ends = ends
        self._at_will = at_will
        self._changed = threading.Condition()
        self._rounds: dict[int, _Round] = {}
        self._in_pools: weakref.WeakKeyDictionary[ThreadPoolExecutor, list[_Piece]]
        self._in_pools = weakref.WeakKeyDictionary()
        self._known: weakref.WeakKeyDictionary[Hashable, _Piece] = weakref.WeakKeyDictionary()
        self._endless: set[int] = set()
        self._local = threading.local()
        self._ended = 0

    def install(self) -> None:
        """From now on, for the life of the process."""
        pool: Any = ThreadPoolExecutor
        future: Any = Future
        thread: Any = threading.Thread
        modules: tuple[Any, ...] = (futures, concurrent.futures)
        pool.submit = self._submitting(pool.submit)
        pool.shutdown = self._shutting_down(pool.shutdown)
        future.result = self._awaiting(future.result)
        future.exception = self._awaiting(future.exception)
        future.done = self._asking(future.done)
        thread.join = self._awaiting(thread.join)
        thread.is_alive = self._asking(thread.is_alive)
        wait, as_completed = self._waiting_for(futures.wait), self._completing(futures.as_completed)
        for module in modules:
            module.wait, module.as_completed = wait, as_completed
        threading.Condition.wait = self._blocking(_wait)  # type: ignore[method-assign]
        clock: Any = time
        clock.sleep = self._sleeping(time.sleep)

    # --- a batch

    def batch_begins(self, batch: Any, number: int) -> None:
        """This thread calls the function of a batch with this number."""
        self._rounds[threading.get_ident()] = _Round(batch, at_once=number % 2 == 0)

    def batch_ends(self) -> None:
        """It has returned, or failed: whatever is left goes on at will."""
        with self._changed:
            self._set_free(self._rounds.pop(threading.get_ident()))

    def given(self) -> bool:
        """Whether this thread's batch has given something to threads."""
        return bool(self._rounds[threading.get_ident()].pieces)

    def left(self) -> tuple[threading.Thread | None, bool] | None:
        """A thread to which this one's batch has given something that nobody has waited for, and
        whether it is over nevertheless; None if there is none. Of those that go on at will only
        what a pool has still to do counts."""
        round = self._rounds[threading.get_ident()]
        with self._changed:
            for piece in round.pieces:
                over = piece.is_over and (piece.awaited or round.at_will)
                if not (over or (round.at_will and piece.pool is None)):
                    return piece.thread, piece.is_over
        return None

    def starts(self, thread: threading.Thread, start: Callable[[threading.Thread], None]) -> bool:
        """Start a thread, if it is one of those that wait for their turn or of a pool whose pieces
        do."""
        if self._calls_python:
            start(thread)
            return True
        round = self._of_own_code()
        target = _target(thread)
        takes = round is not None and target not in self._endless
        piece = _Piece(round, None) if round is not None and takes else None
        if piece is not None:
            self._is_given(piece, thread)
            thread.run = self._in_turn(piece, thread.run)  # type: ignore[method-assign]
        with self._calling_python():
            start(thread)
        if piece is not None:
            self._may_go_at_once(piece, _LONGEST_AT_ONCE_S)
            if piece.state is _State.AT_WILL:
                self._endless.add(target)
        return piece is not None

    # --- what is put in place of Python's own

    def _submitting(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(submit)
        def submitted(
            pool: ThreadPoolExecutor, fn: Callable[..., Any], /, *a: Any, **k: Any
        ) -> Any:
            round = self._of_own_code()
            if round is None:
                return submit(pool, fn, *a, **k)
            piece = _Piece(round, pool)
            with self._calling_python():
                future = submit(pool, self._in_turn(piece, fn), *a, **k)
            self._is_given(piece, future)
            future.add_done_callback(lambda _: self._is_over(piece))
            self._may_go_at_once(piece)
            return future

        return submitted

    def _shutting_down(self, shutdown: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(shutdown)
        def shut_down(
            pool: ThreadPoolExecutor, wait: bool = True, *, cancel_futures: bool = False
        ) -> None:
            if wait and (round := self._acting()) is not None:
                shutdown(pool, wait=False, cancel_futures=cancel_futures)
                self._until(round, [p for p in round.pieces if p.pool is pool], all)
            shutdown(pool, wait=wait, cancel_futures=cancel_futures)

        return shut_down

    def _awaiting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def awaited(what: Any, timeout: float | None = None) -> Any:
            began = _monotonic()
            if (round := self._acting()) is not None and (piece := self._known.get(what)):
                self._until(round, [piece], all, timeout)
            return call(what, _left(timeout, began))

        return awaited

    def _asking(self, call: Callable[..., bool]) -> Callable[..., bool]:
        """Who asks whether something is over may do so until it is."""

        @functools.wraps(call)
        def asked(what: Any) -> bool:
            if (round := self._acting()) is not None and (piece := self._known.get(what)):
                self._until(round, [piece], all, awaited=False)
            return call(what)

        return asked

    def _waiting_for(self, wait: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(wait)
        def waited(
            fs: Iterable[Future[Any]],
            timeout: float | None = None,
            return_when: str = futures.ALL_COMPLETED,
        ) -> Any:
            fs, began = list(fs), _monotonic()
            if (round := self._acting()) is not None:
                enough = any if return_when == futures.FIRST_COMPLETED else all
                self._until(round, self._pieces(fs), enough, timeout)
            return wait(fs, _left(timeout, began), return_when)

        return waited

    def _completing(self, as_completed: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(as_completed)
        def completed(
            fs: Iterable[Future[Any]], timeout: float | None = None
        ) -> Iterator[Future[Any]]:
            left, began = list(dict.fromkeys(fs)), _monotonic()
            while (round := self._acting()) is not None and (pieces := self._pieces(left)):
                self._until(round, pieces, any, _left(timeout, began))
                first = min((p for p in pieces if p.is_over), key=lambda p: p.end, default=None)
                if first is None:
                    break
                done = next(future for future in left if self._known.get(future) is first)
                left.remove(done)
                yield done
            yield from as_completed(left, _left(timeout, began))

        return completed

    def _blocking(self, wait: Callable[..., bool]) -> Callable[..., bool]:
        """Who waits for what is not known may wait for any of the others."""

        @functools.wraps(wait)
        def waited(condition: threading.Condition, timeout: float | None = None) -> bool:
            if (round := self._acting()) is not None and not self._calls_python:
                with self._changed:
                    self._set_free(round)
            return wait(condition, timeout)

        return waited

    def _sleeping(self, sleep: Callable[[float], None]) -> Callable[[float], None]:
        """Another one has its turn meanwhile."""

        @functools.wraps(sleep)
        def slept(seconds: float, /) -> None:
            if (round := self._acting()) is None:
                sleep(seconds)
                return
            piece: _Piece | None = getattr(self._local, "piece", None)
            if piece is None or piece.state is not _State.GOES_ON:
                self._let_one_go_on(round)
                sleep(seconds)
                return
            with self._changed:
                piece.state = _State.SLEEPS
                self._changed.notify_all()
            sleep(seconds)
            self._comes(piece)

        return slept

    # --- turns

    @property
    def _calls_python(self) -> bool:
        """Whether what this thread does now is Python's own doing, such as to wait until a thread
        has begun."""
        return getattr(self._local, "calls_python", False)

    @contextmanager
    def _calling_python(self) -> Iterator[None]:
        self._local.calls_python = True
        try:
            yield
        finally:
            self._local.calls_python = False

    def _acting(self) -> _Round | None:
        """The round for which this thread acts, unless all of it goes on at will."""
        round = self._rounds.get(threading.get_ident())
        return None if round is None or round.at_will else round

    def _of_own_code(self) -> _Round | None:
        """The same, where the batch's own code has called."""
        round = self._acting()
        frame = sys._getframe(2) if round is not None else None
        while frame is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
            frame = frame.f_back
        own = round is not None and frame is not None and self._is_own(round.batch, frame)
        return round if own else None

    def _pieces(self, fs: Iterable[Future[Any]]) -> list[_Piece]:
        return [piece for future in fs if (piece := self._known.get(future)) is not None]

    def _is_given(self, piece: _Piece, known_by: Hashable) -> None:
        with self._changed:
            piece.round.pieces.append(piece)
            if piece.pool is not None:
                others = self._in_pools.get(piece.pool, ())
                self._in_pools[piece.pool] = [*(p for p in others if not p.is_over), piece]
            self._known[known_by] = piece

    def _in_turn(self, piece: _Piece, call: Callable[..., Any]) -> Callable[..., Any]:
        def done_in_turn(*arguments: Any, **named: Any) -> Any:
            piece.thread, self._local.piece = threading.current_thread(), piece
            self._comes(piece)
            try:
                return call(*arguments, **named)
            finally:
                self._goes(piece)

        return done_in_turn

    def _comes(self, piece: _Piece) -> None:
        """Wait for its turn."""
        round = piece.round
        with self._changed:
            piece.state = _State.READY
            self._changed.notify_all()
            if not self._wait_while(lambda: piece.state is _State.READY and not round.at_will):
                self._set_free(round)
            if round.at_will:
                piece.state = _State.AT_WILL
                assert piece.thread is not None
                self._at_will(round.batch, piece.thread)
                return
        self._rounds[threading.get_ident()] = round
        self._begins(round.batch)

    def _goes(self, piece: _Piece) -> None:
        """It has done its work. Of a pool's the future is told next."""
        with self._changed:
            if self._rounds.pop(threading.get_ident(), None) is not None:
                self._ends(threading.get_ident())
            piece.state = _State.ENDS
        del self._local.piece
        if piece.pool is None:
            self._is_over(piece)

    def _is_over(self, piece: _Piece) -> None:
        with self._changed:
            self._ended += 1
            piece.state, piece.end = _State.OVER, self._ended
            self._changed.notify_all()

    def _may_go_at_once(self, piece: _Piece, timeout: float | None = None) -> None:
        if piece.round.at_once:
            enough = _State.OVER, _State.SLEEPS
            self._give_turns(piece.round, lambda: piece.state in enough, timeout)

    def _let_one_go_on(self, round: _Round) -> None:
        with self._changed:
            waits = [piece for piece in round.pieces if piece.state is _State.READY]
        if waits:
            self._give_turns(round, lambda: any(p.state is not _State.READY for p in waits))

    def _until(
        self,
        round: _Round,
        pieces: list[_Piece],
        enough: Callable[[Iterable[bool]], bool],
        timeout: float | None = None,
        awaited: bool = True,
    ) -> None:
        """Let one after the other go on until enough of these are over."""
        if not pieces:
            return
        for piece in pieces:
            piece.awaited |= awaited
        self._give_turns(round, lambda: enough(piece.is_over for piece in pieces), timeout)

    def _give_turns(
        self, round: _Round, enough: Callable[[], bool], timeout: float | None = None
    ) -> None:
        """Until there is enough, nobody is left to go on, or the time is up, after which all go on
        at will."""
        began = _monotonic()
        with self._changed:
            while not (enough() or round.at_will):
                coming = self._coming(round)
                piece = None if coming else round.next()
                if piece is not None:
                    piece.state = _State.GOES_ON
                    self._changed.notify_all()
                    goes_on = functools.partial(_goes_on, piece)
                elif coming:
                    goes_on = functools.partial(self._coming, round)
                else:
                    return
                if not self._wait_while(goes_on, _left(timeout, began)):
                    self._set_free(round)

    def _coming(self, round: _Round) -> bool:
        """Whether another piece will soon wait for its turn, or be over."""
        return any(
            piece.state in _COMES or (piece.state is _State.GIVEN and self._has_thread(piece))
            for piece in round.pieces
        )

    def _has_thread(self, piece: _Piece) -> bool:
        if piece.pool is None:
            return True
        busy = sum(other.state in _BUSY for other in self._in_pools[piece.pool])
        return busy < piece.pool._max_workers

    def _wait_while(self, holds: Callable[[], bool], timeout: float | None = None) -> bool:
        """Whether it holds no longer, before the time is up."""
        began = _monotonic()
        limit = _LONGEST_S if timeout is None else min(timeout, _LONGEST_S)
        while holds():
            left = limit - (_monotonic() - began)
            if left <= 0:
                return False
            _wait(self._changed, left)
        return True

    def _set_free(self, round: _Round) -> None:
        """All that is left of it goes on at will, where anything is."""
        left = [piece for piece in round.pieces if not piece.is_over]
        if not left or round.at_will:
            return
        round.at_will = True
        for piece in left:
            if piece.state in (_State.GOES_ON, _State.SLEEPS) and piece.thread is not None:
                piece.state = _State.AT_WILL
                number = piece.thread.ident or 0
                if self._rounds.pop(number, None) is not None:
                    self._ends(number)
                self._at_will(round.batch, piece.thread)
        self._changed.notify_all()


def _target(thread: threading.Thread) -> int:
    """What a thread does, the same for each that does it."""
    target = getattr(thread, "_target", None) or type(thread)
    return id(getattr(target, "__code__", target))


def _goes_on(piece: _Piece) -> bool:
    return piece.state in (_State.GOES_ON, _State.ENDS) and not piece.round.at_will


def _left(timeout: float | None, began: float) -> float | None:
    """What is left of a time-out since a moment."""
    return None if timeout is None else max(0.0, timeout - (_monotonic() - began))
