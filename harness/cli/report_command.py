"""``bettong report``: rebuild reports from stored results, and join shards into one verdict."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from bettong.harness.cli.output import exit_code
from bettong.harness.cli.printing import say
from bettong.harness.suites.suite import counted
from bettong.lineage.errors import UsageError
from bettong.lineage.export import to_dot, to_openlineage
from bettong.lineage.results import REPORTS, Result, begin_answer
from bettong.lineage.seals import seal_of
from bettong.lineage.trace import TraceEvent, read_trace
from bettong.reports import announce, join, write_all_reports, write_reports
from bettong.reports.graphs import trace_lineage
from bettong.reports.otlp import otlp_trace
from bettong.reports.words import VERDICT_SIGN, level_line


@click.command("report", short_help="Rebuild the reports of results; join those of shards.")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where to write; default: one DIR's own."
)
@click.option("--json", "as_json", is_flag=True, help="Print the joined results and nothing else.")
@click.option("--otlp", is_flag=True, help="Also write each trace as OpenTelemetry spans.")
@click.option("--openlineage", is_flag=True, help="Also write each trace as OpenLineage events.")
@click.option("--dot", is_flag=True, help="Also write the lineage of each trace for Graphviz.")
@click.pass_context
def command(
    ctx: click.Context,
    directories: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    otlp: bool,
    openlineage: bool,
    dot: bool,
) -> None:
    """Rebuild report.html, report.md and junit.xml of the results in each DIR.

    DIR holds a result.json, or directories that do. Shards of one question are joined into one
    verdict, which is unknown while one of them is missing.
    """
    files = [file for name in directories for file in result_files(Path(name))]
    if out is None:
        if len(directories) > 1:
            raise UsageError("several directories: say with --out where the joined report goes")
        out = Path(directories[0]) if Path(directories[0]).is_dir() else files[0].parent
    begin_answer(out, REPORTS)
    out.mkdir(parents=True, exist_ok=True)
    results = [moved(Result.read(file), file.parent, out, n) for n, file in enumerate(files, 1)]
    joined = join(results)
    if len(joined) == 1:
        joined[0].write(out)
        paths = write_reports(joined[0], out)
    else:
        paths = write_all_reports([(result, out) for result in joined], out)
    wanted = {".otlp.json": otlp, ".openlineage.jsonl": openlineage, ".dot": dot}
    formats = [suffix for suffix, asked in wanted.items() if asked]
    paths += [path for result in joined for path in write_traces(result, out, formats)]
    if as_json:
        values = [result.to_dict() for result in joined]
        click.echo(json.dumps(values[0] if len(values) == 1 else values, indent=1))
    else:
        for result in joined:
            sign = VERDICT_SIGN[result.verdict]
            say(f"{sign} {result.scenario}: {result.verdict}, {level_line(result)}")
            if result.verdict != "valid":
                say(f"  {result.reason}")
        for line in announce(joined):
            click.echo(line)
        say(f"reports: {', '.join(map(str, paths))}")
    ctx.exit(exit_code(joined, counted))


def result_files(path: Path) -> list[Path]:
    """The result of a directory (or a file), or those of the directories in it."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"{path}: no such directory; give one that holds a result.json")
    if (path / "result.json").is_file():
        return [path / "result.json"]
    found = sorted(path.glob("**/result.json"))
    if not found:
        raise UsageError(
            f"{path}: no result.json in it or below; make one with `bettong run --out`"
        )
    return found


def moved(result: Result, source: Path, out: Path, number: int) -> Result:
    """The result as seen from another directory: its traces are named from there, and copied
    there when they lie elsewhere."""
    if source.resolve() == out.resolve():
        return result

    def trace(name: str | None) -> str | None:
        if not name:
            return None
        file = (source / name).resolve()
        if not file.is_relative_to(source.resolve()) or not file.is_file():
            return name
        if file.is_relative_to(out.resolve()):
            return str(file.relative_to(out.resolve()))
        copy = out / f"from-{number}" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(seal_of(file), seal_of(copy))
        return str(copy.relative_to(out))

    details = dict(result.details)
    if details.get("good_trace"):
        details["good_trace"] = trace(str(details["good_trace"]))
    examples = tuple(replace(c, trace=trace(c.trace)) for c in result.counterexamples)
    return replace(result, counterexamples=examples, details=details)


def write_traces(result: Result, out: Path, formats: Sequence[str]) -> list[Path]:
    """Write each trace of the result in these formats beside it; returns the paths."""
    names = [c.trace for c in result.counterexamples] + [result.details.get("good_trace")]
    faults = {c.trace: frozenset(c.faults) for c in result.counterexamples}
    start = datetime.fromtimestamp(0, UTC)
    with contextlib.suppress(ValueError):
        start = datetime.fromisoformat(result.started_at)
    paths = []
    for name in dict.fromkeys(n for n in names if n):
        file = out / str(name)
        if not (file.is_file() and file.resolve().is_relative_to(out.resolve())):
            continue
        events, run = list(read_trace(file)), f"{result.scenario}/{name}"
        for suffix in formats:
            paths.append(file.with_suffix(suffix))
            text = _exported(suffix, events, result.scenario, run, start, faults.get(name))
            paths[-1].write_text(text, encoding="utf-8")
    return paths


def _exported(
    suffix: str,
    events: Sequence[TraceEvent],
    job: str,
    run: str,
    start: datetime,
    faults: frozenset[str] | None,
) -> str:
    if suffix == ".otlp.json":
        return json.dumps(otlp_trace(events, run, int(start.timestamp() * 1e9))) + "\n"
    lineage = trace_lineage(events)
    if suffix == ".dot":
        return to_dot(lineage)
    reported = to_openlineage(lineage, job, run, start.isoformat(), faults or frozenset())
    return "".join(json.dumps(event) + "\n" for event in reported)
