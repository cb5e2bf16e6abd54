"""Drawing: space-time diagrams and lineage graphs as SVG, coloured by the page's style sheet.

Colours come from CSS classes, so that the same picture serves light, dark and paper. Every text
is escaped here.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from bettong.reports.lineage_cut import Lineage
from bettong.reports.spacetime import Arrow, Diagram, Mark

COLUMN = 196, 300  # narrowest and widest: few nodes share the width of the page
PAGE = 1140
ROW = 24
TOP = 44
LEFT = 36
CHARACTERS = 25
CHARACTER = 6.7
BOX_WIDTH = 216
BOX_HEIGHT = 26


def shorten(text: str, limit: int = CHARACTERS) -> str:
    """The text with its middle left out when it is too long."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 3
    return f"{text[:head]}…{text[-(limit - 1 - head) :]}"


def spacetime_svg(diagram: Diagram, name: str, title: str) -> str:
    """A diagram as one ``<svg>`` element.

    Args:
        name: unique in the page, a letter first.
        title: what the picture shows, for those who hear it.
    """
    width = _x(diagram, len(diagram.nodes))
    height = TOP + ROW * (diagram.rows + 1)
    return "\n".join(
        [
            *_head(name, title, width, height),
            *_lines(diagram, height),
            *(line for arrow in diagram.arrows for line in _arrow(diagram, arrow, name)),
            *(line for mark in diagram.marks for line in _mark(diagram, mark)),
            *_faults(diagram),
            "</svg>",
        ]
    )


def _head(name: str, title: str, width: int, height: int) -> Iterator[str]:
    yield (
        f'<svg id="{name}" role="img" aria-labelledby="{name}-t" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" xmlns="http://www.w3.org/2000/svg">'
    )
    yield f'<title id="{name}-t">{escape(title)}</title>'
    yield "<defs>"
    for look in ("plain", "lost"):
        yield (
            f'<marker id="{name}-{look}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path class="head {look}" d="M0 0L8 4L0 8z"/></marker>'
        )
    yield "</defs>"


def _column(diagram: Diagram) -> int:
    narrowest, widest = COLUMN
    return max(narrowest, min(widest, (PAGE - LEFT) // max(1, len(diagram.nodes))))


def _x(diagram: Diagram, node: str | int) -> int:
    """Of a node, or of a place among the nodes."""
    place = diagram.nodes.index(node) if isinstance(node, str) else node
    return LEFT + _column(diagram) * place


def _y(row: int) -> int:
    return TOP + ROW // 2 + ROW * row


def _lines(diagram: Diagram, height: int) -> Iterator[str]:
    for node in diagram.nodes:
        x = _x(diagram, node)
        yield f'<text class="node" x="{x - 8}" y="18">{escape(shorten(node))}</text>'
        yield f'<line class="life" x1="{x}" y1="28" x2="{x}" y2="{height}"/>'
    for row, count in diagram.gaps.items():
        y = _y(row) - ROW // 2
        width = _x(diagram, len(diagram.nodes))
        yield f'<line class="gap" x1="0" y1="{y}" x2="{width}" y2="{y}"/>'
        yield (
            f'<text class="gap" x="{width - 4}" y="{y - 2}" text-anchor="end">'
            f"{count:,} {'step' if count == 1 else 'steps'} not shown</text>"
        )


def _arrow(diagram: Diagram, arrow: Arrow, name: str) -> Iterator[str]:
    if arrow.source not in diagram.nodes or arrow.target not in diagram.nodes:
        return
    x1, x2 = _x(diagram, arrow.source), _x(diagram, arrow.target)
    y1, y2 = _y(arrow.row), _y(arrow.end_row)
    kind = ("reply " if arrow.reply else "") + ("lost" if arrow.lost else arrow.look)
    if arrow.lost:
        x2, y2 = x1 + (x2 - x1) * 3 // 5, y1 + (y2 - y1) * 3 // 5
    head = "lost" if arrow.lost else "plain"
    yield (
        f'<line class="message {kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" '
        f'marker-end="url(#{name}-{head})"/>'
    )
    if arrow.lost:
        yield f'<path class="cross" d="M{x2 - 5} {y2 - 5}l10 10m0 -10l-10 10"/>'


def _mark(diagram: Diagram, mark: Mark) -> Iterator[str]:
    x, y, end = _x(diagram, mark.node), _y(mark.row), _y(mark.end_row)
    reported = {"done": "", "failed": ", failed", "never": ", never finished"}[mark.ending]
    again = f", process {mark.incarnation} of this node" if mark.incarnation > 1 else ""
    yield f'<g class="step {mark.look} {mark.ending}">'
    yield f"<title>{escape(f'{mark.label} on {mark.node}{reported}{again}')}</title>"
    if end > y:
        yield f'<rect x="{x - 3}" y="{y}" width="6" height="{end - y}" rx="3"/>'
    yield f'<circle cx="{x}" cy="{y}" r="4.5"/>'
    label = shorten(mark.label, int((_column(diagram) - 20) / CHARACTER))
    yield f'<text x="{x + 10}" y="{y + 4}">{escape(label)}</text></g>'


def _faults(diagram: Diagram) -> Iterator[str]:
    for fault in diagram.faults:
        x, y = _x(diagram, fault.node), _y(fault.row)
        yield f'<g class="injection"><title>{escape(fault.label)}</title>'
        yield f'<path d="M{x - 9} {y - 9}l18 18m0 -18l-18 18"/></g>'


def lineage_svg(lineage: Lineage, name: str, title: str) -> str:
    """A lineage graph, causes above their effects, as one ``<svg>`` element."""
    steps = max((b.depth for b in lineage.boxes), default=0) + 1
    widest = max((b.place for b in lineage.boxes), default=0) + 1
    width, height = widest * (BOX_WIDTH + 16) + 8, steps * (BOX_HEIGHT + 26)
    places = {
        b.step: (8 + b.place * (BOX_WIDTH + 16), 4 + b.depth * (BOX_HEIGHT + 26))
        for b in lineage.boxes
    }
    lines = list(_head(name, title, width, height))
    for cause, effect in lineage.edges:
        x1, x2 = (places[step][0] + BOX_WIDTH // 2 for step in (cause, effect))
        y1, y2 = places[cause][1] + BOX_HEIGHT, places[effect][1] - 2
        cut = effect in lineage.cut
        lines.append(
            f'<path class="cause{" lost" if cut else ""}" fill="none" '
            f'd="M{x1} {y1}C{x1} {y1 + 14} {x2} {y2 - 14} {x2} {y2}" '
            f'marker-end="url(#{name}-{"lost" if cut else "plain"})"/>'
        )
    for box in lineage.boxes:
        x, y = places[box.step]
        full = box.label or box.step
        what = f"{full} ({box.node})" + (f": {box.note}" if box.note else "")
        label = shorten(full, 30 - len(box.mark))
        lines.append(
            f'<g class="box {box.look}"><title>{escape(what)}</title>'
            f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"/>'
            f'<text x="{x + 8}" y="{y + 17}">{escape(box.mark)}{escape(label)}</text></g>'
        )
    lines.append("</svg>")
    return "\n".join(lines)
