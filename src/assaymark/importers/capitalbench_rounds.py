"""Build the `Context` of a frozen-input round: the inputs of the agents that were published, and a list of the rest."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from assaymark.errors import Problem
from assaymark.importers import read
from assaymark.importers.report import Tally, context_id
from assaymark.records import Constraint, Context, Fact, Instrument

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_SPAN = r"(?:year|yr|month|week|day|session|hour|minute|quarter|trading[- ]day|DMA|d|y|w)s?\b"
_INDEX = r"(?:Nasdaq|Russell|Nikkei|FTSE|CSI|STOXX|Euro Stoxx|KOSPI|ASX|CAC|DAX|Dow|IBEX|TOPIX|MSCI|Fortune)"

# Digits that are not values. Order matters: the longest forms first.
_MASKS = re.compile(
    "|".join(
        [
            r"https?://\S+",
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|\s?UTC)?",
            r"\b\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\.?)?|\b\d{1,2}\s?[ap]\.m\.",
            rf"\b{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:\s?[-–—/]\s?(?:{_MONTH}\s)?\d{{1,2}})?(?:,?\s(?:19|20)\d\d)?(?![\d.,]*\d|%)",
            rf"\b\d{{1,2}}\s{_MONTH}(?:\s(?:19|20)\d\d)?\b",
            r"\b(?:Q[1-4]|[1-4]Q|H[12]|FY)[ -]?'?(?:20)?\d\d\b|\bQ[1-4]\b|\bH[12]\b",
            r"\bS&P(?:\s|/ASX\s|/TSX\s|\sSmallCap\s|\sMidCap\s)?\s?\d{3,4}\b",
            rf"\b{_INDEX}(?:\sEurope)?[- ]\d{{2,4}}\b",
            rf"(?<![\d.,$])\d+(?:\.\d+)?(?:\s?(?:-|–|to)\s?\d+)?[- ]?{_SPAN}",
            r"(?<![\d.,$])\d+-(?=,| and| or| to)",
            r"\b\d{1,4}(?:st|nd|rd|th)\b",
            r"(?<![$€£¥\d.,])\b(?:19|20)\d\d(?:\s?[-–]\s?(?:19|20)?\d\d)?\b(?!%|\.\d|,\d)",
        ]
    ),
    re.I,
)
_DIGIT = re.compile(r"\d")
_PLAIN = re.compile(r"[+\-−]?\$?\d{1,3}(?:,\d{3})*(?:\.\d+)?\s?%?")

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?<![A-Za-z]-)(?P<sign>(?<![\d%)])[+\-−])?(?:(?P<currency>(?:US|NT|HK|C|A)?\$|€|£|¥)(?P<minus>[-−])?)?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d_]|[.,]\d)"
    r"(?P<scale>\s?(?:trillion|billion|million|thousand|tn|bn|mn)\b|[KMBT]\b)?"
    r"(?P<unit>\s?%|\s?per\s?cent\b|[\s-]percentage[\s-]points?\b|\s?pp\b|[\s-]?(?:basis[\s-]points?|bps?)\b|x\b|\s?points?\b)?"
    r"(?![A-Za-z])"
)

_SCALES = {"k": 1e3, "th": 1e3, "m": 1e6, "mi": 1e6, "mn": 1e6, "b": 1e9, "bi": 1e9, "bn": 1e9} | dict.fromkeys(
    ("t", "tr", "tn"), 1e12
)
_CURRENCIES = {
    "$": "usd", "US$": "usd", "NT$": "twd", "HK$": "hkd", "C$": "cad", "A$": "aud", "€": "eur", "£": "gbp", "¥": "jpy",
}  # fmt: skip

# "down to 4.2%" is a level, so "to" is not among the words allowed in between.
_DOWN = re.compile(
    r"\b(?:decreased|declined|fell|fall|falling|dropped|lost|slipped|contracted|shrank|down|minus|lower|decrease|decline|drop)"
    r"(?:\s(?:by|of|a|an|another|about|around|nearly|roughly|some|approximately|combined|further|more than)){0,3}\s*$",
    re.I,
)
_LOWER_AFTER = re.compile(r"\s(?:lower|decline|decrease|drop)\b", re.I)
_SAME_VERB = re.compile(r"\b(?:and|or)\s*$")
_OTHER_VERB = re.compile(r"\b(?:was|were|to|from|at|versus|up)\b|[.;]")
_RANGE = re.compile(r"\s?(?:to|-|–|—|and|or|/)\s?$")


class TextNumber(NamedTuple):
    """One number of a text in base units: 768.6 billion dollars is 768.6e9 usd, 0.4% is 0.4 percent."""

    start: int
    end: int
    value: float
    unit: str


def numbers_in(text: str) -> tuple[TextNumber, ...]:
    """Return the values that a text states, in order; dates, years, horizons and index names are skipped."""
    if not _DIGIT.search(text):
        return ()
    # Most table cells are one plain number; searching them for dates and names is half the cost of a briefing.
    masked = text if _PLAIN.fullmatch(text) else _MASKS.sub(lambda m: " " * len(m[0]), text)
    values: list[TextNumber] = []
    with_unit: list[bool] = []
    for match in _NUMBER.finditer(masked):
        scale, printed = (match["scale"] or "").strip().lower(), match["digits"].replace(",", "")
        factor = next((_SCALES[scale[:n]] for n in (2, 1) if scale[:n] in _SCALES), 1.0)
        value = float(printed) * factor
        if not math.isfinite(value):
            continue
        if match["sign"] or match["minus"]:
            value = -value if match["minus"] or match["sign"] != "+" else value
        elif value:
            since = values[-1].end if values else 0
            between = masked[max(since, match.start() - 60) : match.start()]
            # a decrease may also apply to the next number: "down 1.0% for the session and 1.6% ..."
            carried = bool(
                values and values[-1].value < 0 and len(between) < 45 and _SAME_VERB.search(between)
            ) and not _OTHER_VERB.search(between)
            if _DOWN.search(between) or _LOWER_AFTER.match(masked, match.end()) or carried:
                value = -value
        word = (match["unit"] or "").strip(" -").lower()
        if word.startswith("b"):
            unit = "bps"
        elif word.startswith(("%", "per", "pp")):
            unit = "percent"
        elif word == "x":
            unit = "multiple"
        elif match["currency"]:
            unit = _CURRENCIES[match["currency"]]
        else:
            unit = "index" if word.startswith("point") or ("." in printed and factor == 1.0) else "count"
        values.append(TextNumber(match.start(), match.end(), value, unit))
        with_unit.append(bool(match["unit"] or match["currency"] or match["scale"]))
    for i in range(len(values) - 2, -1, -1):
        across = masked[values[i].end : values[i + 1].start]
        if not with_unit[i] and with_unit[i + 1] and _RANGE.fullmatch(across):
            values[i] = values[i]._replace(unit=values[i + 1].unit)
    return tuple(values)


_ESCAPE = re.compile(r"\\([\\&\-.>~*_|+#$()\[\]])")
_EMPHASIS = re.compile(r"\*\*|__|`")
_RULE = re.compile(r"^\|?[\s:|-]+\|?$")
_CELLS = re.compile(r"(?<!\\)\|")
# A full stop after a capital ends no sentence, as in "U.S. Treasury".
_SENTENCE = re.compile(r"(?<=[a-z0-9%)\"]\.)\s+(?=[A-Z\"(*])")
_WORD = re.compile(r"[^\s,;:()\"]+")
_ASIDE = re.compile(
    r"date|period|source|status|publisher|_id$|^id$|note|missing|comparison_type|window|entity|deadline|cutoff", re.I
)

_OPTION_COLUMNS = ("option_id", "asset proxy", "symbol", "option")
_LABEL_WORDS = 6
_LABEL_LENGTH = 60

# Limits the search, so that a very long line with many numbers takes linear time.
_REACH = 200
_NOTE_LENGTH = 2000


_FACTORS = (("trillion", 1e12), ("billion", 1e9), ("million", 1e6), ("thousand", 1e3))
_UNITS = (
    ("basis point", "bps"), ("bps", "bps"), ("percent", "percent"), ("%", "percent"), ("$", "usd"), ("usd", "usd"),
    ("dollar", "usd"), ("ratio", "multiple"), ("multiple", "multiple"), ("index", "index"), ("point", "index"),
)  # fmt: skip


def briefing_facts(text: str, options: Mapping[str, str], available_at: datetime) -> tuple[Fact, ...]:
    """Return the facts of a briefing in order: one per number, with its table row or sentence as the note."""
    facts: list[tuple[str, str, float, str, str]] = []
    header: tuple[str, ...] | None = None
    heading, lines = "", []
    for raw in text.splitlines():
        # without Markdown's escapes and emphasis; escaped bars stay escaped for the cells
        line = raw.strip()
        if "\\" in line:
            line = _ESCAPE.sub(lambda m: m[0] if m[1] == "|" else m[1], line)
        # Checked first: most lines have no marks, and the pattern for three of them is slow.
        lines.append(_EMPHASIS.sub("", line) if "**" in line or "__" in line or "`" in line else line)
    for number, line in enumerate(lines):
        if line.startswith("|"):
            if _RULE.match(line):
                continue
            cells = tuple(cell.strip().replace("\\|", "|") for cell in _CELLS.split(line.strip().strip("|")))
            if header is None and number + 1 < len(lines) and _RULE.match(lines[number + 1]):
                header = cells
                continue
            # Rows are about an option only in option tables: a macro row called "Gold" is not about a fund.
            names = header or ()
            about = cells[:2] if names and names[0].lower() in _OPTION_COLUMNS else ()
            subject = next((options[cell.upper()] for cell in about if cell.upper() in options), "")
            # a unit column applies to numbers without a unit
            of_units = (cell for cell, name in zip(cells, names, strict=False) if name.lower().startswith("unit"))
            words = next(of_units, "").lower()
            factor = next((f for word, f in _FACTORS if word in words), 1.0)
            for place, cell in enumerate(cells[1:], start=1):
                name = names[place] if place < len(names) else ""
                if _ASIDE.search(name) or name.lower().startswith("unit"):
                    continue
                label = (name if subject else f"{cells[0]}, {name}".strip(", "))[:_LABEL_LENGTH]
                for figure in numbers_in(cell):
                    value, unit = figure.value, figure.unit
                    # a cell with its own unit keeps it
                    bare = not re.search(r"[a-z%]", cell[figure.start : figure.end], re.I)
                    if words and unit in ("index", "count") and bare:
                        default = "count" if factor != 1.0 else unit
                        value, unit = value * factor, next((u for mark, u in _UNITS if mark in words), default)
                    facts.append((subject, label, value, unit, " | ".join(cells)[:_NOTE_LENGTH]))
            continue
        header = None
        if line.startswith("#"):
            heading = line.lstrip("# ").strip()
            continue
        for sentence in _SENTENCE.split(line.lstrip("-*• \t")):
            for figure in numbers_in(sentence):
                before = _WORD.findall(sentence, max(figure.start - _REACH, 0), figure.start)[-_LABEL_WORDS:]
                label = (" ".join(before) or heading)[-_LABEL_LENGTH:].strip()
                start = 0 if len(sentence) <= _NOTE_LENGTH else max(figure.start - _REACH, 0)
                facts.append(("", label, figure.value, figure.unit, sentence[start:][:_NOTE_LENGTH]))
    return tuple(
        Fact(f"b{number}", instrument, label, value, unit, available_at, None, "briefing.md", note)
        for number, (instrument, label, value, unit, note) in enumerate(facts, start=1)
    )


RETURNS, DECISION, QUALITY = (
    "universe_trailing_returns.csv", "universe_decision_context.csv", "universe_quality_evidence.json",
)  # fmt: skip
"""The three market files of a round that contain facts."""

_COLUMN_UNITS: tuple[tuple[str, str], ...] = (
    ("rank_", "rank"),
    ("path_observations", "count"),
    ("as_of_adj_close", "price"),
    ("corr_", "correlation"),
    ("beta_", "beta"),
    ("volume_zscore", "zscore"),
    *(
        (start, "ratio")
        for start in (
            "return_", "active_return_", "prior_", "volatility_", "max_drawdown_", "up_day_share_", "distance_",
        )
    ),
)  # fmt: skip
_COLUMNS_ASIDE = frozenset({
    "option_id", "symbol", "name", "asset_class", "category", "option_group", "risk_bucket", "status", "message",
    "as_of_date_requested", "as_of_price_date",
})  # fmt: skip
_RANKS = ("quality_evidence_score", "prior_active_rank", "recent_active_reversal_rank", "low_volatility_rank",
          "shallow_drawdown_rank")  # fmt: skip


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class _QualityRow(read.StrictModel):
    option_id: str
    low_volatility_rank: float
    prior_active_rank: float
    quality_evidence_score: float
    recent_active_reversal_rank: float
    shallow_drawdown_rank: float


class _Quality(read.StrictModel):
    """The quality evidence: percentile ranks within the universe, and their weighted sum as the score."""

    as_of_date_requested: str
    complete_options: int
    coverage: float
    methodology_version: str
    minimum_required_coverage: float
    profile: str
    rows: list[_QualityRow]
    total_active_options: int
    version: str
    weights: dict[str, float]


def _table_facts(name: str, text: str, options: Mapping[str, Any], cutoff: datetime) -> tuple[Fact, ...]:
    """Return the facts of one market file, one per non-empty cell, all available at the cutoff."""
    facts: list[Fact] = []

    def add(
        kind: str, option: str, column: str, value: float | str, unit: str, as_of: datetime | None, note: str = ""
    ) -> None:
        facts.append(Fact(f"{kind}:{option}.{column}", option, column, value, unit, cutoff, as_of, name, note))

    def check(option: str, known: set[str], place: str) -> None:
        if option not in options:
            raise ValueError(f"{place}: is not one of the round's options (got {option!r})")
        if option in known:
            raise ValueError(f"{place}: occurs twice (got {option!r})")
        known.add(option)

    options_read: set[str] = set()
    if name == QUALITY:
        quality = read.object_as_model(_Quality, text)
        for rating in quality.rows:
            check(rating.option_id, options_read, "rows.option_id")
        as_of = read.midnight(read.parse_day(quality.as_of_date_requested))
        for rating in quality.rows:
            for column in _RANKS:
                unit = "score" if column.endswith("score") else "rank"
                add("qual", rating.option_id, column, getattr(rating, column), unit, as_of)
        return tuple(facts)
    short = "ret" if name == RETURNS else "ctx"
    columns: list[tuple[str, str, str]] = []  # name, unit, and the column with the first day of its period
    wrong: list[Problem] = []
    for line, row in read.csv_rows(text, lambda number, message: wrong.append(Problem(f"line {number}", message))):
        for column in () if columns else row:
            if column in _COLUMNS_ASIDE or column.startswith("price_date_"):
                continue
            unit = next((unit for start, unit in _COLUMN_UNITS if column.startswith(start)), "")
            unit = "text" if column == "economic_exposure_cluster" else unit
            if not unit:  # its unit would be a guess
                raise ValueError(f"unknown column {column!r}")
            since = f"price_date_{column.rsplit('_', 1)[-1]}" if column.startswith("return_") else ""
            columns.append((column, unit, since if since in row else ""))
        option = row.get("option_id", "")
        check(option, options_read, f"line {line}, option_id")
        when = read.midnight(read.parse_day(row["as_of_price_date"])) if row.get("as_of_price_date") else None
        if when is not None and when > cutoff:
            seen_at = f"as of {when:%Y-%m-%d}, cutoff {cutoff:%Y-%m-%d %H:%M}"
            raise ValueError(f"line {line}: a fact from the future ({seen_at})")
        for column, unit, since in columns:
            if row[column]:
                value = row[column] if unit == "text" else finite(row[column], f"line {line}, {column}")
                add(short, option, column, value, unit, when, f"since {row[since]}" if since else "")
    if wrong:
        raise read.ShapeError(wrong)
    return tuple(facts)


def finite(text: str, place: str) -> float:
    """Parse the number in a non-empty cell or field; raises ``ValueError`` with its place if not finite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{place}: must be a finite number or empty (got {text[:40]!r})")
    return value


_MENTION = re.compile(r"(?:research|information|data)\s+cut-?off|available\s+through|frozen\s+at", re.I)
_ISO = re.compile(
    r"(?P<day>20\d\d-\d\d-\d\d)[T ](?P<clock>\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?)\s?"
    r"(?P<zone>Z\b|UTC\b|GMT\b|[+-]\d\d:\d\d)"
)
_WORDS = re.compile(
    r"(?P<day>[A-Z][a-z]+ \d{1,2}, 20\d\d),?(?: at)? (?P<clock>\d{1,2}:\d\d(?::\d\d)?)\s?(?P<half>[AaPp]\.?[Mm]\.?)?"
    r"\s?(?P<zone>UTC\b|GMT\b|[A-Z][A-Za-z]+/[A-Za-z_]+)"
)

# Characters after a mention that are searched for a cutoff; sentences are shorter, and lines may be very long.
_CUTOFF_REACH = 300


def stated_cutoff(text: str) -> tuple[datetime, int] | None:
    """Return the cutoff that a text states and its line; None if it states none."""
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        for mention in _MENTION.finditer(line):
            places = [(number, line[mention.end() :])]
            if line.startswith("#"):
                places += [(n, s) for n, s in enumerate(lines[number : number + 5], number + 1) if s.strip()][:1]
            for at, words in places:
                before = re.split(r"deadline", words[:_CUTOFF_REACH], maxsplit=1, flags=re.I)[0]
                iso, spelled = _ISO.search(before), _WORDS.search(before)
                match = iso if iso and (not spelled or iso.start() < spelled.start()) else spelled
                if match is None:
                    continue
                zone, half = match["zone"], (match["half"] or "") if match is spelled else ""
                hours, minutes, seconds = (*match["clock"].split(":"), "0")[:3]
                with suppress(ValueError, ZoneInfoNotFoundError, OverflowError):
                    date = datetime.strptime(match["day"], "%Y-%m-%d" if match is iso else "%B %d, %Y")
                    hour = int(hours) % 12 + (12 if half[:1] in "Pp" else 0) if half else int(hours)
                    local = date + timedelta(hours=hour, minutes=int(minutes), seconds=float(seconds))
                    if zone in ("Z", "UTC", "GMT"):
                        return local.replace(tzinfo=UTC), at
                    if "/" in zone:
                        return local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC), at
                    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
                    shift = timezone(-offset if zone[0] == "-" else offset)
                    return local.replace(tzinfo=shift).astimezone(UTC), at
    return None


_NEEDED = ("briefing.md", "hashes.json", "manifest.yaml", "options.yaml", "prompt.md")
"""Files that every round must have."""

_MARKET = (RETURNS, DECISION, QUALITY)

_OUTCOME_FILES = ("entry_prices.csv", "exit_prices.csv")
"""Prices that scored the round. Exit prices are outcomes. Entry prices were often fixed after the call (the entry can
be the close that follows it), so neither is ever shown, hashed into a context, or made a fact."""

_ALLOWED = ("round_id", *_NEEDED, *_MARKET, *_OUTCOME_FILES)
"""Allowed keys of a line of the contexts file."""

_RENDERED = "rendered model input (round metadata and mechanical appendix)"
"""Name of the input that every agent saw and no round has published."""

_LIMITS: Mapping[str, tuple[str, float, str, str]] = {
    "min_holdings": ("min_holdings", 1.0, "count", "portfolio"),
    "max_holdings": ("max_holdings", 1.0, "count", "portfolio"),
    "allocation_increment_pct": ("weight_increment", 0.01, "nav", "holding"),
    "min_allocation_pct": ("min_weight", 0.01, "nav", "holding"),
    "max_total_allocation_pct": ("max_total_weight", 0.01, "nav", "portfolio"),
    "max_economic_exposure_pct": ("max_weight", 0.01, "nav", "economic_exposure_cluster"),
    "allow_cash": ("allow_cash", 1.0, "bool", "portfolio"),
    "allow_benchmark_asset": ("allow_benchmark", 1.0, "bool", "portfolio"),
}


class _Option(_Lenient):
    id: Annotated[str, Field(min_length=1)]
    name: str
    symbol: str | None = None
    tiingo_symbol: str | None = None
    asset_class: str = ""
    option_group: str = ""


class _Options(_Lenient):
    options: Annotated[list[_Option], Field(min_length=1)]


class _RoundManifest(_Lenient):
    """The fields of ``manifest.yaml`` that are used; other fields are ignored."""

    round_id: str
    horizon: str
    entry_date: date
    exit_date: date
    created_at: str
    decision_deadline: AwareDatetime
    notes: str = ""
    portfolio_constraints: dict[str, float | None] = {}


class _HashList(read.StrictModel):
    """The hashes of a round's frozen files by path."""

    algorithm: Annotated[str, Field(pattern="^sha256$")]
    files: dict[str, read.Sha256]


@dataclass(frozen=True, slots=True)
class Round:
    """A parsed round: its context with its id, its options, and its manifest, which scoring needs."""

    context_id: str
    context: Context
    options: frozenset[str]
    manifest: _RoundManifest


def read_rounds(
    name: str, data: bytes, tally: Tally, progress: read.Progress | None
) -> tuple[dict[str, Round], dict[str, int]]:
    """Return the valid rounds, and a zero counter for each broken one, which counts its decisions later."""
    rounds: dict[str, Round] = {}
    broken: dict[str, int] = {}
    reader, lines = _RoundReader(tally), 0
    for place, _, tree in read.json_objects("rounds", name, data, tally, progress):
        lines += 1
        if tree is None:
            continue
        wrong = [key for key, value in tree.items() if not isinstance(value, str)]
        for key in wrong:
            tally.problem(f"{place}, {key}", f"must be text (got {read.written(tree[key])})")
        round_id = tree.get("round_id")
        if not wrong and round_id in rounds:
            tally.problem(f"{place}, round_id", f"occurs twice (got {round_id!r})")
            continue
        entry = None if wrong else reader.read(place, tree)
        if entry is not None:
            rounds[tree["round_id"]] = entry
        elif isinstance(round_id, str):
            broken[round_id] = 0
    if not lines:
        tally.problem(name, "contains no round: every line is empty")
    return rounds, broken


class _RoundReader:
    """Parses rounds; files that several rounds share are parsed once."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._universes: dict[str, dict[str, Instrument]] = {}
        self._briefings: dict[tuple[str, str, datetime], tuple[Fact, ...]] = {}

    def read(self, place: str, files: Mapping[str, str]) -> Round | None:
        """Parse the round in one line of the contexts file; None if invalid, with the problems noted."""
        absent = [wanted for wanted in ("round_id", *_NEEDED) if not files.get(wanted)]
        if absent:
            self.tally.problem(place, f"a round without {', '.join(absent)}; needed: {', '.join(_NEEDED)}")
            return None
        before = len(self.tally.problems)
        place = f"{place} ({files['round_id']})"
        for key in sorted(set(files) - set(_ALLOWED)):
            self.tally.problem(read.place_of(place, key), f"unknown key (allowed: {', '.join(_ALLOWED)})")
        listed, missing = dict[str, str](), list[str]()
        with read.note_problems(self.tally, read.place_of(place, "hashes.json")):
            listed = read.object_as_model(_HashList, files["hashes.json"]).files
        for path, expected in sorted(listed.items()):
            file = path.rsplit("/", 1)[-1]
            if file not in files or file in _OUTCOME_FILES:
                missing.append(path)
                self.tally.unverifiable[file] += 1
                self.tally.missing(f"file {file}", files["round_id"])
                continue
            digest = hashlib.sha256(files[file].encode("utf-8", "surrogatepass")).hexdigest()
            if digest == expected:
                self.tally.verified[file] += 1
            else:
                message = f"does not match its hash (got {digest[:12]}, listed {expected[:12]})"
                self.tally.problem(read.place_of(place, path), message)
        universe = self._universe(read.place_of(place, "options.yaml"), files["options.yaml"])
        manifest, manifest_place = None, read.place_of(place, "manifest.yaml")
        with read.note_problems(self.tally, manifest_place):
            tree = read.yaml_tree(files["manifest.yaml"])
            if isinstance(tree, dict) and tree.get("portfolio_constraints", 0) is None:
                del tree["portfolio_constraints"]
            manifest = read.as_model(_RoundManifest, tree)
            if manifest.round_id != files["round_id"]:
                self.tally.problem(manifest_place, f"round_id: is another round's (got {manifest.round_id!r})")
        # the cutoff: from the briefing, else the manifest's notes, else its creation time; never the deadline
        cutoff, source = None, ""
        if manifest and (in_briefing := stated_cutoff(files["briefing.md"])):
            cutoff, source = in_briefing[0], f"briefing.md line {in_briefing[1]}"
        elif manifest and (in_notes := stated_cutoff(manifest.notes)):
            cutoff, source = in_notes[0], "manifest.yaml notes"
        elif manifest:
            with read.note_problems(self.tally, read.place_of(manifest_place, "created_at")):
                cutoff, source = read.parse_time(manifest.created_at), "manifest.yaml created_at"
                self.tally.missing("stated cutoff (created_at stands in)", files["round_id"])
        facts = self._facts(place, files, universe, cutoff) if universe and cutoff else ()
        if len(self.tally.problems) > before or not (manifest and universe and cutoff):
            return None
        task, briefing, options = (files[name].strip() for name in ("prompt.md", "briefing.md", "options.yaml"))
        limits = {
            name: (_LIMITS.get(name, (name, 1.0, "count", "portfolio")), value)
            for name, value in manifest.portfolio_constraints.items()
            if value is not None  # an empty rule is ignored
        }
        context = Context(
            completeness="partial", cutoff=cutoff, cutoff_source=source,
            # the published parts of the agents' prompt, in the arena's order
            prompt=f"{task}\n\n## Briefing\n\n{briefing}\n\n## Options\n\n{options}\n",
            facts=facts, instruments=tuple(universe.values()),
            constraints=tuple(
                Constraint(kind, float(value) * factor, unit, scope)
                for (kind, factor, unit, scope), value in limits.values()
            ),
            missing=(_RENDERED, *missing),
        )  # fmt: skip
        return Round(context_id(context, {}, self.tally.texts), context, frozenset(universe), manifest)

    def _universe(self, place: str, text: str) -> dict[str, Instrument]:
        """Return the options as instruments by id; empty if invalid, with the problems noted."""
        if text not in self._universes:
            options = None
            with read.note_problems(self.tally, place):
                options = read.as_model(_Options, read.yaml_tree(text)).options
            if options is None:
                return {}
            named = {
                option.id: (option.id, option.id.replace("_", " "), option.symbol, option.tiingo_symbol, option.name)
                for option in options
            }
            self._universes[text] = {
                option.id: Instrument(
                    option.id, option.symbol, option.name, option.asset_class, group=option.option_group,
                    aliases=tuple(alias for alias in dict.fromkeys(named[option.id]) if alias),
                )
                for option in options
            }  # fmt: skip
            if len(self._universes[text]) < len(options):
                self.tally.problem(place, "an option id occurs twice")
        return self._universes[text]

    def _facts(
        self, place: str, files: Mapping[str, str], universe: Mapping[str, Instrument], cutoff: datetime
    ) -> tuple[Fact, ...]:
        facts: tuple[Fact, ...] = ()
        for name in _MARKET:
            with read.note_problems(self.tally, read.place_of(place, name)):
                facts += _table_facts(name, files[name], universe, cutoff) if name in files else ()
        if RETURNS not in files and DECISION not in files:
            self.tally.missing("market table", files["round_id"])
        key = (files["briefing.md"], files["options.yaml"], cutoff)
        if key not in self._briefings:
            # the first cell of a table row that is about an instrument
            rows = {alias.upper(): instrument.id for instrument in universe.values() for alias in instrument.aliases}
            self._briefings[key] = briefing_facts(files["briefing.md"], rows, cutoff)
        return facts + self._briefings[key]
