"""The score as Markdown for the docs, and as a page with a picture and the survivors as diffs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader

from bettong.scenarios.benchmarks.mutants.overlay import source_of
from bettong.scenarios.benchmarks.mutants.score import Score
from bettong.scenarios.benchmarks.mutants.searching import Judged

HEAD = (
    "module",
    "mutants",
    "never run",
    "drawn",
    "fail without a fault",
    "killed",
    "survived",
    "aborted",
    "score",
    "runs to kill",
    "seconds to kill",
)


def row(score: Score) -> tuple[str, ...]:
    """The cells below :data:`HEAD`."""
    figures = (
        score.mutants,
        score.never_run,
        len(score.judged),
        len(score.of("fails without a fault")),
        score.killed,
        len(score.of("survived")),
        len(score.of("aborted")),
    )
    ratio = "" if score.ratio is None else f"{score.ratio:.0%}"
    means = ("" if n is None else f"{n:g}" for n in (score.runs_to_kill, score.seconds_to_kill))
    return (score.module, *(str(n) for n in figures), ratio, *means)


def markdown(modules: Sequence[Score], whole: Score) -> str:
    """The table, then those that a search did not find, by name."""
    lines = [_cells(HEAD), _cells(("---", *("---:" for _ in HEAD[1:])))]
    lines += [_cells(row(score)) for score in (*modules, whole)]
    missed = unfound(whole)
    if missed:
        lines += ["", *(f"- `{one.mutant.id}`: {end(one)}" for one in missed)]
    return "\n".join(lines) + "\n"


def unfound(score: Score) -> list[Judged]:
    """Those that survived or were aborted."""
    return [*score.of("survived"), *score.of("aborted")]


def end(one: Judged) -> str:
    """How the search of a mutant that was not found came to its end."""
    finding = one.finding
    whole = "every search came to its end" if finding.complete else finding.note
    return f"{finding.status} after {finding.runs} runs, {finding.seconds:.0f} s: {whole}"


def write(file: Path, modules: Sequence[Score], whole: Score) -> None:
    """Write the page."""
    template = Environment(loader=PackageLoader(__package__, "."), autoescape=True)
    drawn = [score for score in modules if score.counted]
    page = template.get_template("page.html").render(
        head=HEAD,
        rows=[row(score) for score in (*modules, whole)],
        whole=whole,
        drawn=drawn,
        most=max((score.counted for score in drawn), default=1),
        unfound=[
            (one, end(one), one.mutant.diff(source_of(one.mutant.path))) for one in unfound(whole)
        ],
    )
    file.write_text(page, "utf-8")


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
