"""Display of results: as HTML tables in a notebook, and as lines of text in a terminal."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar, Final, Generic, SupportsIndex, TypeVar, overload

from assaymark.text import NBSP, clean, count, visible

__all__ = ["Rows"]

T = TypeVar("T")

_WIDTH, _MOST_SHOWN = 100, 20
_CELL_CHARS, _KEY_CHARS = 200, 28
_NUMERIC: Final = re.compile(r"[−+<>]?\s?\d")

MARKS: Final = {"headline": "●", "qualified": "◐", "no-claim": "◌"}
"""The mark of each level: filled, half-filled or open circle, so that it can be read without colour."""

# Greys are mixed from the text's colour, so that the style works on light and dark notebooks.
STYLE: Final = """
.assay-shown{max-width:1120px;overflow-wrap:anywhere;font:14px/20px system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
.assay-shown p{margin:0 0 6px;max-width:800px}
.assay-shown .assay-head{font-weight:650;font-size:16px;line-height:24px}
.assay-shown .assay-note{opacity:.8}
.assay-shown .assay-said{font:18px/25px Charter,"Bitstream Charter",Cambria,Georgia,serif;padding:2px 0 2px 14px;border-left:4px solid color-mix(in oklab,currentColor 28%,#2f7fd6)}
.assay-shown .assay-qualified{border-left:6px double color-mix(in oklab,currentColor 32%,#b97a12);padding-left:12px}
.assay-shown .assay-said small{display:block;font:14px/20px system-ui,"Segoe UI",Roboto,Arial,sans-serif}
.assay-shown .assay-grid{overflow-x:auto}
.assay-shown.assay-shown table{border-collapse:collapse;border:0;margin:6px 0 10px;font-size:inherit;table-layout:auto;color:inherit}
.assay-shown.assay-shown table tr:nth-child(n){background:none;border:0}
.assay-shown.assay-shown :is(th,td){text-align:left;vertical-align:top;padding:4px 16px 4px 0;border:0;border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent);font-size:inherit;line-height:inherit;white-space:normal;overflow-wrap:break-word;max-width:420px}
.assay-shown.assay-shown thead th{font-weight:600;vertical-align:bottom;border-bottom:1px solid currentColor;overflow-wrap:normal}
.assay-shown.assay-shown tbody th{font-weight:600;overflow-wrap:break-word}
.assay-shown.assay-shown .assay-key{white-space:nowrap}
.assay-shown.assay-shown .assay-right{text-align:right;white-space:nowrap}
.assay-shown summary{cursor:pointer;font-weight:600;min-height:26px}
""".replace("\n", "")  # noqa: E501


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a display."""

    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A supported claim with the mark of its level, and the conditions that must be stated with it."""

    level: str
    text: str
    also: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of texts. The first cell of a row is its header; ``right`` are the columns of numbers."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure: its title, caption, SVG for wide and for narrow screens, and the CSS rules that it needs."""

    title: str
    caption: str
    wide: str
    narrow: str
    styles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Parts that are collapsed under a summary line; a terminal prints only the summary."""

    summary: str
    parts: tuple[Part, ...]


# A plain string is a paragraph.
Part = str | Heading | Quote | Grid | Drawing | Collapsed


class Displayable:
    """Base of records with a display: subclasses define its ``_parts``, or one table row in ``_cells``."""

    __slots__ = ()
    _right: ClassVar[tuple[str, ...]] = ()
    _wordy: ClassVar[tuple[str, ...]] = ()

    def _cells(self) -> Mapping[str, str]:
        """Return the record as a table row: column titles and cell texts."""
        if not dataclasses.is_dataclass(self):
            raise AssertionError("say _parts or _cells")
        return {field.name: _cell_text(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def _parts(self) -> Iterable[Part]:
        """Return the parts of the display; by default a table of the fields."""
        return (Grid(("Field", type(self).__name__), tuple(self._cells().items())),)

    def _repr_html_(self) -> str | None:
        return render_html(display_parts(self))


def display_parts(item: Displayable) -> tuple[Part, ...]:
    """Return the parts of the display of a record."""
    return tuple(item._parts())


class Result(Displayable):
    """Base of results with a text ``repr`` as well as HTML. Dataclass subclasses need ``repr=False``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return render_text(display_parts(self))


@dataclass(frozen=True, slots=True, repr=False)
class CommandResult(Result, Generic[T]):
    """The result of a command, and the ``lines`` that it prints."""

    done: T
    lines: tuple[str, ...]

    def _parts(self) -> Iterator[Part]:
        yield from map(clean, self.lines)


class Rows(list[T], Displayable):
    """A list of records that is displayed as a table."""

    __slots__ = ()

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Rows[T]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> T | Rows[T]:
        """Return one record, or a slice as `Rows`."""
        if isinstance(at, slice):
            return Rows(super().__getitem__(at))
        return super().__getitem__(at)

    def _parts(self) -> Iterator[Part]:
        yield from self._table(wordy=True)

    def _table(self, *, wordy: bool) -> Iterator[Part]:
        most = _MOST_SHOWN
        shown = [item for item in self[:most] if isinstance(item, Displayable)]
        if not shown:
            yield "Nothing is in it." if not self else f"{count(len(self))} items"
            return
        cells = [item._cells() for item in shown]
        long = shown[0]._wordy
        texts = {head: {row.get(head, "") for row in cells} for head in long} if wordy and len(cells) > 1 else {}
        once = {head: values.pop() for head, values in texts.items() if len(values) == 1}
        out = once if wordy else long
        columns = tuple(dict.fromkeys(head for row in cells for head in row if head not in out))
        right = frozenset(at for at, head in enumerate(columns) if head in shown[0]._right)
        yield Grid(columns, tuple(tuple(row.get(head, "") for head in columns) for row in cells), right)
        yield from (f"{head}: {text}" for head, text in once.items() if text)
        if len(self) > most:
            yield f"{count(most)} of {count(len(self))} rows. Take a part to see others: rows[{most}:{2 * most}]"

    def __repr__(self) -> str:
        if not any(isinstance(item, Displayable) for item in self[:1]):
            return super().__repr__()
        return render_text(self._table(wordy=False))

    def _repr_html_(self) -> str | None:
        return super()._repr_html_() if all(isinstance(item, Displayable) for item in self) else None


def _cell_text(value: Any) -> str:
    """Format a field as a cell: its text, or the number of its items."""
    if isinstance(value, Mapping):
        return clean("; ".join(f"{key} {_cell_text(part)}" for key, part in value.items()), _CELL_CHARS)
    if isinstance(value, (tuple, list)):
        plain = all(isinstance(part, (str, int, float)) for part in value)
        return clean(", ".join(map(str, value)), _CELL_CHARS) if plain else f"{count(len(value))} items"
    if isinstance(value, float):
        return f"{value:,.6g}".replace("-", "−")
    return "" if value is None else clean(str(value), _CELL_CHARS)


def render_html(parts: Iterable[Part]) -> str:
    """Render parts as one self-contained HTML element, whose styles apply to nothing outside it."""
    styles = [STYLE]
    body = "".join([_element(part, styles) for part in parts])
    return f'<div class="assay-shown"><style>{"".join(dict.fromkeys(styles))}</style>{body}</div>'


def _element(part: Part, styles: list[str]) -> str:
    """Render one part as escaped HTML; the CSS rules that it needs are added to ``styles``."""
    match part:
        case Heading(words):
            return f'<p class="assay-head">{_safe(words)}</p>'
        case str(words):
            return f'<p class="assay-note">{_safe(words)}</p>'
        case Quote(level, words, also):
            more = f"<small>Say also: {_safe(also)}</small>" if also else ""
            kind = f"assay-said assay-{level}" if level in MARKS else "assay-said"
            mark = f'<span role="img" aria-label="{_safe(level)}">{MARKS.get(level, "")}</span>'
            return f'<p class="{kind}">{mark} “{_safe(words)}”{more}</p>'
        case Drawing(title, caption, wide, narrow, rules):
            styles += rules
            words = f'<p class="assay-head">{_safe(title)}</p>'
            return f'{words}<div class="assay-fig">{wide}{narrow}</div><p class="assay-note">{_safe(caption)}</p>'
        case Collapsed(summary, inner):
            opened = "".join([_element(part, styles) for part in inner])
            return f"<details><summary>{_safe(summary)}</summary>{opened}</details>"
        case Grid(heads, rows, right):
            ends = dict.fromkeys(right, ' class="assay-right"')
            lines = ["".join(f'<th scope="col"{ends.get(at, "")}>{_safe(head)}</th>' for at, head in enumerate(heads))]
            for row in rows:
                short = ' class="assay-key"' if row and len(row[0]) <= _KEY_CHARS else ""
                cells = [f'<th scope="row"{short}>{_safe(row[0])}</th>'] if row else []
                for at, cell in enumerate(row[1:], start=1):
                    kind = ends.get(at, "") if _NUMERIC.match(cell) else ""
                    cells.append(f"<td{kind}>{_safe(cell)}</td>")
                lines.append("".join(cells))
            head, *others = (f"<tr>{line}</tr>" for line in lines)
            table = f"<table><thead>{head}</thead><tbody>{''.join(others)}</tbody></table>"
            # A wide table scrolls, so it must be focusable by keyboard.
            return f'<div class="assay-grid" role="group" aria-label="table" tabindex="0">{table}</div>'


def _safe(words: str) -> str:
    return escape(visible(words))


def render_text(parts: Iterable[Part]) -> str:
    """Render parts as lines of at most 100 characters, the same in every terminal."""
    from rich.console import Console  # imported here, because it is slow to load and only needed for printing
    from rich.table import Table
    from rich.text import Text

    file = io.StringIO()
    console = Console(file=file, width=_WIDTH, color_system=None, legacy_windows=False, force_jupyter=False)
    for part in parts:
        match part:
            case str(words) | Heading(words) | Collapsed(words):
                console.print(Text(visible(words)))
            case Quote(level, words, also):
                more = f" Say also: {also}" if also else ""
                console.print(Text(visible(f"{MARKS.get(level, '')} “{words}”{more}")))
            case Drawing(title):
                console.print(Text(visible(f"[figure: {title}]")))
            case Grid(heads, rows, right):
                table = Table(box=None, pad_edge=False)
                for at, head in enumerate(heads):
                    table.add_column(Text(visible(head)), justify="right" if at in right else "left", overflow="fold")
                for row in rows:
                    table.add_row(*(Text(visible(cell)) for cell in row))
                console.print(table)
    return "\n".join(line.rstrip() for line in plain_spaces(file.getvalue()).splitlines())


def plain_spaces(words: str) -> str:
    """Replace no-break spaces by spaces, for a terminal."""
    return words.replace(NBSP, " ")
