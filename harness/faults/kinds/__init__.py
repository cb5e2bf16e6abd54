"""The kinds of faults that there are: one class in one file each."""

from bettong.harness.faults.fault import Fault
from bettong.harness.faults.kinds.crash import Crash
from bettong.harness.faults.kinds.crash_writing import CrashWriting
from bettong.harness.faults.kinds.cut import Cut
from bettong.harness.faults.kinds.delay import Delay
from bettong.harness.faults.kinds.duplicate import Duplicate
from bettong.harness.faults.kinds.late import Late
from bettong.harness.faults.kinds.omit import Omit
from bettong.harness.faults.kinds.omit_reply import OmitReply
from bettong.harness.faults.kinds.pause import Pause
from bettong.harness.faults.kinds.power_cut import PowerCut
from bettong.harness.faults.kinds.reset import Reset
from bettong.harness.faults.kinds.silence import Silence
from bettong.harness.faults.kinds.slice import Slice
from bettong.harness.faults.kinds.stall import Stall
from bettong.harness.faults.kinds.stop import Stop
from bettong.harness.faults.kinds.storage import Storage
from bettong.harness.faults.kinds.throttle import Throttle

__all__ = [
    "SHIPPED",
    "Crash",
    "CrashWriting",
    "Cut",
    "Delay",
    "Duplicate",
    "Fault",
    "Late",
    "Omit",
    "OmitReply",
    "Pause",
    "PowerCut",
    "Reset",
    "Silence",
    "Slice",
    "Stall",
    "Stop",
    "Storage",
    "Throttle",
]

SHIPPED: tuple[type[Fault], ...] = (
    Crash,
    Stop,
    Pause,
    Stall,
    Storage,
    PowerCut,
    CrashWriting,
    Omit,
    OmitReply,
    Silence,
    Cut,
    Duplicate,
    Late,
    Delay,
    Throttle,
    Slice,
    Reset,
)
"""In the order in which a search tries them."""
