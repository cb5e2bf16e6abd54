"""Whether a query's plan has the clock decide which rows there are, rather than what one of their
columns is."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CLOCK = re.compile(
    r"\b(?:now|current_timestamp|current_date|current_time|localtimestamp|current_batch_timestamp)"
    r"\("
)
_ATTRIBUTE = re.compile(r"#(\d+)")
_ALIAS = re.compile(r" AS [^#]*#(\d+)L?(?:-T\d+ms)?$")
_NODE = re.compile(r"^[\s:|+~*-]*(\w+)\s?(.*)$")
_NOT_NULL = re.compile(r"isnotnull\([^()]*\)")
_DECIDING = {
    "Filter": "filter",
    "Join": "join",
    "EventTimeWatermark": "watermark",
    "Deduplicate": "deduplication",
    "DeduplicateWithinWatermark": "deduplication",
}


def by_the_clock(plan: str) -> list[str]:
    """What the present time decides in a plan, as Spark explains it: ``filter``, ``watermark``, …

    A column that has the time, or is made of it, decides nothing as long as it is only put out.
    """
    analyzed = plan.partition("== Analyzed Logical Plan ==")[2].partition("\n\n")[0]
    of_clock: set[str] = set()
    found = []
    for line in reversed(analyzed.splitlines()):  # what a node reads stands below it
        node = _NODE.match(line)
        if node is None:
            continue
        name, text = node[1], node[2]
        if name in ("Project", "Aggregate"):
            lists = list(_lists(text))
            if name == "Aggregate" and lists and _has(" ".join(lists[0]), of_clock):
                found.append("grouping")
            for expression in lists[-1] if lists else ():
                alias = _ALIAS.search(expression)
                if alias is not None and _has(expression[: alias.start()], of_clock):
                    of_clock.add(alias[1])
        elif name in _DECIDING and _has(_NOT_NULL.sub("", text), of_clock):
            found.append(_DECIDING[name])
    return sorted(set(found))


def _has(text: str, of_clock: set[str]) -> bool:
    return bool(_CLOCK.search(text)) or not of_clock.isdisjoint(_ATTRIBUTE.findall(text))


def _lists(text: str) -> Iterator[list[str]]:
    """The expressions of each list in brackets that a node begins with."""
    depth, part, parts = 0, "", []
    for character in text:
        if (depth == 1 and character == ",") or (depth == 1 and character == "]"):
            parts.append(part.strip())
            part = ""
        elif depth:
            part += character
        depth += (character in "[(") - (character in "])")
        if depth == 0 and parts:
            yield parts
            parts = []
