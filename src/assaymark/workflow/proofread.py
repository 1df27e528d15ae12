"""`assaymark gate` and `assaymark proofread`: a claim, or the sentences of texts, held against a finished run."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import wrap
from typing import Any, Final
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from assaymark import __version__
from assaymark.claims.gate import Gated
from assaymark.claims.proofread import Decided, Finding, Mark, proofread_sentence
from assaymark.claims.sentences import LONGEST, Names
from assaymark.encoding import write_atomic
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.problems import foreign, problems_of
from assaymark.records import AGGREGATE
from assaymark.text import clean, visible
from assaymark.workflow.documents import Document, Sentence, form_of
from assaymark.workflow.run_folder import RunFolder, missing, read_text
from assaymark.workflow.verdict_file import FORMAT, VerdictFile

MOST_BYTES: Final = 8_000_000
"""Size of a text up to which it is read."""

WORDS: Final[Mapping[Mark, str]] = {
    "x": "Supported", "/": "Only with its condition", "-": "Not supported", "!": "Contradicted",
    "?": "Not decided by this run",
}  # fmt: skip
"""The marks in words."""

_RULES: Final[Mapping[Mark, tuple[str, str]]] = {
    "/": ("condition-missing", "warning"), "-": ("not-supported", "error"), "!": ("contradicted", "error"),
    "?": ("not-decided", "note"),
}  # fmt: skip
_FAILING: Final = frozenset("/-!")
_WIDTH: Final = 80
_INDENT: Final = " " * 11
_TABLE: Final = re.compile(r"(?m)(?:^[ \t]*\|.*\n?){3,}")
_NOT_READ: Final = "a table is read cell by cell; compare its numbers with the report"
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


# --- the run ----------------------------------------------------------------------------------------------------------


def read_decided(path: Path, aliases: Sequence[str] = ()) -> Decided:
    """The verdicts of a run folder, or of a ``verdicts.json`` by itself; ``aliases`` are of the form ``NAME=AGENT``."""
    folder = RunFolder(path)
    file = path if path.is_file() else folder.verdicts
    if not path.exists():
        raise missing(path, "run folder")
    if not file.is_file():
        raise InputError(str(path), [Problem("", f"has no verdicts.json; run: assaymark claim {path}")])
    try:
        found = TypeAdapter(VerdictFile).validate_json(read_text(file, "file of verdicts"))
    except ValidationError as exc:
        raise InputError(str(file), problems_of(exc)) from None
    if found.format != FORMAT:
        raise InputError(str(file), [Problem("format", f"must be {FORMAT!r} (got {found.format!r:.80})")])
    compared = (one.claim for one in found.verdicts if one.claim.id.startswith(("first[", "above[")))
    scores = tuple(dict.fromkeys(claim.dimension for claim in compared))
    named = dict(_alias(one, tuple(found.agents)) for one in aliases)
    names = Names(tuple(found.agents), scores, named)
    items = found.measurements.values()
    contrasts = [item for item in items if item.name == "contrast"]
    sizes = {
        "judges": len(found.panel.judges), "agents": len(found.agents), "dimensions": len({*scores} - {AGGREGATE}),
        "decisions": max((item.n for item in items if item.name == "kappa.mean_pairwise"), default=0),
        "cycles": max((item.n for item in contrasts), default=0),
        "clusters": max((int(item.detail.get("clusters", 0)) for item in contrasts), default=0),
    }  # fmt: skip
    counts = {noun: size for noun, size in sizes.items() if size}
    return Decided(names, found.verdicts, found.measurements, found.ranks, counts, judged=bool(found.panel.judges))


def _alias(text: str, agents: tuple[str, ...]) -> tuple[str, str]:
    name, equals, agent = (part.strip() for part in text.partition("="))
    if not equals or not name:
        raise InputError("--alias", [Problem("", f'must be "NAME=AGENT" (got {text!r:.80})')])
    if agent not in agents:
        raise UnknownNameError("agent", agent, agents)
    return name, agent


def gate_lines(found: Gated, at_least: str) -> list[str]:
    """What `assaymark gate` prints: one line."""
    conditions = f" Say also: {' '.join(found.conditions)}" if found.conditions else ""
    why = f" {found.why[:1].upper()}{found.why[1:]}." if found.why else conditions
    needed = "" if found.passed else f"; {at_least} needed"
    return [clean(f"[{found.mark}] {found.level}{needed}: {found.sentence}{why}")]


# --- texts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding with its sentence, and where it is: lines and columns from 1, ``end_column`` behind its last sign."""

    file: str
    sentence: str
    finding: Finding
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int

    @property
    def fails(self) -> bool:
        """Whether the text has to be changed."""
        return self.finding.mark in _FAILING

    @property
    def message(self) -> str:
        """The mark, why, and what to write, in one line."""
        return " ".join(f"{label} {text}".strip() for label, text in _said(self.finding))

    @property
    def view(self) -> dict[str, Any]:
        """As JSON."""
        one = self.finding
        return {
            "file": self.file, "line": self.line, "column": self.column, "end_line": self.end_line,
            "end_column": self.end_column, "sentence": self.sentence, "mark": one.mark, "about": one.about,
            "why": one.why, "level": one.level, "add": list(one.add), "write": one.write, "also": list(one.also),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Proofread:
    """One text with everything that was found in it, in order."""

    path: Path
    document: Document
    found: tuple[Placed, ...]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many sentences are to be changed, are not decided, and match."""
        undecided = sum(one.finding.mark == "?" for one in self.found)
        failing = sum(one.fails for one in self.found)
        return failing, undecided, len(self.found) - failing - undecided

    def fixed(self) -> str:
        """The text with conditions added and sentences replaced, as far as a supported one is near."""
        text = self.document.text
        for one in reversed(self.found):
            finding = one.finding
            place = self.document.replaceable(one.start, one.end)
            if finding.mark == "/" and finding.add:
                end = one.end if place is None else place[1]
                stop = "" if text[one.start : one.end].rstrip("*_`\"'”’)").endswith((".", "!", "?", "…")) else "."
                text = text[:end] + stop + " " + self.document.escaped(" ".join(finding.add)) + text[end:]
            elif finding.mark in ("-", "!") and finding.write and place is not None and finding.about == "comparison":
                text = (
                    text[: place[0]]
                    + self.document.escaped(" ".join((finding.write, *finding.also)))
                    + text[place[1] :]
                )
        return text


def read_document(path: Path, run: Decided) -> Document:
    """The text of a file that a person named, its line ends as they are."""
    if not path.exists():
        raise missing(path, "file")
    if not path.is_file():
        raise InputError(str(path), [Problem("", "is no file")])
    if (size := path.stat().st_size) > MOST_BYTES:
        raise InputError(str(path), [Problem("", f"is {size:,} bytes; at most {MOST_BYTES:,} are read")])
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        what = foreign(raw[:8]) or f"is not UTF-8 text (byte {exc.start})"
        raise InputError(str(path), [Problem("", what)]) from None
    if "\x00" in text:
        raise InputError(str(path), [Problem("", "is no text: it has zero bytes")])

    def keep(code: str) -> bool:
        return len(code) <= LONGEST and any(
            (start, end) == (0, len(code)) for start, end, _ in run.names.mentions(code)
        )

    return Document(text, form_of(path.name), keep)


def proofread(path: Path, run: Decided, document: Document | None = None) -> Proofread:
    """Hold every sentence of a file against the verdicts of a run."""
    document = document or read_document(path, run)
    ends = [found.start() for found in re.finditer("\n", document.text)]
    found = []
    sentences = list(document.sentences())
    before: tuple[str, ...] = ()
    for at, one in enumerate(sentences):
        if at and sentences[at - 1].block != one.block:
            before = ()
        following = [other.text for other in sentences[at + 1 : at + 12] if other.block == one.block]
        long = len(one.text) > LONGEST and next(run.names.mentions(one.text[: 10 * LONGEST]), None)
        finding = proofread_sentence(one.text, run, following=following, before=before)
        if long:
            finding = Finding("?", f"a sentence of {len(one.text):,} characters is not read")
        elif len(one.text) <= LONGEST:
            before = tuple(dict.fromkeys(agent for *_, agent in run.names.mentions(one.text))) or before
        if finding is not None:
            found.append(_placed(path, one, finding, ends))
    for rows in _TABLE.finditer(document.text) if document.form == "markdown" else ():
        inside = any(rows.start() <= one.start < rows.end() for one in sentences)
        if inside and re.search(r"\d", rows[0]) and len({agent for *_, agent in run.names.mentions(rows[0])}) > 1:
            head = Sentence(
                rows[0].strip().partition("\n")[0], rows.start(), rows.start() + len(rows[0].partition("\n")[0]), 0
            )
            found.append(_placed(path, head, Finding("?", _NOT_READ), ends))
    return Proofread(path, document, tuple(sorted(found, key=lambda one: one.start)))


def _placed(path: Path, one: Sentence, finding: Finding, ends: Sequence[int]) -> Placed:
    first, last = bisect_left(ends, one.start), bisect_left(ends, one.end)
    begins = [ends[line - 1] + 1 if line else 0 for line in (first, last)]
    return Placed(
        str(path), clean(one.text, 1000), finding, one.start, one.end,
        first + 1, one.start - begins[0] + 1, last + 1, one.end - begins[1] + 1,
    )  # fmt: skip


def fix(text: Proofread, run: Decided) -> tuple[Proofread, list[str]]:
    """Write the changes of a text, and read it again; returns what is found then, and what was changed as a diff."""
    new = text.fixed()
    if new == text.document.text:
        return text, []
    target = text.path.resolve()
    mode = target.stat().st_mode
    write_atomic(target, new)
    target.chmod(mode)
    name = clean(str(text.path))
    changes = difflib.unified_diff(text.document.text.splitlines(), new.splitlines(), name, name, n=0, lineterm="")
    shown = [visible(line) for line in changes]
    return proofread(text.path, run, replace(text.document, text=new)), shown


# --- shown ------------------------------------------------------------------------------------------------------------


def _said(finding: Finding) -> Iterator[tuple[str, str]]:
    """The parts of a finding, each with its label: the mark, why, and what to add or to write."""
    why = clean(finding.why)
    if finding.mark == "!" and why.startswith("the number differs"):
        yield f"[{finding.mark}]", why[:1].upper() + why[1:] + "."
    elif finding.mark in ("x", "/"):
        head = "The condition is missing" if finding.mark == "/" else WORDS["x"]
        yield f"[{finding.mark}]", f"{head}; {why}." if why else f"{head}."
    else:
        yield f"[{finding.mark}]", f"{WORDS[finding.mark]}: {why}." if why else f"{WORDS[finding.mark]}."
    if finding.add:
        yield "Add", f'"{clean(" ".join(finding.add))}"'
    if finding.write:
        yield "Write", f'"{clean(finding.write)}"'
    elif finding.mark == "-" and finding.about == "comparison":
        yield "", "No nearby sentence is supported."
    if finding.also:
        yield "Say also:", clean(" ".join(finding.also))


def lines_of(texts: Sequence[Proofread], run: Decided, *, fixing: bool = False) -> Iterator[str]:
    """What the terminal shows: each sentence with its line and its mark, at most 80 columns, and the counts."""
    if run.names.common:
        names = ", ".join(run.names.common)
        text = f'Not looked for, because their names are common words: {names}; give --alias "NAME=AGENT".'
        yield from wrap(clean(text), _WIDTH)
    for one_text in texts:
        several = len(one_text.found)
        verb = "sentence compares" if several == 1 else "sentences compare"
        quotes = "quotes" if several == 1 else "quote"
        yield f"{clean(str(one_text.path))}: {several} {verb} agents or {quotes} a number of this run"
        if several:
            yield ""
        for one in one_text.found:
            yield from _finding_lines(one)
        if several:
            yield ""
    failing, undecided, matching = (sum(one.counts[at] for one in texts) for at in range(3))
    match = "matches" if matching == 1 else "match"
    yield f"{failing} to change, {undecided} not decided, {matching} {match}.   Exit status {int(failing > 0)}"
    if failing and not fixing:
        yield "Write the changes: --fix   For pull requests: --format github   JSON: --json"


def _finding_lines(one: Placed) -> Iterator[str]:
    head = f"  line {one.line:<4}"
    if one.finding.mark == "x":
        room = _WIDTH - len(head) - len("   [x] matches")
        yield f"{head}{clean(one.sentence, room):<{room}}   [x] matches"
        return
    yield from _wrapped(clean(one.sentence, 300), head, _INDENT)
    for label, text in _said(one.finding):
        if label.startswith("["):
            first = f"     {label:<6}"
        else:
            first = _INDENT + (f"{label:<7}" if label in ("Add", "Write") else f"{label} " if label else "")
        rest = " " * len(first) if label in ("Add", "Write") else _INDENT
        yield from _wrapped(text, first, rest)


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def github_lines(texts: Sequence[Proofread]) -> Iterator[str]:
    """Workflow commands by which GitHub shows findings beside a pull request."""

    def value(text: str, *, inside: bool = False) -> str:
        made = clean(text).replace("%", "%25")
        return made.replace(":", "%3A").replace(",", "%2C") if inside else made

    for one in (one for text in texts for one in text.found if one.finding.mark in _RULES):
        level = {"error": "error", "warning": "error", "note": "notice"}[_RULES[one.finding.mark][1]]
        place = f"line={one.line},endLine={one.end_line},col={one.column},endColumn={one.end_column}"
        title = value(f"assaymark: {WORDS[one.finding.mark]}", inside=True)
        yield f"::{level} file={value(one.file, inside=True)},{place},title={title}::{value(one.message)}"


def sarif(texts: Sequence[Proofread]) -> dict[str, Any]:
    """Findings as SARIF 2.1.0, the format of code hosts."""
    rules = [
        {"id": name, "shortDescription": {"text": f"{WORDS[mark]}."}, "defaultConfiguration": {"level": level}}
        for mark, (name, level) in _RULES.items()
    ]
    results = []
    for one in (one for text in texts for one in text.found if one.finding.mark in _RULES):
        rule, level = _RULES[one.finding.mark]
        region = {
            "startLine": one.line, "startColumn": one.column, "endLine": one.end_line, "endColumn": one.end_column,
            "snippet": {"text": one.sentence},
        }  # fmt: skip
        place = {"artifactLocation": {"uri": _uri(one.file)}, "region": region}
        message = {"text": one.message}
        results.append({"ruleId": rule, "level": level, "message": message, "locations": [{"physicalLocation": place}]})
    driver = {"name": "assaymark", "version": __version__, "rules": rules}
    return {
        "$schema": _SARIF, "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }  # fmt: skip


def _uri(name: str) -> str:
    path = Path(name)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
