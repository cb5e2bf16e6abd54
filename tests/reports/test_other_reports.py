from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from report_samples import FAULT, bad_trace, broken_sink, good_trace

from bettong.harness.cli import cli
from bettong.lineage.errors import UsageError
from bettong.lineage.results import Anomaly, Counterexample, Coverage, Result, Run
from bettong.reports import (
    announce,
    github_annotations,
    html_report,
    join,
    junit_report,
    markdown_report,
    write_index,
    write_reports,
)
from bettong.reports.graphs import kind_of
from bettong.reports.lineage_cut import lineage_of
from bettong.reports.matrix import fault_matrix
from bettong.reports.otlp import otlp_trace
from bettong.reports.rounds import recorded_lineage, rounds_diagram
from bettong.reports.sample import sample_anomalies
from bettong.reports.spacetime import around
from bettong.reports.steps import faulted_steps, taken_steps


@pytest.mark.parametrize(
    ("fault", "steps"),
    [
        ("crash(driver, before batch=1/commits)", [("batch=1/commits", 1)]),
        ("crash(driver, after batch=1/commits#2, for good)", [("batch=1/commits", 2)]),
        ("omit(driver->receiver, batch=1/sink.commit)", [("batch=1/sink.commit", 1)]),
        ("delay(a->b, batch=1/sink.commit, 200 ms)", [("batch=1/sink.commit", 1)]),
        (
            "cut(w1|w2, from batch=1/offsets until after batch=1/commits#2)",
            [("batch=1/offsets", 1), ("batch=1/commits", 2)],
        ),
        ("O(a,b,1)", []),
    ],
)
def test_steps_that_a_fault_id_names(fault: str, steps: list[tuple[str, int]]) -> None:
    assert faulted_steps(fault) == steps


def test_diagram_shows_the_fault_and_the_replay() -> None:
    diagram = around(bad_trace(), [FAULT], ["lines/12.0"], good_trace())
    (fault,) = diagram.faults
    assert fault.node == "driver"
    hit = next(m for m in diagram.marks if m.row == fault.row)
    assert (hit.label, hit.look, hit.ending) == ("batch=1/commits", "fault", "never")
    assert "batch=1/sink.commit #2" in [m.label for m in diagram.marks]
    assert "node.start/driver" in [m.label for m in diagram.marks if m.look == "only"]
    assert diagram.nodes == ("gateway", "driver", "w1", "w2", "receiver")
    commit = next(a for a in diagram.arrows if a.target == "receiver" and a.source == "driver")
    assert not commit.lost
    assert not around(good_trace(), [FAULT], injected=False).faults


def test_diagram_of_long_traces_is_short() -> None:
    long = [e for _ in range(50) for e in good_trace()]
    diagram = around(long, [FAULT], ["lines/12.0"])
    assert diagram.rows <= 56
    assert len(taken_steps(long)) - diagram.rows >= sum(diagram.gaps.values()) > 100
    assert around([], [FAULT]).rows == 0


def test_lineage_reaches_back_over_requests_and_replies() -> None:
    lineage = lineage_of(good_trace(), bad_trace(), [FAULT], ["lines/12.0"])
    assert lineage is not None
    looks = {b.step: b.look for b in lineage.boxes}
    assert looks["batch=1/commits"] == "fault"
    assert looks["receiver.commit/batch=1"] == "again"
    assert looks["batch=1/source.plan"] == "again"
    assert lineage_of(good_trace(), bad_trace(), [], ["elsewhere/1"]) is None
    died = [e for e in bad_trace() if e.incarnation == 1 and "batch=2" not in e.step]
    cut = lineage_of(good_trace(), died, [], ["lines/22.0"])
    assert cut is not None
    assert "receiver.commit/batch=2" in cut.cut


def test_protocol_pictures() -> None:
    diagram = rounds_diagram(
        {
            "nodes": ["a", "b"],
            "rounds": 3,
            "messages": [
                {"name": "log", "sender": "a", "receiver": "b", "sent": 1, "arrives": None},
                {"name": "ack", "sender": "b", "receiver": "a", "sent": 2, "arrives": 3},
            ],
            "crashes": [{"node": "b", "round": 2}],
        }
    )
    assert [(a.source, a.row, a.end_row, a.lost) for a in diagram.arrows] == [
        ("a", 0, 2, True),
        ("b", 2, 4, False),
    ]
    assert [f.row for f in diagram.faults] == [2]
    nodes = [
        {"id": "x", "kind": "leaf", "label": "a->b@1", "cut": True},
        {"id": "y", "kind": "fact", "label": "post(b)", "cut": True},
    ]
    lineage = recorded_lineage({"nodes": nodes, "edges": [["x", "y"]]})
    assert lineage is not None
    assert [(b.look, b.depth) for b in lineage.boxes] == [("fault", 0), ("cut", 1)]
    assert recorded_lineage({"nodes": nodes, "edges": [["x", "y"], ["y", "x"]]}) is None
    assert recorded_lineage({}) is None


def test_sample_takes_the_same_share_of_each_kind() -> None:
    anomalies = [Anomaly("Loss", (str(i),)) for i in range(1000)]
    anomalies += [Anomaly("Phantom", (str(i),)) for i in range(3)]
    kinds = [a.kind for a in sample_anomalies(anomalies, 10)]
    assert (kinds.count("Loss"), kinds.count("Phantom")) == (7, 3)


def test_junit(tmp_path: Path) -> None:
    result = broken_sink(tmp_path)
    odd = replace(result.runs[1], faults=("crash(a, \x00\ud800 <&>)",))
    root = ET.fromstring(junit_report([replace(result, runs=(*result.runs, odd))]))
    suite = root.find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("26", "3", "1")
    failure = suite.find("testcase[@name='verdict']/failure")
    assert failure is not None and failure.text is not None
    assert "Duplicate lines/10.0 (key word3)" in failure.text
    assert "replay: bettong replay" in failure.text
    valid = replace(result, verdict="valid", guarantee="at-least-once", expected="at-least-once")
    suite = ET.fromstring(junit_report([valid])).find("testsuite")
    assert suite is not None and suite.get("failures") == "0"


def test_markdown_cannot_be_escaped_from(tmp_path: Path) -> None:
    text = markdown_report(broken_sink(tmp_path))
    assert text.startswith("## ✘ `word_count_commits_again`: invalid")
    assert "bettong replay out/counterexample-1.json" in text
    evil = replace(broken_sink(tmp_path), scenario="a`b", reason="<img src=x>[x](y)|")
    assert "`` a`b ``" in markdown_report(evil)
    assert "\\<img src=x\\>\\[x\\](y)\\|" in markdown_report(evil)


def test_github(tmp_path: Path) -> None:
    result = broken_sink(tmp_path)
    (line,) = github_annotations([result])
    assert line.startswith("::error title=word_count_commits_again%3A invalid::crash(driver")
    assert "%0A" in line and "\n" not in line
    assert github_annotations([replace(result, verdict="valid")]) == []
    summary = tmp_path / "summary.md"
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    assert announce([result], env) == [line]
    assert summary.read_text().startswith("## ✘")
    assert announce([result], {}) == []


def shard(index: int, of: int, **changes: object) -> Result:
    base = Result(
        scenario="s", verdict="valid", guarantee="effectively-once", ordering="per-key",
        coverage=Coverage(executions=10, complete=True, goals=3),
        details={"shard": {"index": index, "of": of}},
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def test_joining_shards() -> None:
    (whole,) = join([shard(2, 2), shard(1, 2)])
    assert (whole.verdict, whole.guarantee) == ("valid", "effectively-once")
    assert whole.coverage == Coverage(executions=20, complete=True, goals=3)
    (part,) = join([shard(1, 2)])
    assert part.verdict == "unknown"
    assert "shards 2 of 2 are missing" in part.reason
    assert not part.coverage.complete
    (twice,) = join([shard(1, 2), shard(2, 2), shard(2, 2)])
    assert "came twice" in twice.reason
    broken = shard(2, 2, verdict="invalid", guarantee="at-least-once", reason="1 Duplicate")
    (bad,) = join([shard(1, 2), broken])
    assert (bad.verdict, bad.guarantee, bad.reason) == ("invalid", "at-least-once", "1 Duplicate")
    (none,) = join([shard(1, 2, verdict="invalid", guarantee="at-most-once"), broken])
    assert none.guarantee == "none"
    (seeds,) = join([shard(1, 2), shard(2, 2, seed=7)])
    assert seeds.verdict == "unknown"
    (levels,) = join([shard(1, 2, expected="at-least-once"), shard(2, 2)])
    assert (levels.verdict, "different faults or levels" in levels.reason) == ("unknown", True)
    faults = [{"index": n, "of": 2, "faults": f"random:{n}"} for n in (1, 2)]
    (asked,) = join([shard(n, 2, details={"shard": faults[n - 1]}) for n in (1, 2)])
    assert asked.verdict == "unknown"
    code = [{"index": n, "of": 2, "faults": "each-step", "question": f"{n}"} for n in (1, 2)]
    (other,) = join([shard(n, 2, details={"shard": code[n - 1]}) for n in (1, 2)])
    assert (other.verdict, "different code" in other.reason) == ("unknown", True)
    (tools,) = join([shard(1, 2), shard(2, 2, tool_version="0.0.1")])
    assert tools.verdict == "unknown"
    alone = Result(scenario="alone", verdict="valid")
    assert join([alone, shard(1, 1)])[0] is alone


def run(*args: str | Path) -> tuple[int, str]:
    found = CliRunner().invoke(cli, ["report", *map(str, args)])
    return found.exit_code, found.output


def test_report_command_rebuilds(tmp_path: Path) -> None:
    broken_sink(tmp_path).write(tmp_path)
    code, output = run(tmp_path)
    assert code == 1
    assert "✘ word_count_commits_again: invalid" in output
    assert 'id="ce1-bad"' in (tmp_path / "report.html").read_text()
    code, output = run(tmp_path, "--json")
    assert json.loads(output)["verdict"] == "invalid"


def test_report_command_joins_shards_with_their_traces(tmp_path: Path) -> None:
    for index in (1, 2):
        place = tmp_path / f"ci-{index}"
        place.mkdir()
        found = broken_sink(place)
        details = {**found.details, "shard": {"index": index, "of": 2}}
        replace(found, details=details).write(place)
    code, _ = run(tmp_path / "ci-1", tmp_path / "ci-2", "--out", tmp_path / "all")
    assert code == 1
    page = (tmp_path / "all" / "report.html").read_text()
    assert 'id="ce1-bad"' in page and 'id="ce2-bad"' in page
    assert len(Result.read(tmp_path / "all").runs) == 48
    assert run(tmp_path / "all")[0] == 1


def test_report_command_of_several_scenarios_makes_an_index(tmp_path: Path) -> None:
    Result(scenario="good one", verdict="valid", guarantee="effectively-once").write(tmp_path / "a")
    Result(scenario="../evil", verdict="unknown").write(tmp_path / "b")
    code, _ = run(tmp_path)
    assert code == 3
    assert 'href="good_one/report.html"' in (tmp_path / "report.html").read_text()
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == [
        "_evil",
        "a",
        "b",
        "good_one",
    ]


def test_report_command_says_what_is_wrong(tmp_path: Path) -> None:
    assert run(tmp_path / "nowhere")[0] != 0
    (tmp_path / "result.json").write_text('{"verdict": 3}')
    found = CliRunner().invoke(cli, ["report", str(tmp_path)])
    assert "not a Bettong result" in found.stderr


def test_a_trace_outside_of_the_directory_is_not_read(tmp_path: Path) -> None:
    result = broken_sink(tmp_path)
    example = replace(result.counterexamples[0], trace="../../etc/passwd")
    path = write_reports(replace(result, counterexamples=(example,)), tmp_path)[0]
    assert "is outside of the result" in path.read_text()


def test_traces_as_opentelemetry_spans(tmp_path: Path) -> None:
    reported = otlp_trace(bad_trace(), "run", 1000)
    spans = {
        (s["name"], s["startTimeUnixNano"]): s
        for r in reported["resourceSpans"]
        for s in r["scopeSpans"][0]["spans"]
    }
    services = [r["resource"]["attributes"][0]["value"] for r in reported["resourceSpans"]]
    assert {"stringValue": "bettong.receiver"} in services
    ids = {s["spanId"] for s in spans.values()}
    assert len(ids) == len(spans)
    for span in spans.values():
        assert len(span["traceId"]) == 32 and len(span["spanId"]) == 16
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert span.get("parentSpanId") in {None, *ids}
    died = [
        s
        for (name, _), s in spans.items()
        if name == "batch=1/commits" and s["status"]["code"] == 2
    ]
    assert [s["status"]["message"] for s in died] == ["its process died"]
    assert [e["name"] for e in died[0]["events"]] == [f"fault/{FAULT}"]
    broken_sink(tmp_path).write(tmp_path)
    run(tmp_path, "--otlp")
    assert "resourceSpans" in json.loads((tmp_path / "ce1.otlp.json").read_text())
    assert (tmp_path / "good.otlp.json").is_file()


def sink(name: str, *runs: tuple[tuple[str, ...], str]) -> Result:
    reported = tuple(Run(faults, outcome) for faults, outcome in runs)  # type: ignore[arg-type]
    return Result(scenario=name, kind="sink", verdict="unknown", runs=reported)


def test_matrix_of_sinks_by_kinds_of_fault(tmp_path: Path) -> None:
    crash, reply = "crash(driver, before batch=0/commits)", "omit-reply(driver->db, COMMIT)"
    first = sink("first", ((), "good"), ((crash,), "good"), ((crash,), "violation"))
    second = sink("<b>", ((), "good"), ((reply,), "good"), ((crash, reply), "not-injected"))
    assert fault_matrix([first, second]) == {
        "rows": ["first", "<b>"],
        "columns": ["claimed", "found", "no fault", "crash", "omit-reply", "several faults"],
        "cells": [
            ["nothing", "not known", "withstood (1)", "broken (1 of 2)", "not tried", "not tried"],
            [
                *("nothing", "not known", "withstood (1)", "not tried", "withstood (1)"),
                "not-injected (1 of 1)",
            ],
        ],
    }
    write_index([(first, "a/report.html"), (second, "b/report.html")], tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert '<td class="violation">broken (1 of 2)</td>' in page
    assert '<th scope="row">&lt;b&gt;</th>' in page
    write_index([(first, "a/report.html")], tmp_path)
    assert "Sinks by kinds of fault" not in (tmp_path / "report.html").read_text()


def test_the_matrix_shows_the_level_that_each_sink_claims_and_that_was_found(
    tmp_path: Path,
) -> None:
    broken = replace(
        sink("broken", ((), "good")),
        verdict="invalid",
        guarantee="at-least-once",
        expected="effectively-once",
    )
    kept = replace(
        sink("kept", ((), "good")),
        verdict="valid",
        guarantee="effectively-once",
        ordering="per-key",
        expected="at-least-once",
    )
    hostile = replace(broken, expected='<b a="x">')  # a result that somebody edited
    assert [cells[:2] for cells in fault_matrix([broken, kept])["cells"]] == [
        ["effectively-once", "at-least-once"],
        ["at-least-once", "effectively-once, in order per key"],
    ]
    write_index([(hostile, "a/report.html"), (kept, "b/report.html")], tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert '<th scope="col">claimed</th><th scope="col">found</th>' in page.replace("\n", "")
    assert "<td>at-least-once</td>" in page
    assert "<td>effectively-once, in order per key</td>" in page
    assert "&lt;b a=&#34;x&#34;&gt;" in page and "<b a=" not in page


def test_counts_are_written_in_words_and_the_rest_is_folded(tmp_path: Path) -> None:
    page = html_report(broken_sink(tmp_path, anomalies=9), tmp_path)
    assert "2 times, at places 10, 50" in page
    assert '<td data-label="Expected">once</td>' in page
    assert "<summary>4 more</summary>" in page


def test_recovery_is_shown_beside_the_faults(tmp_path: Path) -> None:
    points = [{"t": float(t), "rate": rate} for t, rate in enumerate([5, 0, 0, 0, 7, 0])]
    bands = [
        {"from": 1.0, "to": 2.0, "label": "crash(driver)"},
        {"from": 4.5, "to": 5.0, "label": "pause(driver)"},
    ]
    result = replace(broken_sink(tmp_path), details={"timeline": points, "bands": bands})
    page = html_report(result, tmp_path)
    assert "crash(driver); messages were shown again 3.0 s after it began" in page
    assert "pause(driver); no message was shown after it" in page


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        ("batch=3/p=1/a=0/sink.prepare", "sink.prepare"),
        ("batch=1/offsets", "offsets"),
        ("batch=0/stage=1/p=0/a=2/task", "task"),
        ("receiver.prepare/batch=0/p=1/a=0", "receiver.prepare"),
        ("gateway.ack/lines/17", "gateway.ack"),
        ("epoch=2/sink.open", "sink.open"),
        ("metadata", "metadata"),
    ],
)
def test_kinds_of_steps(step: str, kind: str) -> None:
    assert kind_of(step) == kind


def test_traces_as_openlineage_and_graphviz(tmp_path: Path) -> None:
    broken_sink(tmp_path).write(tmp_path)
    assert run(tmp_path, "--openlineage", "--dot")[0] == 1
    lines = (tmp_path / "ce1.openlineage.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    (commit,) = [e for e in events if e["outputs"][0]["name"] == "receiver.commit/batch=1"]
    assert commit["job"]["name"] == "word_count_commits_again/receiver.commit"
    assert [i["name"] for i in commit["inputs"]] == ["batch=1/sink.commit"]
    assert commit["run"]["facets"]["tags"]["tags"][0]["value"] == FAULT
    good = json.loads((tmp_path / "good.openlineage.jsonl").read_text().splitlines()[0])
    assert good["run"]["facets"] == {}
    dot = (tmp_path / "good.dot").read_text()
    assert dot.startswith("digraph lineage {")
    assert "batch=1/state.manifest" in dot
    assert not (tmp_path / "good.otlp.json").exists()


def test_results_of_the_first_schema_are_still_read() -> None:
    """Frozen: what the first version wrote; a new schema comes with a way to read this one."""
    file = Path(__file__).with_name("result-v1.json")
    assert json.loads(file.read_text())["schema_version"] == 1
    result = Result.read(file)
    assert (result.scenario, result.verdict) == ("word_count_commits_again", "invalid")
    assert result.counterexamples[0].faults == (FAULT,)
    assert len(result.runs) == 24


def test_a_result_of_a_newer_version_says_so(tmp_path: Path) -> None:
    value = broken_sink(tmp_path).to_dict() | {"schema_version": 2, "new": {}}
    (tmp_path / "result.json").write_text(json.dumps(value))
    with pytest.raises(UsageError, match="newer Bettong"):
        Result.read(tmp_path)


def test_what_is_in_quarantine_fails_nothing_and_is_reported(tmp_path: Path) -> None:
    broken = broken_sink(tmp_path)
    excuse = {"reason": "waits", "until": "2999-12-31", "holds": True}
    excused = replace(broken, details={**broken.details, "quarantine": excuse})
    suite = ET.fromstring(junit_report([excused])).find("testsuite")
    assert suite is not None
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    assert int(suite.get("skipped", "0")) > 1
    assert all(line.startswith("::notice ") for line in github_annotations([excused]))
    late = replace(broken, details={**broken.details, "quarantine": {**excuse, "holds": False}})
    assert github_annotations([late])[0].startswith("::error ")
    excused.write(tmp_path)
    assert run(tmp_path)[0] == 0
    late.write(tmp_path)
    assert run(tmp_path)[0] == 1


def test_line_ends_of_every_kind_end_no_row_of_markdown() -> None:
    hostile = ("a\r\r# title", "b\u2028c", "d\x0be")
    anomalies = tuple(Anomaly("Loss", (text,)) for text in hostile)
    text = markdown_report(Result("s", "invalid", anomalies=anomalies))
    rows = [line for line in text.splitlines() if "Loss" in line]
    assert len(rows) == 3
    assert all(row.endswith("|") for row in rows)
    assert "\r" not in text


def test_a_valid_verdict_has_no_error_in_junit() -> None:
    """Of random schedules some cannot be injected; others are run in their place."""
    runs = (Run(("a",), "good"), Run(("b",), "not-injected", not_fired=("b",)))
    text = junit_report([Result("s", "valid", runs=runs)])
    assert 'errors="0"' in text
    assert 'skipped="1"' in text
    assert 'errors="2"' in junit_report([Result("s", "unknown", runs=runs)])


def test_markdown_says_nothing_to_a_terminal() -> None:
    hostile = "a\x1b[2Jb\x07\u202ec\x00"
    anomalies = (Anomaly("Loss", (hostile,), hostile, hostile, hostile, hostile),)
    example = Counterexample((FAULT,), anomalies, hostile, hostile, hostile)
    for result in (
        Result(hostile, "invalid", reason=hostile, anomalies=anomalies),
        Result(hostile, "invalid", counterexamples=(example,), assumptions=(hostile,)),
    ):
        text = markdown_report(result)
        assert not {c for c in text if not c.isprintable()} - {"\n"}
        assert r"\x1b" in text
