"""The sentences that all reports share."""

from __future__ import annotations

from bettong.lineage.results import Result

VERDICT_SIGN = {"valid": "✔", "invalid": "✘", "unknown": "?"}
VERDICT_WORD = {
    "valid": "Every expectation held",
    "invalid": "A violation was found",
    "unknown": "The answer is not known",
}

KIND_MEANING = {
    "Loss": "expected, never seen",
    "Duplicate": "seen more often than once",
    "Reorder": "seen in another order than sent",
    "Phantom": "seen, never expected",
    "Corrupt": "seen with other content",
    "Torn": "a reader saw part of an atomic batch",
    "StateDivergence": "state differs from the sequential interpreter's",
    "Stuck": "the run never finished",
    "Died": "a process ended by itself and had to be started again",
    "Leak": "something is kept that nobody wants any more",
    "Violation": "a postcondition does not hold",
}

PROTOCOL_WORD = {
    "valid": "every postcondition holds within the bounds",
    "invalid": "a postcondition does not hold",
    "unknown": "whether the postconditions hold is not known",
}

LEVEL_MEANING = {
    "effectively-once": "each message takes effect exactly once",
    "at-least-once": "no message is lost; some may take effect more than once",
    "at-most-once": "no message takes effect twice; some may be lost",
    "none": "messages can be lost, repeated or wrong",
}

OUTCOME_MEANING = {
    "good": "the outputs were right",
    "violation": "the outputs were wrong",
    "vacuous": "the precondition was not met: proves nothing",
    "not-injected": "a planned fault never fired: proves nothing",
    "unknown": "could not be judged",
}


def level_line(result: Result) -> str:
    """What level was found, and which was asked for."""
    if result.kind == "protocol":
        return PROTOCOL_WORD[result.verdict]
    found = "Level not known" if result.verdict == "unknown" else level_found(result)
    return found + (f" ({result.expected} was asked for)" if result.expected else "")


def level_found(result: Result) -> str:
    """The level that was found, with the order."""
    if result.verdict == "unknown":
        return "not known"
    if result.ordering == "per-key":
        return f"{result.guarantee}, in order per key"
    out_of_order = any(anomaly.kind == "Reorder" for anomaly in result.anomalies)
    return result.guarantee + (", out of order" if out_of_order else "")


def faults_line(faults: tuple[str, ...]) -> str:
    """A fault set in words."""
    return " + ".join(faults) if faults else "no fault"


def in_quarantine(result: Result) -> bool:
    """Whether a suite excuses the result for now: it is reported, and fails nothing."""
    quarantine = result.details.get("quarantine")
    return isinstance(quarantine, dict) and bool(quarantine.get("holds"))


def shard_of(result: Result) -> tuple[int, int] | None:
    """(I, N) when the result is the I-th of N shards."""
    shard = result.details.get("shard")
    if isinstance(shard, dict) and {"index", "of"} <= shard.keys():
        return int(shard["index"]), int(shard["of"])
    return None
