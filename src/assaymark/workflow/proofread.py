"""`assaymark gate` and `assaymark proofread`: check a claim, or the sentences of texts, against a finished run."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape, unescape
from pathlib import Path, PurePath
from textwrap import wrap
from typing import Any, Final, Literal
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from assaymark import __version__
from assaymark.claims.certification import VERDICTS_FORMAT, VerdictFile
from assaymark.claims.messages import listing
from assaymark.claims.proofread import (
    HEADS,
    MARKS,
    Mark,
    RunVerdicts,
    TextCheck,
    claim_text,
    proofread_sentence,
    rejection_reason,
    statement_key,
)  # fmt: skip
from assaymark.claims.sentences import LONGEST, Relation, RunNames, name_key, pattern
from assaymark.errors import InputError, Problem, UnknownNameError, foreign_format, problems_of
from assaymark.records import AGGREGATE, Level, measurement_id, write_atomic
from assaymark.text import clean, visible
from assaymark.workflow.run_folder import RunFolder, missing, read_text
from assaymark.workflow.tables import MEASUREMENTS, Store

MOST_BYTES: Final = 8_000_000
"""Maximum size of a text in bytes."""

_MARKS: Final[Mapping[Mark, tuple[str, str, str]]] = {
    "x": ("Supported", "", ""), "/": ("Only with its condition", "condition-missing", "warning"),
    "-": ("Not supported", "not-supported", "error"), "!": ("Contradicted", "contradicted", "error"),
    "?": ("Not decided by this run", "not-decided", "note"),
}  # fmt: skip
"""Each mark in words, with its SARIF rule and level."""

_WIDTH: Final = 80
_INDENT: Final = " " * 11
_TABLE: Final = re.compile(r"(?m)(?:^[ \t]*\|.*\n?){3,}")
_NOT_READ: Final = "a table is read cell by cell; compare its numbers with the report"
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"

# --- The sentences of Markdown, HTML, LaTeX and plain text ------------------------------------------------------------

# Text that is not prose is overwritten by characters of the same number, so that positions stay valid.

Form = Literal["markdown", "html", "latex", "text"]

_FORMS: Final[dict[str, Form]] = {
    **dict.fromkeys((".md", ".markdown", ".mdx", ".qmd", ".rmd", ".mdown"), "markdown"),
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"), **dict.fromkeys((".tex", ".ltx"), "latex"),
}  # fmt: skip
_GONE, _BREAK = "\x00", "\x1e"
_INLINE: Final = ("a", "abbr", "b", "cite", "del", "em", "font", "i", "ins", "mark", "q", "s", "small", "span",
                  "strong", "sub", "sup", "time", "tt", "u", "var")  # fmt: skip
_CODE: Final = ("code", "kbd", "samp")
_UNREAD: Final = (*_CODE, "math", "noscript", "pre", "script", "style", "svg", "template", "textarea")
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)(?:\s[^<>]*|/)?>")
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});")
_URL: Final = re.compile(r"<?\b(?:https?://|www\.)[^\s<>)\]]+>?")
_MARKER: Final = re.compile(r"[ \t]*(?:[-*+•][ \t]+|\d{1,4}[.)][ \t]+|#{1,6}[ \t]+)(?:\[[ xX]\][ \t])?")
_QUOTE: Final = re.compile(r"[ \t]{0,3}>[ \t]?")
_FENCE: Final = re.compile(r"[ \t]*(?:>[ \t]?)*[ \t]*(`{3,}|~{3,})")
_RULE: Final = re.compile(r"[ \t]*(?:=+|-{2,}|(?:\*[ \t]*){3,}|_{3,})[ \t]*\r?$")
_DEFINITION: Final = re.compile(r"[ \t]{0,3}\[[^\]\n]{1,200}\]:[ \t]")
_MARKDOWN: Final = re.compile(
    r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:[ \t]+\"[^\"\n]*\")?\)|\]\[[^\]\n]{0,200}\]|\[[\d,\s–-]{1,20}\]|"
    r"\[\^[^\]\n]{1,40}\]|!?\[|\]|\*+|~~|(?<!\w)_+|_+(?!\w)|\\(?=[!-/:-@\[-`{-~])"
)
_LATEX: Final = re.compile(
    r"(?<!\\)%[^\n]*|\\(?:cite\w*|[a-z]*ref|label|url|includegraphics|input|include|bibliography\w*|usepackage|documentclass|"
    r"begin|end|vspace|hspace|setlength|color)\*?(?:\[[^\]\n]*\])?(?:\{[^{}]*\})?|"
    r"\\[a-zA-Z]+\*?(?:\[[^\]\n]*\])?[ \t]?|[{}$]|``|''|\\(?=[%&_#$])|\\[,;:! ]"
)
_LATEX_SIGNS: Final = {"\\kappa": "κ", "\\Delta": "Δ", "\\approx": "≈", "\\pm": "±", "\\,": " ", "\\;": " ", "\\": " "}
_LATEX_BREAKS: Final = re.compile(r"\\(?:(?:sub)*section|paragraph|chapter|item|caption|title|begin|end)\b")
_TITLE: Final = re.compile(r"\\(?:(?:sub)*section|paragraph|chapter|title|caption)\*?\{[^{}\n]{0,500}\}")
_VERBATIM: Final = re.compile(r"\\begin\{(verbatim|lstlisting|minted|equation\*?|align\*?|tabular[*x]?|tikzpicture)\}")
_END: Final = re.compile(r"[.!?…]+[\"'”’)\]\x00]*(?=\s|$)")
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:vs|e\.g|i\.e|et al|cf|figs?|secs?|eqs?|tab|approx|ca|dr|mr|ms|mrs|prof|inc|ltd|resp|vol|pp|st|etc|no)|"
    r"(?<!\w)[A-Z])\.$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """One sentence as read, its span in the document, and its block of text."""

    text: str
    start: int
    end: int
    block: int


@dataclass(frozen=True)
class Document:
    """A text with its format; `proofread` returns it with its findings, in order.

    ``keep`` is true for inline code that is read as prose, because it is the name of an agent.
    """

    path: Path
    text: str
    form: Form
    keep: Callable[[str], bool]
    found: tuple[PlacedFinding, ...] = ()

    def sentences(self) -> Iterator[SentenceSpan]:
        """Yield every sentence of its prose, in order."""
        for block, segment in enumerate(re.finditer(f"[^{_BREAK}]+", "".join(self._overlaid()))):
            begin, text, at = segment.start(), segment[0], 0
            for stop in [*_END.finditer(text), None]:
                end = len(text) if stop is None else stop.end()
                before = "" if stop is None else text[max(at, stop.start() - 12) : stop.start() + 1]
                if _ABBREVIATED.search(before.replace(_GONE, "")):
                    continue
                inner = text[at:end]
                first = len(inner) - len(inner.lstrip(f" \t\r\n\ufeff{_GONE}"))
                last = len(inner.rstrip(f" \t\r\n{_GONE}"))
                if last > first:
                    words = inner[first:last].replace(_GONE, "")
                    yield SentenceSpan(words, begin + at + first, begin + at + last, block)
                at = end

    def fixed(self) -> str:
        """Return the text with missing conditions added and unsupported sentences replaced by nearby supported ones."""
        text = self.text
        for placed in reversed(self.found):
            finding, place = placed.finding, self.replaceable(placed.start, placed.end)
            if finding.mark == "/" and finding.add:
                end = placed.end if place is None else place[1]
                stop = "" if text[placed.start : placed.end].rstrip("*_`\"'”’)").endswith((".", "!", "?", "…")) else "."
                text = text[:end] + stop + " " + self.escaped(" ".join(finding.add)) + text[end:]
            elif finding.mark in "-!" and finding.write and place is not None and finding.about == "comparison":
                text = text[: place[0]] + self.escaped(" ".join((finding.write, *finding.also))) + text[place[1] :]
        return text

    def replaceable(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the span of a sentence with the markup that opens or closes in it; None if it cannot be cut out."""
        text = self.text
        before = re.search(r"(?:[*_`~\[!]|<\w[^<>]{0,200}>){0,8}$", text[max(0, start - 400) : start])
        after = re.match(r"(?:[*_`~]|\][(\[][^\s()\[\]]{0,300}[)\]]|</\w{1,20}>){0,8}", text[end : end + 400])
        begin, finish = start - len(before[0] if before else ""), end + len(after[0] if after else "")
        for place in ((start, end), (begin, end), (start, finish), (begin, finish)):
            cut = text[slice(*place)]
            pairs = cut.count("[") == cut.count("]") and cut.count("<") - cut.count("</") == cut.count("</")
            if self.form in ("latex", "text") or (pairs and not any(cut.count(sign) % 2 for sign in ("**", "`", "~~"))):
                return place
        return None

    def escaped(self, text: str) -> str:
        """Escape a sentence for the format of this document."""
        if self.form == "latex":
            return re.sub(r"([%&_#$])", r"\\\1", text)
        return escape(text, quote=False) if self.form == "html" else text.replace("<", "&lt;")

    def _overlaid(self) -> Iterator[str]:
        """Return the characters of the text, with spaces and markers in place of everything that is not prose."""
        text, chars = self.text, list(self.text)
        marked, tagged = self.form == "markdown", self.form in ("markdown", "html")
        if self.form == "latex":  # remove commands; section commands and empty lines end a block
            at = 0
            while match := _VERBATIM.search(text, at):
                end = text.find(f"\\end{{{match[1]}}}", match.end())
                at = len(text) if end < 0 else end
                _fill(chars, match.start(), at)
                chars[match.start()] = _BREAK
            for match in _LATEX.finditer("".join(chars)):
                _fill(chars, *match.span(), _GONE)
                chars[match.start()] = _LATEX_SIGNS.get(match[0].strip(), chars[match.start()])
                if _LATEX_BREAKS.match(match[0]):
                    chars[match.start()] = _BREAK
            for match in _TITLE.finditer(text):
                chars[match.end() - 1] = _BREAK
            empty = re.compile(r"\n[ \t]*(?=\r?\n)")
            chars = list(empty.sub(lambda one: _BREAK + _GONE * (len(one[0]) - 1), "".join(chars)).replace("~", " "))
        head = re.match(r"(---|\+\+\+)[ \t]*\r?\n", text) if marked else None
        if head and (end := text.find(f"\n{head[1]}", head.end() - 1)) >= 0:
            _fill(chars, 0, end + 4)
        at = 0
        while tagged and (begin := text.find("<!--", at)) >= 0:
            end = text.find("-->", begin + 4)
            at = len(text) if end < 0 else end + 3
            _fill(chars, begin, at)
        if self.form in ("markdown", "text"):
            self._lines(chars, marked)
        if marked:
            self._code_spans(chars)
        if tagged:
            self._tags(chars)
        for match in _MARKDOWN.finditer("".join(chars)) if marked else ():
            if match[0].startswith("![") or not match[0].isspace():
                _fill(chars, *match.span(), _GONE)
        joined = "".join(chars)
        for match in _URL.finditer(joined):
            _fill(chars, *match.span())
        for match in _ENTITY.finditer(joined) if tagged else ():
            _fill(chars, *match.span(), _GONE)
            chars[match.start()] = unescape(match[0])[:1]
        return (char if char >= " " or char in (_GONE, _BREAK, "\n", "\t") else " " for char in chars)

    def _lines(self, chars: list[str], marked: bool) -> None:
        """Split lines into blocks (paragraphs, items, headings, table cells); blank out fenced and indented code."""
        fence, blank, quoted, item, at = "", True, False, False, 0
        for line in self.text.split("\n"):
            end = at + len(line)
            opened = _FENCE.match(line) if marked else None
            indented = line.startswith(("    ", "\t"))
            if fence:
                _fill(chars, at, end)
                fence = "" if opened and opened[1].startswith(fence) and not line[opened.end() :].strip() else fence
            elif opened:
                fence = opened[1]
                _fill(chars, at, end, _BREAK)
            elif not line.strip(" \t\r>" if marked else " \t\r"):
                _fill(chars, at, end, _GONE)
                if end < len(chars):
                    chars[end] = _BREAK
                blank = True
            elif marked and ((blank and indented and not item) or _DEFINITION.match(line) or _RULE.match(line)):
                _fill(chars, at, end, _BREAK if _RULE.match(line) else " ")
            else:
                # The marker at the start of the line: quote, list item or heading, table row.
                quote = _QUOTE.match(line) if marked else None
                inner = 0 if quote is None else quote.end()
                _fill(chars, at, at + inner, _GONE if quoted else _BREAK)
                if (mark := _MARKER.match(line, inner)) is not None:
                    _fill(chars, at + inner, at + mark.end(), _BREAK)
                    if "#" in mark[0] and end < len(chars):
                        chars[end] = _BREAK
                if marked and line.lstrip(" \t").startswith("|"):
                    for place in [at, *(at + match.start() for match in re.finditer(r"\|", line))]:
                        chars[place] = _BREAK
                item = (mark is not None and "#" not in mark[0]) or (item and indented)
                quoted, blank = quote is not None, False
            at = end + 1

    def _code_spans(self, chars: list[str]) -> None:
        """Blank out inline code, except the names of agents."""
        ticks, places, until = list(re.finditer("`+", "".join(chars))), dict[int, list[int]](), 0
        for tick in ticks:
            places.setdefault(len(tick[0]), []).append(tick.start())
        for tick in ticks:
            same = places[len(tick[0])]
            after = bisect_right(same, tick.start())
            if tick.start() < until or after == len(same) or same[after] - tick.end() > LONGEST:
                continue
            close, until = same[after], same[after] + len(tick[0])
            if self.keep(code := self.text[tick.end() : close].strip()) or re.fullmatch(r"[+−-]?\d*[.,]?\d+", code):
                _fill(chars, *tick.span(), _GONE)
                _fill(chars, close, until, _GONE)
            elif _BREAK not in chars[tick.start() : close]:
                _fill(chars, tick.start(), until)

    def _tags(self, chars: list[str]) -> None:
        """Remove inline tags, let other tags end a block, and blank out elements that are not prose."""
        text = "".join(chars)
        lower, until = text.lower(), 0
        for tag in _TAG.finditer(text):
            name = tag[2].lower()
            if tag.start() < until:
                continue
            _fill(chars, *tag.span(), _GONE)
            if name in _UNREAD and not tag[1] and not tag[0].endswith("/>"):
                close = lower.find(f"</{name}", tag.end())
                until = len(text) if close < 0 else close
                if not (name == "code" and self.keep(text[tag.end() : until].strip())):
                    _fill(chars, tag.end(), until)
            if name not in _INLINE and name not in _CODE:
                chars[tag.start()] = _BREAK


def form_of(name: str) -> Form:
    """Return the format of a file by its suffix: Markdown, HTML, LaTeX, or else plain text."""
    return _FORMS.get(PurePath(name).suffix.lower(), "text")


def _fill(chars: list[str], start: int, end: int, sign: str = " ") -> None:
    """Overwrite a span with ``sign``; newlines stay, unless it is removed (`_GONE`)."""
    if end > start:
        chars[start:end] = [sign if char != "\n" or sign == _GONE else char for char in chars[start:end]]


# --- the run ----------------------------------------------------------------------------------------------------------


def read_decided(path: Path, aliases: Sequence[str] = ()) -> RunVerdicts:
    """Read the verdicts of a run folder or of a ``verdicts.json``; each alias is written ``NAME=AGENT``."""
    folder = RunFolder(path)
    file = path if path.is_file() else folder.verdicts
    if not path.exists():
        raise missing(path, "run folder")
    if not file.is_file():
        verb = "report" if folder.check.is_file() else "claim"  # of a checked table
        raise InputError(str(path), [f"has no verdicts.json; run: assaymark {verb} {path}"])
    try:
        saved = TypeAdapter(VerdictFile).validate_json(read_text(file, "file of verdicts"))
    except ValidationError as exc:
        raise InputError(str(file), problems_of(exc)) from None
    if saved.format != VERDICTS_FORMAT:
        raise InputError(str(file), [Problem("format", f"must be {VERDICTS_FORMAT!r} (got {saved.format!r:.80})")])
    compared = (verdict.claim for verdict in saved.verdicts if verdict.claim.id.startswith(("first[", "above[")))
    scores = tuple(dict.fromkeys(claim.dimension for claim in compared))
    agents, alias_of = tuple(saved.agents), dict[str, str]()
    for alias in aliases:
        name, equals, agent = (part.strip() for part in alias.partition("="))
        if not equals or not name:
            raise InputError("--alias", [f'must be "NAME=AGENT" (got {alias!r:.80})'])
        if agent not in agents:
            raise UnknownNameError("agent", agent, agents)
        alias_of[name] = agent
    names = RunNames(agents, scores, alias_of)
    items = saved.measurements.values()
    contrasts = [item for item in items if item.name == "contrast"]
    sizes = {
        "judges": len(saved.panel.judges), "agents": len(saved.agents), "dimensions": len({*scores} - {AGGREGATE}),
        "decisions": max((item.n for item in items if item.name == "kappa.mean_pairwise"), default=0),
        "cycles": max((item.n for item in contrasts), default=0),
        "clusters": max((int(item.detail.get("clusters", 0)) for item in contrasts), default=0),
    }  # fmt: skip
    counts = {noun: size for noun, size in sizes.items() if size}
    stored = Store(folder).stored(MEASUREMENTS) if path.is_dir() else ()
    levels = (item for item in stored if item.name in ("score.effect", "season.total"))
    measured = {**saved.measurements, **{measurement_id(item.name, item.labels): item for item in levels}}
    return RunVerdicts(names, saved.verdicts, measured, saved.ranks, counts, judged=bool(saved.panel.judges))


# --- the gate ---------------------------------------------------------------------------------------------------------

GRAMMAR: Final = "A > B, A < B, A ~ B or A first, with “on SCORE” if it is not the overall score, or the id of a claim"


def parse_claim(text: str, run: RunVerdicts) -> tuple[Relation, str]:
    """Parse a claim in `GRAMMAR`, or look up a claim id of ``verdicts.json``; returns its relation and score."""
    text = " ".join(text.split())
    for verdict in run.verdicts:
        head = verdict.claim.id.partition("[")[0]
        if text == verdict.claim.id and head in HEADS:
            subjects = verdict.claim.subjects
            return Relation(HEADS[head], subjects[:1], subjects[1:]), verdict.claim.dimension
    if written := re.fullmatch(r"([\w.]+)\[.*\]", text):
        ids = [verdict.claim.id for verdict in run.verdicts]
        raise UnknownNameError("claim", text, [one for one in ids if one.startswith(f"{written[1]}[")] or ids)
    head, on, score_name = text.rpartition(" on ")
    body, scored = (head, score_name) if on else (text, "")
    match = pattern("gate_claim").fullmatch(body)
    if match is None:
        raise InputError("--claim", [Problem("", f"must be {GRAMMAR} (got {text!r:.120})")])
    plain = name_key(scored.strip().removeprefix("the "))
    overall = dict.fromkeys(("", "overall", "overallscore", "aggregate", "aggregatescore"), AGGREGATE)
    phrases: dict[str, str] = {}
    for name in (run.main, *run.names.scores):
        said = run.words(name).removeprefix("the ")
        for phrase in (said, re.sub(r" in these \d+ windows$", "", said), said.partition(" over all ")[0]):
            phrases.setdefault(name_key(phrase), name)
    score = (phrases | {name_key(name): name for name in run.names.scores[::-1]} | overall).get(plain)
    if score is None:
        raise UnknownNameError(
            "score", scored, ("the overall score", *(one.replace("_", " ") for one in run.names.scores))
        )
    agents, keys = list[str](), {name_key(agent): agent for agent in run.names.agents} | dict(run.names.by_key)
    for plain in (name.strip(" '\"") for name in (match["a"] or match["first"], match["b"]) if name):
        agent = plain if plain in run.names.agents else keys.get(name_key(plain))
        if agent is None:
            raise UnknownNameError("agent", plain, run.names.agents)
        agents.append(agent)
    if len(set(agents)) < len(agents):
        raise InputError("--claim", [Problem("", f"names one agent twice ({agents[0]})")])
    if len(agents) == 1:
        return Relation("first", (agents[0],)), run.score(score)
    sign = match["op"] or ("<" if match["word"].lower() == "below" else ">")
    if sign in "~≈":
        return Relation("level", (agents[0],), (agents[1],)), run.score(score)
    high, low = agents if sign == ">" else agents[::-1]
    return Relation("above", (high,), (low,)), run.score(score)


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """Result of checking a claim against a required level."""

    passed: bool
    mark: Mark
    level: Level
    sentence: str
    why: str
    conditions: tuple[str, ...]


def gate_claim(text: str, run: RunVerdicts, at_least: Level = "headline") -> ClaimCheck:
    """Check whether a run supports a claim at a level; an unsupported claim is named without its direction."""
    by_id = {verdict.claim.id: verdict for verdict in run.verdicts}
    named = by_id.get(text.strip()) or run.by_statement.get(statement_key(text))
    if named is not None and named.claim.id.partition("[")[0] not in HEADS:
        reached = named.publication_level
        if reached == "no-claim":
            return ClaimCheck(False, "-", reached, f"The claim {named.claim.id}.", rejection_reason(named), ())
        conditions = tuple(condition.text for condition in named.conditions)
        return ClaimCheck(reached in ("headline", at_least), MARKS[reached], reached, claim_text(named), "", conditions)
    relation, score = parse_claim(named.claim.id if named is not None else text, run)
    mark, reason, by = run.rule(relation, score)
    if mark not in ("x", "/"):
        names, phrase = listing(sorted({*relation.left, *relation.right})), run.words(score)
        about = {"first": f"A first rank for {names}", "level": f"That {names} score alike"}
        sentence = f"{about.get(relation.kind, f'Any ranking of {names}')} on {phrase}."
        reason = f"the run supports “{claim_text(by[0])}”" if mark == "!" and by else reason
        return ClaimCheck(False, mark, "no-claim", sentence, reason, ())
    level: Level = "headline" if mark == "x" else "qualified"
    conditions = tuple(dict.fromkeys(condition.text for verdict in by for condition in verdict.conditions))
    return ClaimCheck(level in ("headline", at_least), mark, level, " ".join(map(claim_text, by)), "", conditions)


def gate_lines(gated: ClaimCheck, at_least: str) -> list[str]:
    """Return the line that `assaymark gate` prints."""
    conditions = f" Say also: {' '.join(gated.conditions)}" if gated.conditions else ""
    reason = f" {gated.why[:1].upper()}{gated.why[1:]}." if gated.why else conditions
    needed = "" if gated.passed else f"; {at_least} needed"
    return [clean(f"[{gated.mark}] {gated.level}{needed}: {gated.sentence}{reason}")]


@dataclass(frozen=True, slots=True)
class PlacedFinding:
    """A finding with its sentence and span; lines and columns start at 1, ``end_column`` is exclusive."""

    file: str
    sentence: str
    finding: TextCheck
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def fails(self) -> bool:
        """True if the text has to be changed."""
        return self.finding.mark in "/-!"

    @property
    def message(self) -> str:
        """The mark, the reason, and the text to write, in one line."""
        return " ".join(f"{label} {text}".strip() for label, text in _finding_parts(self.finding))

    @property
    def view(self) -> dict[str, Any]:
        """The finding as JSON."""
        one = self.finding
        return {
            "file": self.file, "line": self.line, "column": self.column, "end_line": self.end_line,
            "end_column": self.end_column, "sentence": self.sentence, "mark": one.mark, "about": one.about,
            "why": one.why, "level": one.level, "add": list(one.add), "write": one.write, "also": list(one.also),
        }  # fmt: skip


def read_document(path: Path, run: RunVerdicts) -> Document:
    """Read a text file given by the user, with its line endings unchanged."""
    if not path.exists():
        raise missing(path, "file")
    problem, text = "" if path.is_file() else "is no file", ""
    if not problem and (size := path.stat().st_size) > MOST_BYTES:
        problem = f"is {size:,} bytes; at most {MOST_BYTES:,} are read"
    elif not problem:
        raw = path.read_bytes()
        try:
            text = raw.decode("utf-8")
            problem = "is not text: it contains NUL bytes" if "\x00" in text else ""
        except UnicodeDecodeError as exc:
            problem = foreign_format(raw[:8]) or f"is not UTF-8 text (byte {exc.start})"
    if problem:
        raise InputError(str(path), [problem])

    def keep(code: str) -> bool:
        return len(code) <= LONGEST and any(
            (start, end) == (0, len(code)) for start, end, _ in run.names.mentions(code)
        )

    return Document(path, text, form_of(path.name), keep)


def proofread(document: Document, run: RunVerdicts) -> Document:
    """Check every sentence of a text against the verdicts of a run."""
    ends = [match.start() for match in re.finditer("\n", document.text)]
    findings: list[PlacedFinding] = []

    def place(sentence: SentenceSpan, finding: TextCheck) -> None:
        first, last = bisect_left(ends, sentence.start), bisect_left(ends, sentence.end)
        begins = [ends[line - 1] + 1 if line else 0 for line in (first, last)]
        columns = sentence.start - begins[0] + 1, sentence.end - begins[1] + 1
        text = clean(sentence.text, 1000)
        span = first + 1, columns[0], last + 1, columns[1]
        findings.append(PlacedFinding(str(document.path), text, finding, sentence.start, sentence.end, *span))

    sentences, before = list(document.sentences()), tuple[str, ...]()
    for at, sentence in enumerate(sentences):
        if at and sentences[at - 1].block != sentence.block:
            before = ()
        following = [other.text for other in sentences[at + 1 : at + 12] if other.block == sentence.block]
        finding = proofread_sentence(sentence.text, run, following, before)
        if len(sentence.text) <= LONGEST:
            before = tuple(dict.fromkeys(agent for *_, agent in run.names.mentions(sentence.text))) or before
        elif next(run.names.mentions(sentence.text[: 10 * LONGEST]), None):
            finding = TextCheck("?", f"a sentence of {len(sentence.text):,} characters is not read")
        if finding is not None:
            place(sentence, finding)
    for rows in _TABLE.finditer(document.text) if document.form == "markdown" else ():
        inside = any(rows.start() <= sentence.start < rows.end() for sentence in sentences)
        if inside and re.search(r"\d", rows[0]) and len({agent for *_, agent in run.names.mentions(rows[0])}) > 1:
            head, end = rows[0].strip().partition("\n")[0], rows.start() + len(rows[0].partition("\n")[0])
            place(SentenceSpan(head, rows.start(), end, 0), TextCheck("?", _NOT_READ))
    return replace(document, found=tuple(sorted(findings, key=lambda placed: placed.start)))


def fix(text: Document, run: RunVerdicts) -> tuple[Document, list[str]]:
    """Write the fixed text and proofread it again; returns the new findings, and the changes as a diff."""
    new = text.fixed()
    if new == text.text:
        return text, []
    target = text.path.resolve()
    mode = target.stat().st_mode
    write_atomic(target, new)
    target.chmod(mode)
    name = clean(str(text.path))
    changes = difflib.unified_diff(text.text.splitlines(), new.splitlines(), name, name, n=0, lineterm="")
    shown = [visible(line) for line in changes]
    return proofread(replace(text, text=new), run), shown


# --- output -----------------------------------------------------------------------------------------------------------


def _finding_parts(finding: TextCheck) -> Iterator[tuple[str, str]]:
    """Yield the parts of a finding with their labels: mark and reason, then the text to add or write."""
    reason, mark = clean(finding.why), f"[{finding.mark}]"
    head = "The condition is missing" if finding.mark == "/" else _MARKS[finding.mark][0]
    if finding.mark == "!" and reason.startswith("the number differs"):
        yield mark, reason[:1].upper() + reason[1:] + "."
    else:
        yield mark, f"{head}{';' if finding.mark in 'x/' else ':'} {reason}." if reason else f"{head}."
    if finding.add:
        yield "Add", f'"{clean(" ".join(finding.add))}"'
    if finding.write:
        yield "Write", f'"{clean(finding.write)}"'
    elif finding.mark == "-" and finding.about == "comparison":
        yield "", "No nearby sentence is supported."
    if finding.also:
        yield "Say also:", clean(" ".join(finding.also))


def proofread_lines(texts: Sequence[Document], run: RunVerdicts, *, fixing: bool = False) -> Iterator[str]:
    """Yield the terminal output: each sentence with its line and mark, at most 80 columns wide, and the counts."""
    if run.names.common:
        names = ", ".join(run.names.common)
        text = f'Not looked for, because their names are common words: {names}; give --alias "NAME=AGENT".'
        yield from wrap(clean(text), _WIDTH)

    def wrapped(text: str, first: str, rest: str) -> list[str]:
        return wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)

    for one_text in texts:
        several = len(one_text.found)
        verb, quotes = ("sentence compares", "quotes") if several == 1 else ("sentences compare", "quote")
        yield f"{clean(str(one_text.path))}: {several} {verb} agents or {quotes} a number of this run"
        if several:
            yield ""
        for placed in one_text.found:
            head = f"  line {placed.line:<4}"
            if placed.finding.mark == "x":
                room = _WIDTH - len(head) - len("   [x] matches")
                yield f"{head}{clean(placed.sentence, room):<{room}}   [x] matches"
                continue
            yield from wrapped(clean(placed.sentence, 300), head, _INDENT)
            for label, text in _finding_parts(placed.finding):
                first = _INDENT + (f"{label:<7}" if label in ("Add", "Write") else f"{label} " if label else "")
                first = f"     {label:<6}" if label.startswith("[") else first
                yield from wrapped(text, first, " " * len(first) if label in ("Add", "Write") else _INDENT)
        if several:
            yield ""
    every = [placed for text in texts for placed in text.found]
    failing, undecided = sum(placed.fails for placed in every), sum(placed.finding.mark == "?" for placed in every)
    matching = len(every) - failing - undecided
    match = "matches" if matching == 1 else "match"
    yield f"{failing} to change, {undecided} not decided, {matching} {match}.   Exit status {int(failing > 0)}"
    if failing and not fixing:
        yield "Write the changes: --fix   For pull requests: --format github   JSON: --json"


def github_lines(texts: Sequence[Document]) -> Iterator[str]:
    """Yield workflow commands with which GitHub annotates a pull request."""

    def value(text: str, inside: bool = True) -> str:
        escaped = clean(text).replace("%", "%25")
        return escaped.replace(":", "%3A").replace(",", "%2C") if inside else escaped

    for placed in (placed for text in texts for placed in text.found if placed.finding.mark != "x"):
        words, _, level = _MARKS[placed.finding.mark]
        place = f"line={placed.line},endLine={placed.end_line},col={placed.column},endColumn={placed.end_column}"
        head = f"::{'notice' if level == 'note' else 'error'} file={value(placed.file)},{place}"
        yield f"{head},title={value(f'assaymark: {words}')}::{value(placed.message, False)}"


def sarif(texts: Sequence[Document]) -> dict[str, Any]:
    """Return the findings as SARIF 2.1.0, the format of code hosts."""
    rules = [
        {"id": name, "shortDescription": {"text": f"{words}."}, "defaultConfiguration": {"level": level}}
        for words, name, level in _MARKS.values() if name
    ]  # fmt: skip
    results = []
    for hit in (placed for text in texts for placed in text.found if placed.finding.mark != "x"):
        _, rule, level = _MARKS[hit.finding.mark]
        region = {
            "startLine": hit.line, "startColumn": hit.column, "endLine": hit.end_line, "endColumn": hit.end_column,
            "snippet": {"text": hit.sentence},
        }  # fmt: skip
        path = Path(hit.file)
        uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
        place = {"artifactLocation": {"uri": uri}, "region": region}
        message = {"text": hit.message}
        results.append({"ruleId": rule, "level": level, "message": message, "locations": [{"physicalLocation": place}]})
    driver = {"name": "assaymark", "version": __version__, "rules": rules}
    return {
        "$schema": _SARIF, "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }  # fmt: skip
