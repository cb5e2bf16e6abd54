"""What a run has left on disks: of runs that have left the same, one is started again."""

from __future__ import annotations

import re
import zlib
from hashlib import blake2b
from pathlib import Path

from bettong.harness.cluster.layout import Layout

_BY_CHANCE = re.compile(rb"(?<=-)[0-9a-f]{12}(?=\.[a-z])")
"""What makes the name of a state file the only one of its kind."""
_UNFINISHED = re.compile(rb"(?<=/\.tmp-)[0-9a-f]{32}")
"""The same of a file that was not finished, whose name nothing speaks of."""
_OF_SPARK = re.compile(rb"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b1[0-9]{12}\b")
"""What Spark's own notes have of a run that is chance: ids and times."""
_NOT_READ = (".log", ".input")
"""Files of a run that no node reads what it has done from."""
_CHECKSUM = ".crc"


def remains(layout: Layout) -> bytes:
    """Equal for runs that have left the same files; parts of names that are chance stand for what
    is in the files."""
    notes = layout.checkpoint / "spark"
    found = []
    for path in filter(Path.is_file, _files(layout)):
        name, content = str(path.relative_to(layout.folder)).encode(), path.read_bytes()
        if not path.is_relative_to(notes):
            found.append((_UNFINISHED.sub(b"?", name), content))
        elif path.suffix != _CHECKSUM:  # a file that was not finished has an id in its name
            found.append((_OF_SPARK.sub(b"?", name), _OF_SPARK.sub(b"?", content)))
    chance = {
        token: blake2b(content, digest_size=6).hexdigest().encode()
        for name, content in found
        for token in _BY_CHANCE.findall(name)
    }

    def known(text: bytes) -> bytes:
        line, _, checksum = text.partition(b"\n")
        if checksum == b"%08x\n" % zlib.crc32(line):
            text = line  # its checksum is of the names as well
        return _BY_CHANCE.sub(lambda m: chance.get(m[0], m[0]), text)

    digest = blake2b(digest_size=16)
    for name, content in sorted((known(name), known(content)) for name, content in found):
        digest.update(b"%d %s %d " % (len(name), name, len(content)) + content)
    return digest.digest()


def written_by_nodes(layout: Layout) -> list[Path]:
    """The files and folders at the top of a run's that its nodes go on from."""
    others = layout.accounts, layout.kept
    return [
        path
        for path in layout.folder.iterdir()
        if path not in others and (path.is_dir() or path.suffix not in _NOT_READ)
    ]


def _files(layout: Layout) -> list[Path]:
    tops = written_by_nodes(layout)
    return [path for top in tops for path in (top.rglob("*") if top.is_dir() else [top])]
