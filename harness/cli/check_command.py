"""``bettong check``: judge two stored histories, without Spark unless it is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from bettong.harness.checkers.levels import Judgement, Order, undecided
from bettong.harness.cli.output import Output
from bettong.harness.events import Finished, Handler, Started
from bettong.harness.histories import StoredCheck, StoredHistory
from bettong.harness.histories.columns import (
    Columns,
    chosen_columns,
    names_in,
    not_compared,
    of_folders,
)
from bettong.lineage.errors import UsageError
from bettong.lineage.results import GUARANTEES, Guarantee, Result, begin_answer


@click.command("check", short_help="Judge two stored histories: what should be there, what is.")
@click.argument("expected", type=click.Path(path_type=Path))
@click.argument("observed", type=click.Path(path_type=Path))
@click.option("--id", "ids", metavar="COLUMN,...", default="id", show_default=True,
              help="Column of the message id, or several with commas.")  # fmt: skip
@click.option(
    "--key", metavar="COLUMN", help="Column of the key [default: key, where there is one]."
)
@click.option(
    "--order",
    metavar="COLUMN",
    help="Column of EXPECTED that gives the order [default: as it is stored].",
)
@click.option(
    "--arrival",
    metavar="COLUMN",
    help="Column of OBSERVED that gives the order seen [default: as stored].",
)
@click.option(
    "--ordering",
    type=click.Choice(get_args(Order)),
    help="The order that has to hold [default: per-key with a key, total with --order, else none].",
)
@click.option(
    "--compare",
    metavar="COLUMN,...",
    help="Contents that must be equal, with commas [default: all in both].",
)
@click.option(
    "--ignore", metavar="COLUMN,...", default="", help="Columns not to be compared, with commas."
)
@click.option(
    "--batch",
    metavar="COLUMN",
    help="Column of OBSERVED with the batch of a record, to be reported.",
)
@click.option(
    "--expect", type=click.Choice(GUARANTEES), default="effectively-once", show_default=True
)
@click.option("--witnesses", type=click.IntRange(1), metavar="N", default=1000, show_default=True,
              help="Anomalies of each kind that are reported; all are counted.")  # fmt: skip
@click.option("--memory", type=click.IntRange(1), metavar="MIB", default=1024, show_default=True,
              help="MiB that rows may take before they go to files.")  # fmt: skip
@click.option("--temp", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Directory for these files [default: the system's].")  # fmt: skip
@click.option(
    "--spark", "master", metavar="URL", help="Check as a job on this Spark master, e.g. local[8]."
)
@click.option("--out", type=click.Path(path_type=Path), help="Write result.json and reports here.")
@click.option("--json", "as_json", is_flag=True, help="Print the result and nothing else.")
@click.option("--quiet", is_flag=True, help="No progress.")
@click.pass_context
def command(
    ctx: click.Context,
    expected: Path,
    observed: Path,
    ids: str,
    key: str | None,
    order: str | None,
    arrival: str | None,
    ordering: Order | None,
    compare: str | None,
    ignore: str,
    batch: str | None,
    expect: Guarantee,
    witnesses: int,
    memory: int,
    temp: Path | None,
    master: str | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Judge what was OBSERVED against what was EXPECTED: lost, repeated, reordered, unexpected or
    changed records, each with its witnesses.

    Both are files, or directories of files: .parquet, .arrow, .feather, .ipc, .arrows, .jsonl,
    .ndjson, .json (an object a line). EXPECTED holds each message once.
    """
    if out is not None:
        begin_answer(out)
    if not names_in(ids):
        raise UsageError("--id: name at least one column")
    if compare is not None and not names_in(compare):
        raise UsageError(
            f"--compare: name at least one column; --compare {names_in(ids)[0]} compares ids alone"
        )
    left, right = StoredHistory.at(expected, "expected"), StoredHistory.at(observed, "observed")

    def prepared() -> StoredCheck:
        columns = chosen_columns(
            left, right, names_in(ids), key, order, arrival, compare, names_in(ignore), batch
        )
        held = ordering or ("per-key" if columns.key else "total" if order else "none")
        if held == "per-key" and columns.key is None:
            raise UsageError("--ordering per-key: say with --key which column the key is in")
        return StoredCheck(left, right, columns, held, expect, witnesses, memory << 20, temp)

    check = prepared()
    with Output(as_json=as_json, quiet=quiet) as output:
        started, begin = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        output(Started(f"{expected.name} against {observed.name}", "check"))
        if master is None:
            check, judgement = _on_this_machine(check, prepared, output)
        else:
            judgement = _on_spark(check, master)
        if judgement.verdict == "valid" and not check.rows["observed"]:
            judgement = undecided(f"nothing was seen, which proves nothing: {judgement.reason}")
        result = _result(check, judgement, expected, observed, started, time.monotonic() - begin)
        if compare is None:
            absent = not_compared(left, right, check.columns, names_in(ignore))
            result = _with_absent(result, absent, observed)
            if folders := of_folders(left, names_in(ignore)):
                what = f"{', '.join(folders)} in the names of folders was not compared"
                result = replace(result, reason=f"{result.reason}; {what}")
        result = _with_what_counted(result, check.columns)
        if out is not None:
            result.write(out)
        output(Finished(result, out))
    ctx.exit(output.exit_code())


def _with_what_counted(result: Result, columns: Columns) -> Result:
    if result.verdict == "unknown" or {*columns.compare} - {*columns.id, columns.key}:
        return result
    what = "ids alone" if columns.key is None else "ids and keys alone"
    return replace(result, reason=f"{result.reason}; {what} were compared, no other contents")


def _with_absent(result: Result, absent: tuple[str, ...], observed: Path) -> Result:
    if not absent:
        return result
    what = f"{observed.name} has no column {', '.join(absent)}: it was not compared"
    if "key" in absent:
        what += ", and no order per key was checked" * (result.ordering != "per-key")
    return replace(result, reason=f"{result.reason}; {what}")


def _on_this_machine(
    check: StoredCheck, prepared: Callable[[], StoredCheck], on_event: Handler
) -> tuple[StoredCheck, Judgement]:
    """The verdict, and the check that gave it: where only later lines had some of the columns, a
    second one that compares these as well."""
    check.on_event = on_event
    judgement = check.judge()
    again = prepared()
    if judgement.verdict == "unknown" or again.columns == check.columns:
        return check, judgement
    return _on_this_machine(again, prepared, on_event)


def _on_spark(check: StoredCheck, master: str) -> Judgement:
    if check.columns.batch is not None:
        raise UsageError("--batch: a check as a Spark job does not report batches; leave it out")
    from bettong.harness.backends.spark_master import check_url
    from bettong.harness.histories.on_spark import judge_on_spark
    from bettong.harness.spark.jar import java

    check_url(master, "--spark")
    java()  # before Spark says by a page of its own that there is none
    return judge_on_spark(check, master)


def _as_stored(check: StoredCheck) -> Iterator[str]:
    """What the order of the records rests on, where no column gives it."""
    columns = check.columns
    for history, column in ((check.expected, columns.order), (check.observed, columns.arrival)):
        if check.ordering != "none" and column is None and (said := history.by_name()):
            yield said


def _result(
    check: StoredCheck,
    judgement: Judgement,
    expected: Path,
    observed: Path,
    started: str,
    seconds: float,
) -> Result:
    columns = check.columns
    order = {
        "per-key": f"order per {columns.key}",
        "total": "the order of all records",
        "none": "no order",
    }[check.ordering]
    compared = ", ".join(columns.compare) if columns.compare else "nothing"
    return Result(
        scenario=f"{expected.name} against {observed.name}",
        kind="check",
        verdict=judgement.verdict,
        guarantee=judgement.guarantee,
        ordering=judgement.ordering,
        anomalies=judgement.anomalies,
        expected=check.expect,
        reason=judgement.reason,
        assumptions=(
            f"ids in {', '.join(columns.id)}; {order} was checked",
            f"contents compared: {compared}",
            "records are distinguished by 64-bit hashes of their ids",
            *_as_stored(check),
        ),
        started_at=started,
        duration_s=seconds,
        details={
            "anomaly_counts": dict(judgement.counts),
            "records": dict(check.rows),
            "malformed": list(judgement.malformed),
        },
    )
