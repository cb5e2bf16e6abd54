"""Code of a user's is loaded behind a guard: whatever it does, it does not end Bettong.

An error, and ``sys.exit``, become a :class:`UserCodeError` that shows the user's own line. Whoever
supervises this process (:func:`watch`) hears when loading begins and ends, so that an import that
never returns has a limit.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from bettong.lineage.errors import BettongError, UsageError

_IMPORTLIB = str(Path(importlib.__file__).parent)
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_PACKAGES = {"site-packages", "dist-packages"}
_OWN = str(Path(__file__).resolve().parent.parent)
_observers: list[Callable[[str], None]] = []


class UserCodeError(UsageError):
    """A user's module, class or function failed while it was loaded."""


def watch(observer: Callable[[str], None]) -> None:
    """Have the observer told what is being loaded, and an empty text when it has been."""
    _observers.append(observer)


@contextlib.contextmanager
def guarded(what: str) -> Iterator[None]:
    """Loads or calls what a user has written.

    Args:
        what: the file, module or object, as the user named it.

    Raises UserCodeError for any error but Bettong's own, which say themselves what is wrong.
    """
    _notify(what)
    try:
        yield
    except BettongError:
        raise
    except (Exception, SystemExit, GeneratorExit) as e:
        raise UserCodeError(f"{what} cannot be loaded: {in_one_line(e)}") from e
    finally:
        _notify("")


def _notify(text: str) -> None:
    for observer in _observers:
        observer(text)


def in_one_line(error: BaseException) -> str:
    """What was raised, and the last line of the user's own code that led to it."""
    if isinstance(error, SystemExit):
        text = f"it ends the process itself, by sys.exit({error.code!r})"
    elif isinstance(error, SyntaxError):
        text = f"{type(error).__name__}: {error.msg}"
    else:
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return " ".join(text.split()) + _place(error)


def is_installed(file: str) -> bool:
    """Whether a file is Python's own or an installed package's, not written by a user."""
    return file.startswith(_STANDARD) or not _PACKAGES.isdisjoint(Path(file).parts)


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}:{error.lineno}: {' '.join((error.text or '').split())})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((_IMPORTLIB, "<frozen"))]
    own = [f for f in own if not os.path.realpath(f.filename).startswith(_OWN)]
    if not own:
        return ""
    written = [f for f in own if not is_installed(f.filename)]
    last = (written or own)[-1]
    return f" ({last.filename}:{last.lineno}: {last.line or ''})"


def files_in_use() -> Iterator[Path]:
    """Those of all modules in use that come with no package that is installed."""
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not is_installed(file) and Path(file).is_file():
            yield Path(file).resolve()
