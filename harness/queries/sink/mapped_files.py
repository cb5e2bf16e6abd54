"""Files that are memory as well: of what is written there neither Python nor the kernel tells."""

from __future__ import annotations

from pathlib import Path


class MappedFiles:
    """Which of them have changed, as their content shows."""

    def __init__(self) -> None:
        self._content: dict[str, bytes | None] = {}

    def __bool__(self) -> bool:
        return bool(self._content)

    def add(self, path: str) -> None:
        """From now on a file is memory."""
        self._content[path] = _content(path)

    def changed(self) -> str | None:
        """One that has changed since that was asked last; None where none has."""
        changed = None
        for path, before in tuple(self._content.items()):
            now = self._content[path] = _content(path)
            if now is None:
                del self._content[path]
            elif now != before:
                changed = path
        return changed


def _content(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:
        return None
