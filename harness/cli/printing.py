"""Everything printed that came from data passes here: it can neither begin a line of its own nor
command a terminal or a CI service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from bettong.lineage.secrets import masked

if TYPE_CHECKING:
    from rich.text import Text

_CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_FIRST = re.compile(r"^(\s*)::")
_ANYWHERE = re.compile(r"##(?=(vso|teamcity)?\[)")


def plain(text: str) -> str:
    """One line that a terminal shows as it is.

    Control characters (line ends, ESC, those that turn the direction of writing), halves of
    surrogate pairs and line separators are shown as escapes; what GitHub, Azure and TeamCity take
    for a command gets a backslash into it.
    """
    shown = _CONTROL.sub(lambda m: m[0].encode("unicode_escape").decode("ascii"), text)
    return _ANYWHERE.sub(r"##\\", _FIRST.sub(r"\1\\::", shown))


def say(text: str) -> None:
    """One line on standard output."""
    click.echo(plain(text))


def cell(text: object) -> Text:
    """A cell of a table, of which no part is taken for markup."""
    from rich.text import Text  # only those that show tables wait for it

    return Text(plain(str(text)))


def complain(text: str) -> None:
    """One line on standard error, beginning with the program's name."""
    click.echo(f"bettong: {plain(masked(' '.join(text.split())))}", err=True)
