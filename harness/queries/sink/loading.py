"""TARGET of ``bettong check-sink``: ``file.py:Object``, ``module:Object`` or ``format:NAME``."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

from bettong.engine.address import Address
from bettong.harness.catalog import current_name, entries
from bettong.harness.queries.sink.contract import BATCHES, ROWS, Sink, format_sink
from bettong.lineage.errors import UsageError
from bettong.lineage.nearest import one_of
from bettong.lineage.user_code import UserCodeError, guarded, is_installed

_FILE_FORMATS = ("parquet", "json", "orc", "csv", "delta")
_INSTEAD = {
    "write": "write(self, rows, env) starts the query and returns it; of a foreachBatch function a "
    "sink is made by bettong.harness.foreach_batch_sink(function, read=…)",
    "read": "read(self, env) returns the rows that a reader of the target sees",
}
_MOST_BATCHES, _MOST_ROWS = 50, 5000
_ENDPOINT = re.compile(r"[\w.-]+")
_FILE_MODULE = "bettong_target_"
_NOT_THE_USERS = ("bettong", "pyspark", "py4j", "__main__")
_folders: list[str] = []
"""In which files stand that were loaded, the last one first."""
_stood: set[str] = set()
"""The modules that were there before the first one of a user's was to be loaded afresh."""


def load_target(target: str, options: Mapping[str, str], *, fresh: bool = False) -> Sink:
    """The sink that a target names.

    Args:
        target: see the module.
        options: for ``format:NAME``.
        fresh: load the module again, so that nothing that it kept in memory is known any more.

    Raises UsageError, saying which target and what to do, when there is no such sink.
    """
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise UsageError(
            f"{target!r} is no target: write file.py:Object, module:Object or format:NAME"
        )
    where = current_name(where)
    if where == "format":
        one_of(name, _FILE_FORMATS, "format")
        return format_sink(name, **options)
    if options:
        raise UsageError(f"--option is for format:NAME; {target} takes none")
    sink: Sink = load_object(where, name, fresh)
    for method in _INSTEAD:
        own = getattr(sink, method, None)
        if not callable(own) or getattr(own, "__func__", None) is getattr(Sink, method):
            raise UsageError(f"{target}: has no method {method}: {_INSTEAD[method]}")
    expect_attributes(_named(sink, name), target)
    _expect_input(sink, target)
    return sink


def load_object(where: str, name: str, fresh: bool) -> Any:
    """What a file or module calls by a name; a class is called to make one. Raises UsageError."""
    module = module_of(where, fresh)
    _ship(module)
    if not hasattr(module, name):
        public = [n for n in vars(module) if not n.startswith("_")]
        one_of(name, public, f"{where}: object")
    found = getattr(module, name)
    with guarded(f"{where}:{name}"):
        return found() if isinstance(found, type) else found


def module_of(where: str, fresh: bool = False) -> ModuleType:
    """The module of a ``file.py``, which finds what stands beside it, or of a module's name, which
    may stand in the current folder. Raises UsageError."""
    return _file(Path(where), fresh) if where.endswith(".py") else _module(where, fresh)


def expect_attributes(found: Any, target: str) -> None:
    """Raises UsageError for an attribute of a sink or a job that is of the wrong kind."""
    for name in ("endpoints", "servers", "spark_config"):
        value = getattr(found, name)
        if not isinstance(value, Mapping):
            raise UsageError(f"{target}: {name} is {value!r}: write {name} = {{NAME: …}}")
    if not isinstance(getattr(found, "name", ""), str):
        raise UsageError(f"{target}: name is {found.name!r}: write name = '…'")
    for name in (*found.endpoints, *found.servers):
        expect_endpoint(name, target)
    for name, address in found.endpoints.items():
        try:
            Address.parse(str(address))
        except UsageError as e:
            raise UsageError(f"{target}: the endpoint {name}: {e}") from e
    for name, server in found.servers.items():
        if not callable(server) or (isinstance(server, type) and not hasattr(server, "__enter__")):
            raise UsageError(
                f"{target}: the server {name} is {server!r}: write a class of "
                "bettong.harness.servers, such as PostgresServer"
            )


def _expect_input(sink: Sink, target: str) -> None:
    """Raises UsageError for so many batches or rows that a check shows less, or has no end."""
    limits = ("batches", BATCHES, _MOST_BATCHES), ("batch_rows", ROWS, _MOST_ROWS)
    for name, least, most in limits:
        value = getattr(sink, name)
        if type(value) is not int or not least <= value <= most:
            raise UsageError(
                f"{target}: {name} is {value!r}: give a whole number from {least} to {most}"
            )


def expect_endpoint(name: object, target: str) -> None:
    """Raises UsageError for a name of an endpoint that faults could not be called by."""
    if not (isinstance(name, str) and _ENDPOINT.fullmatch(name)):
        raise UsageError(
            f"{target}: the endpoint {name!r}: have its name of letters, digits, _, - and ."
        )


def file_of(target: str) -> Path | None:
    """The file that a target stands in; None where there is none, as for ``format:NAME``. It is
    loaded, so that what it imports is known. Raises UsageError."""
    where, _, name = target.partition(":")
    if where == "script":
        return Path(name).resolve()
    where = current_name(target.rpartition(":")[0])
    if where == "format":
        return None
    file = getattr(module_of(where), "__file__", None)
    return Path(file).resolve() if file else None


def _named(sink: Sink, name: str) -> Sink:
    for attribute, value in (
        ("endpoints", {}),
        ("servers", {}),
        ("spark_config", {}),
        ("ordered", False),
        ("batches", BATCHES),
        ("batch_rows", ROWS),
        ("setup", lambda env: None),
        ("teardown", lambda env: None),
    ):
        if not hasattr(sink, attribute):
            setattr(sink, attribute, value)
    if not getattr(sink, "name", ""):
        sink.name = name
    return sink


def _file(path: Path, fresh: bool) -> ModuleType:
    path = path.resolve()
    name = _file_module(path)
    if not fresh and name in sys.modules:
        return sys.modules[name]
    if fresh:
        _forget_users(path.parent)
    _forget_shadows(path.parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"{path}: there is no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _let_import(str(path.parent))
    try:
        with guarded(str(path)):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _file_module(path: Path) -> str:
    """The name of the module of a file: files called alike are as many modules."""
    folder = blake2b(bytes(path.parent), digest_size=4).hexdigest()
    return f"{_FILE_MODULE}{folder}_{path.stem}"


def as_written(name: str) -> str:
    """The name of what is defined in a file's module, as its author knows it."""
    return re.sub(rf"^{_FILE_MODULE}[0-9a-f]{{8}}_", "", name)


def _let_import(folder: str) -> None:
    """Have what stands beside a file found, before what stands beside others."""
    if folder in sys.path and folder not in _folders:
        return
    others = [other for other in _folders if other != folder]
    sys.path[:] = [*(entry for entry in sys.path if entry not in _folders), folder, *others]
    _folders[:] = [folder, *others]


def _forget_shadows(folder: Path) -> None:
    """Modules that stand beside other files are forgotten where this folder has some called alike,
    which would be taken for them."""
    for other in map(Path, _folders):
        for name in _modules_in(other) if other != folder else ():
            top = name.partition(".")[0]
            if (folder / f"{top}.py").is_file() or (folder / top).is_dir():
                del sys.modules[name]


def _module(name: str, fresh: bool) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    if fresh:
        _forget_users(Path.cwd())
        sys.modules.pop(name, None)
    try:
        with guarded(name):
            return importlib.import_module(name)
    except UserCodeError as e:
        whole = {entry.name.rpartition(":")[0] for entry in entries()}
        for module in sorted(m for m in whole if m.endswith(f".{name}")):
            raise UsageError(f"{e}; did you mean {module}?") from e
        raise


def _forget_users(folder: Path) -> None:
    """Modules of the user's own are loaded again as well: what they keep in memory dies with a
    driver too. They stand beside the target, or below, or have come with what it imports."""
    if not _stood:
        _stood.update(sys.modules)
    for name, path in _users_modules():
        if name not in _stood or path.is_relative_to(folder):
            del sys.modules[name]


def _modules_in(folder: Path) -> list[str]:
    """The modules of the user's own that stand in a folder, or below."""
    return [name for name, path in _users_modules() if path.is_relative_to(folder)]


def _users_modules() -> list[tuple[str, Path]]:
    """The modules of the user's own, each with its file: no package that is installed has them."""
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or name.partition(".")[0] in _NOT_THE_USERS:
            continue
        if not (is_installed(file) or Path(file).is_relative_to(sys.prefix)):
            found.append((name, Path(file)))
    return found


def _ship(module: ModuleType) -> None:
    """Have its classes and functions sent to Python workers by value: nothing to package."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
