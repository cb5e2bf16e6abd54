"""Classes of the JVM, which a driver asks for by their names with every batch.

For each name py4j asks the JVM what it stands for, and the JVM looks through some three hundred
jars on its way to the answer: a millisecond for each, and a batch asks for eight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass, JVMView

if TYPE_CHECKING:
    from pyspark import SparkContext


def remember_classes(context: SparkContext) -> None:
    """Let a context know again the classes that it has asked for."""
    context._jvm.__class__ = _RememberingView


class _RememberingView(JVMView):  # type: ignore[misc]  # it has no types
    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if isinstance(found, JavaClass):  # a name for a package may stand for a class later
            self.__dict__[name] = found
        return found
