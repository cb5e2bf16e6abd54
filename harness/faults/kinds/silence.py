"""Nothing says that a reply is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bettong.harness.faults.actuator import Disturbance
from bettong.harness.faults.kinds.omit_reply import OmitReply
from bettong.harness.faults.link_fault import is_repeated
from bettong.harness.faults.wording import ends_in_words, moment
from bettong.lineage.faults import PAUSE


@dataclass(frozen=True, slots=True)
class Silence(OmitReply):
    """The request of one step is carried out and its reply lost, while its connection stays open:
    as when the other machine loses its power, or a firewall forgets the connection. Whoever has
    asked has to give up waiting by itself, and on that connection nothing comes ever again."""

    kind: ClassVar[str] = "silence"
    bound: ClassVar[str] = PAUSE

    def describe(self) -> str:
        return (
            f"the request from {ends_in_words(self.link)} was carried out, its answer was lost, "
            f"and the connection stayed open, {moment(self.at)}"
        )

    @property
    def disturbance(self) -> Disturbance:
        return Disturbance("timeout", {"timeout": 0}, of_reply=True, strands=True)

    @property
    def repeated_links(self) -> tuple[str, ...]:
        return (self.link,) if is_repeated(self.link) else ()

    @property
    def loses(self) -> bool:
        return True

    @property
    def is_silent(self) -> bool:
        return True
