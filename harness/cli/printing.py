"""Everything printed that came from data passes here: it can neither begin a line of its own nor
command a terminal or a CI service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from bettong.lineage.secrets import masked
from bettong.lineage.visible import visible

if TYPE_CHECKING:
    from rich.text import Text

_FIRST = re.compile(r"^(\s*)::")
_ANYWHERE = re.compile(r"##(?=(vso|teamcity)?\[)")


def plain(text: str) -> str:
    """One visible line that a terminal shows as it is; what GitHub, Azure and TeamCity take for a
    command gets a backslash into it."""
    return _ANYWHERE.sub(r"##\\", _FIRST.sub(r"\1\\::", visible(text)))


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
