"""Recorded conversations with real servers, and exact cuts in them."""

from bettong.harness.wire.armed import WireEvidence
from bettong.harness.wire.conversation import Chunk, Conversation, Keys, Recording, Request
from bettong.harness.wire.cutpoints import CutPoint, CutPoints, cut_points
from bettong.harness.wire.recorder import Armed, WireEndpoint, WireError, WireListener, WireRecorder

__all__ = [
    "Armed",
    "Chunk",
    "Conversation",
    "CutPoint",
    "CutPoints",
    "Keys",
    "Recording",
    "Request",
    "WireEndpoint",
    "WireError",
    "WireEvidence",
    "WireListener",
    "WireRecorder",
    "cut_points",
]
