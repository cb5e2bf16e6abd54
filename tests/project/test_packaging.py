"""What is in the checkout is what is packaged."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("engine", "harness", "lineage", "reports", "scenarios")


def test_every_folder_with_modules_is_a_package() -> None:
    without = [
        str(folder.relative_to(ROOT))
        for room in ROOMS
        for folder in {file.parent for file in (ROOT / room).rglob("*.py")}
        if not (folder / "__init__.py").exists() and folder.name != "site"
    ]
    assert not without


def test_every_folder_is_packaged_without_being_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import setuptools

    asked: dict[str, list[str]] = {}
    monkeypatch.setattr(setuptools, "setup", lambda **given: asked.update(given))
    monkeypatch.chdir(ROOT)
    exec(compile((ROOT / "setup.py").read_text("utf-8"), "setup.py", "exec"), {})
    found = {
        ".".join(("bettong", *init.parent.relative_to(ROOT).parts))
        for room in ROOMS
        for init in (ROOT / room).rglob("__init__.py")
    }
    assert set(asked["packages"]) == found


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_that_it_is_typed(room: str) -> None:
    assert (ROOT / room / "py.typed").exists()
