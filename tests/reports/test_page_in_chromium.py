"""The page as a browser shows it. Without Chromium these tests are skipped, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from browser import CHROMIUM, Page, chromium
from report_samples import broken_sink, duplicates

from bettong.lineage.results import Anomaly
from bettong.reports import write_reports

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="NO CHROMIUM: the HTML report was not looked at; install chromium"
)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with chromium() as opened:
        yield opened


@pytest.fixture(autouse=True)
def clean(page: Page) -> Iterator[None]:
    page.problems.clear()
    page.requests.clear()
    yield
    assert page.problems == []
    assert all(url.startswith(("file://", "data:")) for url in page.requests), page.requests


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("report")
    return write_reports(broken_sink(directory), directory)[0]


def test_verdict_level_and_pictures_are_there(page: Page, report: Path) -> None:
    page.open(report)
    assert "invalid" in page.js("document.querySelector('h1').innerText")
    assert "at-least-once" in page.js("document.querySelector('.level').innerText")
    for name in ("ce1-bad", "ce1-good", "ce1-lineage"):
        box = page.js(
            f"(r => [r.width, r.height])(document.getElementById('{name}').getBoundingClientRect())"
        )
        assert min(box) > 100
    assert page.js("document.querySelectorAll('#ce1-bad g.injection').length") == 1
    assert page.js("document.querySelectorAll('#ce1-good g.injection').length") == 0
    assert page.js("document.querySelectorAll('#ce1-lineage .box').length") > 8
    assert "bettong replay" in page.js("document.getElementById('ce1-replay').innerText")
    assert [u for u in page.requests if not u.startswith("data:")] == [report.resolve().as_uri()]


def test_filters_work(page: Page, report: Path) -> None:
    page.open(report)
    rows = "document.querySelectorAll('#runs tbody tr').length"
    assert page.js(rows) == 24
    page.js("outcome.value = 'violation'; outcome.dispatchEvent(new Event('change'))")
    assert page.js(rows) == 2
    assert page.js("document.getElementById('run-status').innerText").startswith("2 of 2 matching")
    page.js(
        "outcome.value = ''; filter.value = 'batch=1 commits';"
        "filter.dispatchEvent(new Event('input'))"
    )
    assert 0 < page.js(rows) < 10


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_screen(page: Page, report: Path, width: int, dark: bool) -> None:
    page.open(report, width=width, dark=dark)
    assert page.js("document.documentElement.scrollWidth") <= width
    background = page.js("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(20, 23, 26)") == dark


def test_ten_thousand_runs_and_a_hundred_thousand_anomalies(page: Page, tmp_path: Path) -> None:
    result = replace(broken_sink(tmp_path, runs=10_000), anomalies=duplicates(100_000))
    path = write_reports(result, tmp_path)[0]
    assert path.stat().st_size < 5_000_000
    page.open(path)
    assert page.js("document.querySelectorAll('#runs tbody tr').length") == 100
    page.js("document.getElementById('more').click()")
    assert page.js("document.querySelectorAll('#runs tbody tr').length") == 200
    assert "10000 runs in all" in page.js("document.getElementById('run-status').innerText")
    assert "50 of 100,000 anomalies" in page.js("document.getElementById('anomalies').innerText")


def test_content_of_messages_is_shown_and_never_run(page: Page, tmp_path: Path) -> None:
    evil = (
        '</script></title><img src=x onerror="window.owned=1"><script>window.owned=1</script>\'"&'
    )
    sample = broken_sink(tmp_path)
    anomaly = Anomaly("Corrupt", (evil,), evil, {evil: evil}, evil, evil)
    example = replace(
        sample.counterexamples[0],
        anomalies=(anomaly,),
        words=evil,
        advice=evil,
        replay=evil,
        frontier=(evil,),
        faults=(evil,),
        schedule={evil: evil},
    )
    run = replace(sample.runs[1], faults=(evil,), note=evil, evidence={evil: evil})
    result = replace(
        sample, scenario=evil, reason=evil, anomalies=(anomaly,), counterexamples=(example,),
        runs=(run,), assumptions=(evil,), environment={evil: evil},
        details={**sample.details, "other": evil, "bands": [{"from": 0, "to": 1, "label": evil}],
                 "matrix": {"rows": [evil], "columns": [evil], "cells": [[evil]]}},
    )  # fmt: skip
    page.open(write_reports(result, tmp_path)[0])
    assert page.js("window.owned") is None
    assert page.js("document.images.length") == 0
    assert evil in page.js("document.getElementById('anomalies').innerText")
    assert evil in page.js("document.getElementById('runs').innerText")


def test_keyboard_reaches_pictures_and_controls(page: Page, report: Path) -> None:
    page.open(report)
    focusable = page.js(
        "[...document.querySelectorAll('a[href],input,select,button:not([hidden]),summary,[tabindex=\"0\"]')].length"
    )
    assert focusable > 12
    unnamed = page.js(
        "[...document.querySelectorAll('svg[role=img]')]"
        ".filter(s => !s.querySelector('title')).length"
    )
    assert unnamed == 0
    assert (
        page.js("document.querySelectorAll('input:not(label *), select:not(label *)').length") == 0
    )
