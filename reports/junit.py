"""JUnit XML: one suite for each result, one test case for its verdict and one for each run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from bettong.lineage.results import Anomaly, Result, Run
from bettong.reports.sample import anomaly_counts, sample_anomalies, short_json
from bettong.reports.words import KIND_MEANING, faults_line, in_quarantine, level_line

SHOWN_ANOMALIES = 20
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(results: Sequence[Result]) -> str:
    """An XML document that CI servers read.

    The verdict decides: when a level below effectively-once was asked for, a run that broke only
    the stronger one is no failure. An unknown verdict and a fault that did not fire are errors, a
    vacuous run is skipped, and so is what a quarantine excuses, and what a valid verdict does not
    rest on, such as a random schedule in place of which another one was run.
    """
    root = ET.Element("testsuites", name="bettong")
    for result in results:
        suite = ET.SubElement(root, "testsuite", name=_text(f"bettong.{result.scenario}"))
        _verdict(suite, result)
        for run in result.runs:
            _run(suite, result, run)
        cases = suite.findall("testcase")
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(sum(1 for case in cases if case.find(tag) is not None)))
        suite.set("tests", str(len(cases)))
        suite.set("time", f"{result.duration_s:.3f}")
        if result.started_at:
            suite.set("timestamp", _text(result.started_at))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _verdict(suite: ET.Element, result: Result) -> None:
    case = _case(suite, result, "verdict", result.duration_s)
    if result.verdict == "valid":
        return
    lines = [result.reason]
    for example in result.counterexamples[:3]:
        lines += ["", f"faults: {faults_line(example.faults)}", example.words]
        lines += _anomalies(example.anomalies)
        lines += [f"replay: {example.replay}"] if example.replay else []
    if not result.counterexamples:
        counts = anomaly_counts(result)
        lines += [f"{number} {kind}" for kind, number in counts.items() if number]
        lines += _anomalies(result.anomalies)
    kind = "failure" if result.verdict == "invalid" else "error"
    kind = "skipped" if in_quarantine(result) else kind
    found = ET.SubElement(case, kind, message=_text(level_line(result)), type=result.verdict)
    found.text = _text("\n".join(lines))


def _run(suite: ET.Element, result: Result, run: Run) -> None:
    case = _case(suite, result, faults_line(run.faults), run.seconds)
    if run.outcome == "good" or (run.outcome == "violation" and result.verdict == "valid"):
        return
    kind = {"violation": "failure", "vacuous": "skipped"}.get(run.outcome, "error")
    kind = "skipped" if in_quarantine(result) or result.verdict == "valid" else kind
    counts: dict[str, int] = {}
    for anomaly in run.anomalies:
        counts[anomaly.kind] = counts.get(anomaly.kind, 0) + 1
    reported = ", ".join(f"{n} {k}" for k, n in counts.items()) or run.note or run.outcome
    found = ET.SubElement(case, kind, message=_text(reported), type=run.outcome)
    lines = [*_anomalies(run.anomalies), *(f"never fired: {f}" for f in run.not_fired), run.note]
    found.text = _text("\n".join(line for line in lines if line))


def _anomalies(anomalies: Sequence[Anomaly]) -> list[str]:
    lines = []
    for a in sample_anomalies(anomalies, SHOWN_ANOMALIES):
        seen = f", expected {short_json(a.expected)}, seen {short_json(a.seen)}"
        key = f" (key {a.key})" if a.key is not None else ""
        lines.append(
            f"{a.kind} {', '.join(a.messages[:5])}{key}: {a.note or KIND_MEANING.get(a.kind, '')}"
            + (seen if (a.expected, a.seen) != (None, None) else "")
        )
    if len(anomalies) > SHOWN_ANOMALIES:
        lines.append(f"… {len(anomalies):,} anomalies in all")
    return lines


def _case(suite: ET.Element, result: Result, name: str, seconds: float) -> ET.Element:
    return ET.SubElement(
        suite,
        "testcase",
        classname=_text(f"bettong.{result.scenario}"),
        name=_text(name),
        time=f"{seconds:.3f}",
    )


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
