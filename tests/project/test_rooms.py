"""Imports between rooms go one way, inside the harness too, and no modules know each other in a
circle; what a string names counts as what an import names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[2]

FRONT = {"bettong.harness", "bettong.engine", "bettong.lineage", "bettong.reports"}
FORMER_NAMES = {"harness/catalog.py"}  # of what scenarios hold, as scripts may have them
ALLOWED = {
    "lineage": {"bettong.lineage"},
    "engine": {
        "bettong.engine",
        "bettong.lineage.errors",
        "bettong.lineage.user_code",
        "bettong.lineage.trace",
    },
    "reports": {
        "bettong.reports",
        "bettong.lineage.errors",
        "bettong.lineage.graph",
        "bettong.lineage.results",
        "bettong.lineage.trace",
        "bettong.lineage.visible",
    },
    "harness": {"bettong.harness", "bettong.engine", "bettong.lineage"},
    "harness/cli/": FRONT,
    "harness/pytest_plugin/": FRONT,
    "harness/testing.py": FRONT,
}


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module in ("bettong", "bettong.lineage"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            else:
                yield node.module


_NAMED = re.compile(r"(bettong\.(?:lineage|engine|reports|harness|scenarios)(?:\.\w+)+)(?::\w+)?")


def _named_in_strings(file: Path) -> Iterator[str]:
    """Modules that a string is the name of, as ``bettong.MODULE`` or ``bettong.MODULE:NAME``."""
    if file.relative_to(ROOT).as_posix() in FORMER_NAMES:
        return
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = _NAMED.fullmatch(node.value)
            if found:
                yield found[1]


@cache
def _modules() -> dict[str, Path]:
    found = {}
    for top in ("lineage", "engine", "reports", "harness", "scenarios"):
        for file in sorted((ROOT / top).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            found[".".join(("bettong", *parts)).removesuffix(".__init__")] = file
    return found


@cache
def _graph() -> nx.DiGraph:
    """Who knows whom, modules for type checkers and in strings included."""
    modules, graph = _modules(), nx.DiGraph()
    for name, file in modules.items():
        graph.add_node(name)
        for node in ast.walk(_tree(file)):
            known: list[str] = []
            if isinstance(node, ast.Import):
                known = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                known = [one if one in modules else node.module for one in whole]
            graph.add_edges_from((name, other) for other in known if other in modules)
        named = (n for n in _named_in_strings(file) if n in modules and _is_module(modules[n]))
        graph.add_edges_from((name, other) for other in named)
    graph.remove_edges_from(nx.selfloop_edges(graph))
    return graph


def _is_module(file: Path) -> bool:
    """Whether it is no package: those are named as the place of data, too."""
    return file.name != "__init__.py"


def _harness_rooms() -> nx.DiGraph:
    rooms = nx.DiGraph()
    rooms.add_nodes_from(name.split(".")[2] for name in _modules() if _in_harness(name))
    for a, b in _graph().edges:
        if _in_harness(a) and _in_harness(b) and a.split(".")[2] != b.split(".")[2]:
            rooms.add_edge(a.split(".")[2], b.split(".")[2])
    return rooms


def _in_harness(module: str) -> bool:
    return module.startswith("bettong.harness.")


def _room(file: Path) -> str:
    path = file.relative_to(ROOT).as_posix()
    return max((room for room in ALLOWED if path.startswith(room)), key=len)


@pytest.mark.parametrize("top", ["lineage", "engine", "reports", "harness"])
def test_a_room_imports_only_what_it_may(top: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} knows {name}"
        for file in sorted((ROOT / top).rglob("*.py"))
        for name in (*_imports(file), *_named_in_strings(file))
        if name.startswith("bettong")
        and not any(name == ok or name.startswith(ok + ".") for ok in ALLOWED[_room(file)])
    ]
    assert not wrong


def test_nothing_imports_a_room_by_its_bare_name() -> None:
    rooms = {"engine", "harness", "lineage", "reports", "scenarios"}
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for room in sorted(rooms)
        for file in sorted((ROOT / room).rglob("*.py"))
        for name in _imports(file)
        if name.split(".")[0] in rooms
    ]
    assert not wrong


def test_every_module_that_a_string_names_is_there() -> None:
    wrong = [
        f"{file.relative_to(ROOT)} names {name}"
        for file in _modules().values()
        for name in _named_in_strings(file)
        if name not in _modules()
    ]
    assert not wrong


def test_no_modules_know_each_other_in_a_circle() -> None:
    circles = [sorted(c) for c in nx.strongly_connected_components(_graph()) if len(c) > 1]
    assert not circles


def test_the_rooms_of_the_harness_lie_on_few_floors() -> None:
    rooms = _harness_rooms()
    circles = [sorted(c) for c in nx.strongly_connected_components(rooms) if len(c) > 1]
    assert not circles
    assert len(rooms) <= 25
    assert nx.dag_longest_path_length(rooms) + 1 <= 10
