"""The head of a datasheet: the judge in plain words with counts first, chips by stated rules, and the instrument."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assaymark.metrology.datasheet import STRICT
from assaymark.records import Measurement
from assaymark.report.datasheet.quiet import flip_note, pair_counts
from assaymark.report.datasheet.reading import Opened, hits, known, of_n
from assaymark.report.datasheet.seeing import ONE
from assaymark.report.datasheet.wording import arm_words, missing_words
from assaymark.report.formats import clean, count, counted, number, percent, short_hash
from assaymark.report.plan import Fact

Part = tuple[str, bool]
_LED: Final = 2.0
_GATES: Final = "dominance, length, leakage, both orders, duplicates"


@dataclass(frozen=True, slots=True)
class Chip:
    """One word about one axis, and the rule that chose it."""

    text: str
    rule: str


@dataclass(frozen=True, slots=True)
class Profile:
    """The head of the page: sentences as (text, bold) parts, chips, the flip rate, and the instrument card."""

    sentences: tuple[tuple[Part, ...], ...]
    chips: tuple[Chip, ...]
    no_chips: str
    flips: str
    facts: tuple[Fact, ...]


def profile_of(sheet: Opened) -> Profile:
    """Everything above the first section."""
    said = (_dark(sheet), _raw(sheet), _sees(sheet), _strict(sheet), _scores(sheet), _invalid(sheet))
    log = "No sketch: its rules are about built texts whose quality is known."
    return Profile(
        sentences=tuple(sentence for sentence in said if sentence),
        chips=() if sheet.is_log else tuple(map(_chip, sheet.sheet.sketch)),
        no_chips=log if sheet.is_log else "",
        flips=flip_note(sheet),
        facts=facts_of(sheet),
    )


def facts_of(sheet: Opened) -> tuple[Fact, ...]:
    """The instrument card: what was asked, with what, and how often."""
    record = sheet.sheet
    print_ = f"fingerprint {short_hash(clean(record.fingerprint))}" if record.fingerprint else "no fingerprint given"
    family = f"family {clean(record.family, 60)}, " if record.family else ""
    facts = [Fact("Model", clean(record.model, 80) or "not stated", f"{family}{print_}")]
    if sheet.is_log:
        facts.append(Fact("Prompt", "that of the log", "not stated"))
    for arm in () if sheet.is_log else record.arms or tuple(record.prompts):
        digest = record.prompts.get(arm, "")
        facts.append(Fact("Prompt", arm_words(arm), short_hash(clean(digest)) if digest else "no hash given"))
    tasks = counted(record.tasks, "question" if sheet.is_log else "task")
    if sheet.is_log:
        facts.append(Fact("Texts", tasks, "of a log: their quality is not known, and no manifest names them"))
    else:
        manifest = f"manifest {short_hash(clean(record.manifest))}" if record.manifest else "no manifest given"
        facts.append(Fact("Texts", tasks, manifest))
    invalid = record.calls.get("invalid", 0)
    total = record.calls.get("all", sum(n for key, n in record.calls.items() if key != "all"))
    facts.append(Fact("Calls", count(total), f"{count(invalid)} without a usable reply"))
    if sheet.is_log:
        facts.append(Fact("Gates", "not applied", "gates are for built texts"))
    elif record.manifest:
        facts.append(Fact("Gates", "5 of 5 passed", f"before the first call: {_GATES}"))
    else:
        facts.append(Fact("Gates", "not recorded"))
    return tuple(facts)


def plain(sentence: tuple[Part, ...]) -> str:
    """A sentence of the profile without its emphasis.

    >>> plain((("It chose in ", False), ("7 of 120", True), (" calls.", False)))
    'It chose in 7 of 120 calls.'
    """
    return "".join(text for text, _ in sentence)


# --- sentences ------------------------------------------------------------------------------------------------------


def _dark(sheet: Opened) -> tuple[Part, ...]:
    found = sheet.base_one("dark_current")
    if known(found) is None or found is None:
        if sheet.is_log:
            return ()
        return ((missing_words(found, "what it does with nothing to choose between"), False),)
    still = "still chose" if hits(found) else "chose"
    return ((f"Given nothing to choose between, it {still} in ", False), _counted(sheet, found), (" calls.", False))


def _raw(sheet: Opened) -> tuple[Part, ...]:
    raw = known(sheet.part("raw"))
    if raw is None:
        if sheet.is_log:
            return ((missing_words(sheet.part("raw"), "preference"), False),)
        return ((missing_words(sheet.part("raw"), "preference between equal texts"), False),)
    where = "Of the pairs in the log" if sheet.is_log else "Between equal texts"
    return (
        (f"{where} it preferred one in ", False),
        _counted(sheet, raw),
        (" calls", False),
        *_why(sheet),
        (".", False),
    )


def _counted(sheet: Opened, share: Measurement) -> Part:
    """A share as its counts, which lead to its row."""
    return sheet.to(share, of_n(share)), True


def _why(sheet: Opened) -> tuple[Part, ...]:
    """By which mechanism, with the pairs that show it; nothing where the decomposition is not there."""
    if known(sheet.part("stable")) is None:
        return ()
    stable, positional, one_sided, _, _ = pair_counts(sheet)
    if not stable + positional + one_sided:
        return ()
    said = "what was said" if sheet.is_log else "how it was worded"
    if one_sided > stable + positional:
        reason, bold = "mostly in one of the two orders only", "one of the two orders"
    elif positional >= _LED * stable and positional:
        reason, bold = f"mostly for where it stood, not for {said}", "where it stood"
    elif stable >= _LED * positional and stable:
        reason, bold = f"mostly for {said}, not for where it stood", said
    else:
        reason, bold = f"partly for where it stood and partly for {said}", f"where it stood and partly for {said}"
    before, _, after = reason.partition(bold)
    pairs = f" (pairs: {count(positional)} by place, {count(stable)} by text, {count(one_sided)} in one order only)"
    return (", " + before, False), (bold, True), (after + pairs, False)


def _sees(sheet: Opened) -> tuple[Part, ...]:
    seen = sheet.steps("sensitivity", sheet.base).get(ONE)
    if seen is None:
        return ()
    return (("It noticed one missing requirement in ", False), _counted(sheet, seen), (" calls.", False))


def _strict(sheet: Opened) -> tuple[Part, ...]:
    raw, before = known(sheet.part("raw", STRICT)), known(sheet.part("raw"))
    seen = sheet.steps("sensitivity", STRICT).get(ONE)
    if raw is None or seen is None or before is None or sheet.base == STRICT:
        return ()
    return (
        ("Told to be strict about ties, it preferred one of two equal texts in ", False),
        _counted(sheet, raw),
        (" calls and noticed the missing requirement in ", False),
        _counted(sheet, seen),
        (".", False),
    )


def _scores(sheet: Opened) -> tuple[Part, ...]:
    floors = [m for m in sheet.every("point.vacuum_score") if m.value is not None]
    if not floors:
        return ()
    lowest, highest = (f(m.value or 0.0 for m in floors) for f in (min, max))
    said = number(lowest) if len(floors) == 1 else f"{number(lowest)} to {number(highest)}"
    by = "" if len(floors) == 1 else ", by dimension"
    return (("Scoring one text at a time, it gave an empty one ", False), (said, True), (f" points{by}.", False))


def _invalid(sheet: Opened) -> tuple[Part, ...]:
    found = [m for m in sheet.every("pair.invalid_share") if m.value]
    if not found:
        return ()
    bad, all_calls = sum(map(hits, found)), sum(m.n for m in found)
    share = percent(bad / all_calls, 1)
    return ((f"{count(bad)} of {count(all_calls)}", True), (f" replies could not be used ({share}).", False))


def _chip(text: str) -> Chip:
    word, _, rule = text.partition(" (")
    return Chip(clean(word, 80), clean(rule.removesuffix(")"), 400))
