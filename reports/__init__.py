"""Reports, made from typed results alone: HTML, Markdown, JUnit XML, GitHub annotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from bettong.lineage.results import Result
from bettong.reports.github import announce, github_annotations
from bettong.reports.index import index_page, overall
from bettong.reports.junit import junit_report
from bettong.reports.markdown import markdown_report
from bettong.reports.page import html_report
from bettong.reports.shards import join

__all__ = [
    "announce",
    "github_annotations",
    "html_report",
    "join",
    "junit_report",
    "markdown_report",
    "overall",
    "write_all_reports",
    "write_index",
    "write_reports",
]


def write_reports(result: Result, directory: Path) -> list[Path]:
    """Write report.html, report.md and junit.xml into the directory; returns their paths.

    Args:
        result: what is reported.
        directory: where its result.json and traces are; traces that are not there are left out.
    """
    directory.mkdir(parents=True, exist_ok=True)
    contents = {
        "report.html": html_report(result, directory),
        "report.md": markdown_report(result),
        "junit.xml": junit_report([result]),
    }
    return _write(directory, contents)


def write_all_reports(results: Sequence[tuple[Result, Path]], directory: Path) -> list[Path]:
    """Reports of several results: an index, one Markdown and one JUnit file above them all.

    Args:
        results: each with the directory that its traces are in; its own page is written into a
            subdirectory of its name.
        directory: where to write.
    """
    directory.mkdir(parents=True, exist_ok=True)
    links, names = [], set[str]()
    for result, source in results:
        name = re.sub(r"[^\w.-]+", "_", result.scenario).strip(".") or "result"
        while name in names:
            name += "_"
        names.add(name)
        own = directory / name
        own.mkdir(exist_ok=True)
        _write(own, {"report.html": html_report(result, source)})
        links.append((result, f"{quote(name)}/report.html"))
    return write_index(links, directory)


def write_index(links: Sequence[tuple[Result, str]], directory: Path) -> list[Path]:
    """The page above several reports, with one Markdown and one JUnit file.

    Args:
        links: each result with the link to its report, relative to the directory.
    """
    results = [result for result, _ in links]
    contents = {
        "report.html": index_page(links),
        "report.md": "\n".join(markdown_report(result) for result in results),
        "junit.xml": junit_report(results),
    }
    return _write(directory, contents)


def _write(directory: Path, contents: dict[str, str]) -> list[Path]:
    paths = []
    for name, text in contents.items():
        paths.append(directory / name)
        paths[-1].write_text(text, encoding="utf-8", errors="backslashreplace")
    return paths
