"""A scenario's own classes: each is what runs, or it is said that it would not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bettong.engine.endpoints import TcpSink
from bettong.engine.sinks.arrow import ArrowSink
from bettong.engine.sinks.files import FileSink
from bettong.engine.sinks.kafka import KafkaSink
from bettong.harness.cluster.driver_config import configure
from bettong.harness.scenario import Component, Inputs, Outputs
from bettong.lineage.errors import UsageError
from bettong.scenarios.counting import COUNTING


class OwnTcp(TcpSink):
    pass


class OwnFiles(FileSink):
    pass


class OwnArrow(ArrowSink):
    pass


class OwnKafka(KafkaSink):
    pass


@pytest.mark.parametrize(
    ("outputs", "own"),
    [("receiver", OwnTcp), ("files", OwnFiles), ("arrow", OwnArrow), ("kafka", OwnKafka)],
)
def test_a_sink_of_a_scenario_s_own_is_what_the_driver_writes_to(
    tmp_path: Path, outputs: Outputs, own: type
) -> None:
    _, config = configure(
        COUNTING.application,
        inputs="gateway",
        outputs=outputs,
        servers=dict.fromkeys(("gateway", "receiver", "kafka"), "127.0.0.1:1"),
        topics="run",
        folders={},
        shared=str(tmp_path),
        checkpoint=str(tmp_path / "checkpoint"),
        batch=3,
        live=False,
        partitions=1,
        classes={"sink": f"{__name__}:{own.__name__}"},
        timeout_s=1.0,
        give_up_s=1.0,
    )
    assert [type(sink) for sink in config.sinks.values()] == [own]


@pytest.mark.parametrize(
    ("component", "inputs", "outputs"),
    [("gateway", "folder", "receiver"), ("receiver", "gateway", "files")],
)
def test_a_class_that_would_never_run_is_refused(
    component: Component, inputs: Inputs, outputs: Outputs
) -> None:
    with pytest.raises(UsageError, match=f"its {component} mine:Own would never run") as refused:
        replace(COUNTING, inputs=inputs, outputs=outputs, classes={component: "mine:Own"})
    assert "\n" not in str(refused.value)
