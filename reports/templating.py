"""The pages' templates: everything that comes from data is escaped when it is put into a page."""

from __future__ import annotations

from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)


def asset(name: str) -> Markup:
    """A style or script of the package, as it is."""
    return Markup(resources.files("bettong.reports").joinpath(name).read_text("utf-8"))  # noqa: S704 - ours


def _number(value: int) -> str:
    return f"{value:,}"


_TEMPLATES = Environment(
    loader=PackageLoader("bettong.reports"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals.update(asset=asset, number=_number, policy=POLICY)


def render(template: str, **values: object) -> str:
    """A page from a template of the package."""
    return _TEMPLATES.get_template(template).render(**values)
