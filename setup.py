"""The package list: each room, and every folder in it that has an ``__init__.py``."""

from setuptools import find_packages, setup

ROOMS = ("engine", "harness", "lineage", "reports", "scenarios")

setup(
    packages=[
        package
        for room in ROOMS
        for package in (
            f"bettong.{room}",
            *(f"bettong.{room}.{inner}" for inner in find_packages(room)),
        )
    ]
)
