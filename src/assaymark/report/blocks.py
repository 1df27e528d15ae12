"""The content model of pages: blocks over records, rendered by one set of templates to a page, to part of one or to
plain text. A page is a title, a head and sections; a section is a heading (a question), a lead (its answer) and blocks.
Blocks hold text, never markup; only drawings (``Markup``) are inserted unescaped. A number of an unsupported claim
cannot be shown: the constructors of ``ClaimCell`` and ``ClaimQuote`` refuse it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from markupsafe import Markup

from assaymark.records import LEVELS, Level, Measurement, content_id, grouped, measurement_id
from assaymark.report.charts.canvas import HALF, MID, NARROW, Draw, JudgeWords, text_alternative, view
from assaymark.report.charts.paths import Brush
from assaymark.report.text import KnownValue, as_text, estimate, known
from assaymark.text import count


class Linked(str):
    """A text that pages show as a link to ``href``, a path below the report folder; elsewhere it is plain text."""

    __slots__ = ("href",)

    href: str

    def __new__(cls, text: str, href: str = "") -> Linked:
        """A text with its link; without ``href`` plain text."""
        linked = super().__new__(cls, text)
        linked.href = href
        return linked


# Bold, code, as it was written (in its own direction), in English whatever the page speaks, a small line below, hatched
# since no value may be shown, or a state in place of a value.
Style: TypeAlias = Literal["b", "code", "bdi", "en", "sub", "gap", "un"]


class Styled(str):
    """A text with a style on pages; elsewhere it is plain text."""

    __slots__ = ("style",)

    style: Style

    def __new__(cls, text: str, style: Style) -> Styled:
        """A text with a style."""
        styled = super().__new__(cls, text)
        styled.style = style
        return styled


@dataclass(frozen=True, slots=True)
class Mark:
    """A small icon before a word: a claim level, pass or fail, or an evidence state."""

    name: str
    word: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """A number in [0, 1] with a tint or bar of its size; ``share`` None is hatched, with its state as ``value``."""

    share: float | None
    value: str
    below: str = ""
    style: Literal["tint", "bar"] = "tint"


Inline: TypeAlias = "str | Mark | Share | ClaimCell | tuple[Inline, ...]"
"""A line of text: plain, linked, styled or drawn, or a sequence of these."""

HATCHED: Final = Styled("not supported", "gap")
"""Shown in place of a value of an unsupported claim."""


def bold(text: str) -> Styled:
    """A text in bold."""
    return Styled(text, "b")


def code(text: str) -> Styled:
    """A name from a file or a program."""
    return Styled(text, "code")


def strong_link(text: str) -> Inline:
    """A text in bold; a link stays as it is because links are already emphasised."""
    return text if isinstance(text, Linked) else bold(text)


def verbatim(text: str) -> Styled:
    """A quoted text, isolated so that its own writing direction applies."""
    return Styled(text, "bdi")


def small(text: str) -> Styled:
    """A small line below the text."""
    return Styled(text, "sub")


def with_note(value: Inline, note: str = "") -> Inline:
    """A value with a small note below."""
    return (value, small(note)) if note else value


T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementIndex:
    """Look-ups of measurements; ``links`` maps an id to its row once rows are placed, ``cache`` holds results."""

    by_id: Mapping[str, Measurement]
    by_name: Mapping[str, Sequence[Measurement]]
    links: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    cache: dict[object, Any] = field(default_factory=dict, kw_only=True, repr=False)

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """The result of ``make``, computed once per ``key`` and cached in this index."""
        if key not in self.cache:
            self.cache[key] = make()
        cached: T = self.cache[key]
        return cached

    def get(self, name: str, dimension: str = "", /, **labels: str) -> Measurement | None:
        """The measurement, of a dimension, with exactly these other labels; None if there is none."""
        return self.by_id.get(measurement_id(name, {"dimension": dimension, **labels} if dimension else labels))

    def all(self, name: str, dimension: str = "", /, **labels: str) -> Sequence[Measurement]:
        """All measurements of a name that carry these labels."""
        labels |= {"dimension": dimension} if dimension else {}
        wanted, items = labels.items(), self.by_name.get(name, ())
        return self.once(
            ("all", name, *wanted),
            lambda: [item for item in items if all(item.labels.get(label) == is_ for label, is_ in wanted)],
        )

    def known(self, name: str, dimension: str = "", /, **labels: str) -> list[KnownValue]:
        """Those of `all` that have a value."""
        return [item for item in self.all(name, dimension, **labels) if known(item)]

    def value(self, name: str, dimension: str = "", /, **labels: str) -> float | None:
        """The value of a measurement; None if it is undefined or was not measured."""
        measurement = self.get(name, dimension, **labels)
        return None if measurement is None else measurement.value

    def link(self, item: Measurement | None, text: str) -> str:
        """The text, linked to the row of a measurement that has a value and a row; otherwise plain."""
        href = self.links.get(item.id) if known(item) else None
        return text if href is None else Linked(text, href)

    def linked(self, item: Measurement | None, form: Callable[[KnownValue], str] = estimate) -> str:
        """A measurement in the given form, linked to its row; if it has no value, the reason in words."""
        return self.link(item, form(item)) if known(item) else as_text(item)


def by_name(measurements: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    """Group measurements by name, in their order."""
    return grouped(measurements, lambda item: item.name)


@dataclass(frozen=True, slots=True)
class ClaimCell:
    """A value of a claim in a table. For an unsupported claim the value is always replaced by ``HATCHED``."""

    level: Level
    value: Inline

    def __post_init__(self) -> None:
        if self.level == "no-claim":
            object.__setattr__(self, "value", HATCHED)


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph: the answer below a heading (``lede``), a caption, a note, or a notice at the top of the page."""

    kind: ClassVar = "text"
    body: Inline
    style: str = "note"


@dataclass(frozen=True, slots=True)
class ClaimQuote:
    """A supported sentence with its condition; unsupported ones are refused. ``copy`` is the text for the clipboard."""

    kind: ClassVar = "quote"
    level: Level
    sentence: str
    condition: str = ""
    copy: str = ""
    id: str = ""

    def __post_init__(self) -> None:
        if self.level == "no-claim":
            raise ValueError("a sentence that is not supported is never quoted")


Segments = tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class WithheldGroup:
    """Several unsupported claims on one score: their subject, the reason in numbers, and how many claims they are.
    ``why`` is text in segments; a segment marked True is the limiting criterion and set in bold."""

    text: str
    why: Segments
    covers: int


Filter = tuple[str, str, str]
"""A button above a table: the key whose rows it shows (empty for all rows), its label, and the number of rows."""


def filter_id(key: str) -> str:
    """The id of the button for the rows of one key: a link to it shows these rows and no others."""
    return f"only-{content_id([key])[:10]}"


def row_filters(keys: Sequence[str], titles: Mapping[Any, str] | None = None) -> tuple[Filter, ...]:
    """A button for all rows, then one for each key that occurs, in the order of ``titles`` (else of the rows)."""
    seen = Counter(keys)
    named: Mapping[Any, str] = {key: key for key in seen} if titles is None else titles
    buttons = ((key, title, count(seen[key])) for key, title in named.items() if seen[key])
    return (("", "All", count(len(keys))), *buttons)


@dataclass(frozen=True, slots=True)
class PageRow:
    """A table row with its link target (``id``), filter keys (``key``, ``also``) and approximate ``size`` in bytes."""

    cells: tuple[Inline, ...]
    id: str = ""
    key: str = ""
    also: str = ""
    style: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below column heads. The first cell of a row is its row head; a row with one cell heads the rows after it."""

    kind: ClassVar = "table"
    columns: tuple[Inline, ...]
    rows: tuple[tuple[Inline, ...] | PageRow, ...]
    right: frozenset[int] = frozenset()  # columns of numbers
    summary: str = "The same as a table"  # it is folded under these words
    stacked: bool = False  # on a phone it becomes labelled blocks
    id: str = ""
    style: str = ""
    filters: tuple[Filter, ...] = ()
    search: str = ""  # the name of the search box
    label: str = ""
    styles: tuple[str, ...] = ()  # of the columns
    wide: bool = False  # it scrolls until it is stacked
    sorts: frozenset[int] = frozenset()  # columns that may be sorted: facts, never scores
    judges: tuple[JudgeWords, ...] | None = None  # the judges in its strips

    @property
    def all_right(self) -> bool:
        """True if every column but the first holds numbers, so that one style rule aligns them; False if stacked."""
        return not self.stacked and self.right >= frozenset(range(1, len(self.columns)))

    @property
    def column_styles(self) -> Sequence[str]:
        """The style of each column, for its head and its cells."""
        right = frozenset[int]() if self.all_right else self.right
        return self.styles or ["r" if at in right else "" for at in range(len(self.columns))]

    @property
    def lines(self) -> Iterator[PageRow]:
        """Every row as a `PageRow` with its attributes."""
        return (row if isinstance(row, PageRow) else PageRow(row) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure for a screen, a phone and perhaps a tablet, with the question that it answers and its caption. Without a
    drawing its caption is the reason why there is none."""

    kind: ClassVar = "figure"
    title: str
    caption: str
    wide: str = ""
    narrow: str = ""
    table: Table | None = None  # its numbers, unless a table is next to it
    values: Table | None = None  # the rows of its file, if there is no table below it
    judges: tuple[JudgeWords, ...] = ()  # the judges in it, if there are several
    mid: str = ""
    draw: Draw | None = None  # draws it again as a part of a larger picture
    desc: str = ""  # its text alternative
    note: str = ""
    brush: Brush | None = None  # reads a stretch of days
    data: str = ""  # a file of what it draws
    scales: tuple[str, str] | None = None  # the words for its linear and its logarithmic axis

    @property
    def rows(self) -> Table | None:
        """The table of values that is saved with the figure."""
        return self.values or self.table


def plot(
    name: str, title: str, caption: str, draw: Draw, desc: str = "", table: Table | None = None,
    values: Table | None = None, *, alt: str = "", width: float = HALF, tablet: bool = False,
    judges: tuple[JudgeWords, ...] = (), **more: Any,
) -> Figure:  # fmt: skip
    """A figure drawn at its ``width``, for a phone and perhaps for a ``tablet``; at the width of a phone one drawing is
    for every screen. ``alt`` is the title of the drawing if the question of the figure is another; the words of the
    ``judges`` describe it if ``desc`` does not."""
    desc, kinds = desc or text_alternative(judges), {"wide": width, "narrow": NARROW}
    if width == NARROW:
        kinds = {"both": NARROW}
    elif tablet:
        kinds["mid"] = MID
    wide, *others = (view(name, alt or title, desc, draw, kind, size) for kind, size in kinds.items())
    narrow, mid = (*others, "", "")[:2]
    return Figure(title, caption, wide, narrow, table, values, judges, mid, draw, desc, **more)


@dataclass(frozen=True, slots=True)
class Panels:
    """Small drawings on shared axes, each with a caption, or words where there is nothing to draw."""

    kind: ClassVar = "panels"
    panels: tuple[tuple[Inline, str], ...]
    style: Literal["multi", "tri"] = "multi"
    brush: Brush | None = None
    data: str = ""
    shared: str = ""


@dataclass(frozen=True, slots=True)
class ClaimList:
    """Claims of one level: supported sentences or groups; ``more`` is folded, ``rest`` links to all claims."""

    kind: ClassVar = "said"
    level: Level
    title: str
    claims: tuple[ClaimQuote | WithheldGroup, ...] = ()
    more: tuple[ClaimQuote | WithheldGroup, ...] = ()
    folded: str = ""
    rest: Inline = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms with their values, one per line; a value may have a small note below (``(value, small(note))``)."""

    kind: ClassVar = "facts"
    rows: tuple[tuple[str, Inline], ...]
    wide: bool = True


@dataclass(frozen=True, slots=True)
class Items:
    """A list of lines, of sentences, or of blocks."""

    kind: ClassVar = "items"
    items: tuple[Inline | ClaimQuote, ...]
    style: str = "list"


@dataclass(frozen=True, slots=True)
class Passage:
    """A verbatim text, such as a prompt or a reply. With a ``name`` it is folded."""

    kind: ClassVar = "passage"
    text: str
    name: str = ""
    style: str = "raw"


@dataclass(frozen=True, slots=True)
class Group:
    """Blocks below a smaller heading, or folded under the heading (``folded``)."""

    kind: ClassVar = "group"
    heading: Inline
    blocks: tuple[Block, ...]
    id: str = ""
    folded: Literal["", "closed", "open", "phone"] = ""
    key: str = ""
    also: str = ""
    style: str = ""
    level: Literal[2, 3] = 3


@dataclass(frozen=True, slots=True)
class Columns:
    """Blocks side by side where there is room, one column each: two, three, or a wide one with an aside."""

    kind: ClassVar = "beside"
    columns: tuple[tuple[Block, ...], ...]
    style: Literal["duo", "tri", "cols", "trio", "talk", "small3"] = "duo"


@dataclass(frozen=True, slots=True)
class Card:
    """A claim with its checks, as an entry of a list: its level, its subject, blocks, and facts at the bottom."""

    kind: ClassVar = "card"
    level: Level
    tag: str
    about: str
    blocks: tuple[Block, ...]
    facts: tuple[tuple[str, Inline], ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class CardList:
    """Claims, or groups of blocks, that can be filtered and searched."""

    kind: ClassVar = "listing"
    items: tuple[Card, ...] | tuple[Group, ...]
    filters: tuple[Filter, ...]
    search: str
    id: str


def beside(*blocks: Block, style: Literal["duo", "tri", "talk", "small3"] = "duo") -> Columns:
    """Blocks side by side, each in a column of its own."""
    return Columns(tuple((block,) for block in blocks), style)


Block: TypeAlias = (Prose | ClaimQuote | ClaimList | Table | Figure | Panels | Terms | Items | Passage | Group
                    | Columns | CardList | Markup)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page: a question, its answer, and the blocks that show it."""

    id: str
    heading: Inline
    lead: Inline = ""
    blocks: tuple[Block, ...] = ()
    tag: str = ""


def section(id_: str, heading: Inline, lead: Inline, *blocks: Block | Iterable[Block | None] | None) -> Section:
    """A section of the blocks that are not None."""
    listed = [block if isinstance(block, (tuple, list)) else (block,) for block in blocks]
    return Section(id_, heading, lead, tuple(block for group in listed for block in group if block is not None))


def table_of(
    columns: Sequence[Inline], rows: Iterable[tuple[Inline, ...] | PageRow], right: int | Iterable[int] = (),
    summary: str = "", **more: Any,
) -> Table | None:  # fmt: skip
    """A table of some rows, None without any. ``right`` are its numeric columns, or how many follow the first."""
    lines = tuple(rows)
    numbers = range(1, right + 1) if isinstance(right, int) else right
    return Table(tuple(columns), lines, frozenset(numbers), summary, **more) if lines else None


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its path, title and lead, the blocks before the first heading, and its sections."""

    path: str
    title: str
    lead: Inline = ""
    sections: tuple[Section, ...] = ()
    blocks: tuple[Block, ...] = ()
    parts: str = ""  # links between the parts of something long, above and below the sections
    heading: Inline = ""
    tallies: tuple[tuple[Level, str, str], ...] = ()  # how many claims reach each level, with the words
    up: Inline = ""
    contents: tuple[tuple[str, str], ...] = ()  # links to parts of the page, as (id, words)
    foot: Inline = ""  # in place of the last line of a page
    of: str = ""  # what the tallies of a first page are of
    under: Inline = ""
    notice: Inline = ""
    aside: tuple[Inline, ...] = ()  # beside the heading, such as the value of an account
    here: str = ""
    description: str = ""  # for previews, with the file of a picture
    picture: str = ""
    feeds: tuple[tuple[str, str], ...] = ()  # (type, file)
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ("page.js+tools.js",)

    def file_of(self, figure: Figure) -> str:
        """The path of a figure's files, relative to the run folder and without extension."""
        match = _NAMED.search(figure.wide)
        return f"figures/{self.path.removesuffix('.html').replace('/', '-')}-{match[1] if match else 'figure'}"

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure on the page that is drawn."""
        drawn: list[Figure] = []
        left: list[Any] = [self.sections, self.blocks]
        while left:
            part = left.pop()
            if isinstance(part, Figure):
                drawn += [part] if part.wide else []
            elif isinstance(part, tuple):
                left += reversed(part)
            elif isinstance(part, (Section, Group, Columns, CardList, Card)):
                left += [getattr(part, name, ()) for name in ("items", "columns", "blocks")]
        return tuple(drawn)


_NAMED: Final = re.compile(r'\bid="([A-Za-z0-9_-]+)"')
_ICON: Final = '<svg class="g {}" aria-hidden="true"><use href="#g-{}"/></svg>'
_SIZE: Final = ' style="--v:{}"'


def inline(value: Inline, root: str = "") -> Markup:
    """A line of text as escaped markup; ``root`` is prefixed to links, since they are relative to the report folder."""
    return Markup(html_of(value, root))


def escaped(text: str) -> str:
    """A text escaped as by `markupsafe.escape`, in a fifth of the time: a page has many thousands of texts."""
    if isinstance(text, Markup):
        return str(text)
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "<" in text:
        text = text.replace("<", "&lt;")
    if ">" in text:
        text = text.replace(">", "&gt;")
    if '"' in text:
        text = text.replace('"', "&#34;")
    return text.replace("'", "&#39;") if "'" in text else text


def html_of(value: Inline, root: str) -> str:
    """A line of text as HTML, built without a `Markup` object for each part."""
    if type(value) is str:
        return escaped(value)
    if type(value) is Markup:
        return str(value)
    if isinstance(value, tuple):
        return "".join([html_of(part, root) for part in value])
    if isinstance(value, Linked):
        return f'<a href="{escaped(root)}{escaped(value.href)}">{escaped(value)}</a>' if value.href else escaped(value)
    if isinstance(value, Styled):
        if value.style in ("b", "code", "bdi"):
            return f"<{value.style}>{escaped(value)}</{value.style}>"
        name = "wh" if value.style == "gap" else value.style
        attribute = 'lang="en"' if name == "en" else f'class="{name}"'
        return f"<span {attribute}>{escaped(value)}</span>"
    if isinstance(value, ClaimCell):
        return html_of(value.value, root)
    if isinstance(value, Share):
        words, below = html_of(value.value, root), html_of(small(value.below), root) if value.below else ""
        size = None if value.share is None else f"{min(max(value.share, 0.0), 1.0):.2f}"
        if value.style == "tint":
            attributes = ' un"' if size is None else f'"{_SIZE.format(size)}'
            return f'<span class="tint{attributes}>{words}{below}</span>'
        if size is None:
            return f'<span class="wh">{words}</span>'
        return f'<i class="bar"{_SIZE.format(size)}></i><b>{words}</b>{below}'
    if isinstance(value, Mark):
        icon = _ICON.format(escaped(value.style or value.name), escaped(value.name))
        style = f"lvw {value.name}" if value.name in LEVELS else value.style
        return f'<span class="{escaped(style)}">{icon} {escaped(value.word)}</span>' if value.word else icon
    return escaped(value)


def rows_markup(table: Table, root: str = "") -> Markup:
    """The rows of a table as markup; a loop over thousands of cells in a template takes three times as long."""
    begun = [f' class="{escaped(style)}"' if style else "" for style in table.column_styles]
    if table.stacked:
        begun = [f'{tag} data-l="{escaped(plain(head))}"' for tag, head in zip(begun, table.columns, strict=True)]
    lines = []
    for row in table.lines:
        first, *others = cells = [html_of(cell, root) for cell in row.cells]
        if len(cells) == 1 < len(table.columns):
            head = f'<th scope="rowgroup" colspan="{len(table.columns)}"><span>{cells[0]}</span></th>'
            lines.append(f'</tbody><tbody><tr class="gr">{head}</tr>\n')
            continue
        if table.stacked:
            others = [html if isinstance(cell, str) else f"<span>{html}</span>"
                      for cell, html in zip(row.cells[1:], others, strict=True)]  # fmt: skip
        pairs = zip(("data-k", "data-x", "id", "class"), (row.key, row.also, row.id, row.style), strict=True)
        attributes = "".join([f' {name}="{escaped(value)}"' for name, value in pairs if value])
        rest = "".join([f"<td{begun[at]}>{html}</td>" for at, html in enumerate(others, 1)])
        lines.append(f'<tr{attributes}><th scope="row">{first}</th>{rest}</tr>\n')
    return Markup("".join(lines))


def markup_of(block: Block, root: str = "", other: Callable[[Block], str] = str) -> Block:
    """A paragraph, a passage, facts, a group or columns as markup; any other block unchanged. ``other`` is the template
    of blocks, for those in a group or column. A page has thousands of them, and macros take three times as long."""
    if isinstance(block, Prose):
        return Markup(f'<p class="{escaped(block.style)}">{html_of(block.body, root)}</p>')
    if isinstance(block, Passage):
        text = f'<pre class="{escaped(block.style)}" tabindex="0">\n{escaped(block.text)}</pre>'
        return Markup(f"<details><summary>{escaped(block.name)}</summary>{text}</details>" if block.name else text)
    if isinstance(block, Terms):
        rows = [f"<div><dt>{escaped(term)}</dt><dd>{html_of(value, root)}</dd></div>" for term, value in block.rows]
        return Markup(f'<dl class="facts{" run" if block.wide else ""}">{"".join(rows)}</dl>')
    if isinstance(block, Columns):
        tags = ["aside" if at and block.style == "cols" else "div" for at in range(len(block.columns))]
        pairs = zip(tags, block.columns, strict=True)
        columns = [f"<{tag}>{markup_in(column, root, other)}</{tag}>" for tag, column in pairs]
        return Markup(f'<div class="{escaped(block.style)}">{"".join(columns)}</div>')
    if not isinstance(block, Group):
        return block
    heading, inner = html_of(block.heading, root), str(markup_in(block.blocks, root, other))
    named = (("class", block.style), ("id", block.id), ("data-k", block.key), ("data-x", block.also))
    attributes = "".join([f' {name}="{escaped(value)}"' for name, value in named if value])
    if block.folded:
        state = {"open": " open", "phone": ' class="fold"'}.get(block.folded, "")
        return Markup(f"<details{state}{attributes}><summary>{heading}</summary>{inner}</details>\n")
    inner = f"<h{block.level}>{heading}</h{block.level}>{inner}" if block.heading else inner
    return Markup(f"<section{attributes}>{inner}</section>\n" if block.id or block.style else f"{inner}\n")


def markup_in(blocks: Iterable[Block], root: str = "", other: Callable[[Block], str] = str) -> Markup:
    """Blocks one below the other as markup."""
    made = [(block, markup_of(block, root, other)) for block in blocks]
    return Markup("".join([f"{html}\n" if isinstance(html, Markup) else other(block) for block, html in made]))


def plain(value: Inline) -> str:
    """The words of a line without links, icons or drawings."""
    if isinstance(value, tuple):
        return "".join(plain(part) for part in value)
    if isinstance(value, ClaimCell):
        return plain(value.value)
    if isinstance(value, Share):
        return " ".join(filter(None, (value.value, value.below)))
    if isinstance(value, Mark):
        return value.word
    return "" if isinstance(value, Markup) else str(value)


def chained(parts: Iterable[Inline], between: str = "; ") -> Inline:
    """Several lines joined into one by a separator."""
    return tuple(piece for part in parts for piece in (between, part))[1:]


def notes(lines: Sequence[Inline], style: Literal["note", "notice", "cap"] = "note") -> tuple[Prose, ...]:
    """A paragraph for each line that is not empty."""
    return tuple(Prose(line, style) for line in lines if line)


def row_bytes(markup: int, texts: Iterable[str]) -> int:
    """Size of a row in bytes: its markup and its texts, escaped and encoded."""
    return markup + len(escaped("".join(texts)).encode(errors="surrogatepass"))


def byte_size(part: object) -> int:
    """Approximate size of part of a page in bytes: its texts, escaped, and markup around each."""
    if isinstance(part, str):
        return row_bytes(30, (part,)) if part else 0
    if isinstance(part, tuple):
        return sum(map(byte_size, part))
    return 20 + sum(byte_size(getattr(part, slot.name)) for slot in fields(part)) if is_dataclass(part) else 0
