"""Verdicts on an invented season, with sentences of its own in two languages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations

from assaymark.claims import ENGLISH, Catalogue, Phrase, Rank, SeasonVerdict, SeasonVerdicts, catalogue, phrase
from assaymark.judging import SeasonRow
from assaymark.protocol import AgentSpec
from assaymark.records import AGGREGATE, Claim, Level, Verdict, measurement_id

PLAN = "a41f7c029b6e11d45a83f0c7e0d39c2e" * 2
_TEXTS = {
    "band": ("{agent}'s record is graded {band} by all {judges} judges.",
             "Alle {judges} Urteilenden bewerten die Akte von {agent} mit {band}."),
    "alone": ("{agent} scores highest.", "{agent} hat die höchste Gesamtpunktzahl."),
    "behind": ("{low} scores behind {high}.", "{low} liegt hinter {high}."),
    "beats": ("{agent} earned more than equal weight.", "{agent} hat mehr verdient als die Gleichgewichtung."),
    "floor": ("Their totals lie within the noise floor of {points:.1f} points.",
              "Ihre Gesamtpunktzahlen liegen innerhalb des Rauschens von {points:.1f} Punkten."),
    "unresolved": ("Without an outcome, which could not be resolved.", "Ohne Ergebnis, da keines feststellbar war."),
    "straddle": ("The judges differ by {points:.0f} points.", "Die Urteile liegen {points:.0f} Punkte auseinander."),
    "path": ("The return is one path of {days} days, and the interval of the daily difference contains zero.",
     "Die Rendite ist ein einziger Verlauf von {days} Tagen; das Intervall der täglichen Differenz enthält null."),
    "kappa": ("The judges agree at {kappa:.2f} on {items} records of a week, and the plan asks for {publish:.2f}.",
              "Die Urteile stimmen mit {kappa:.2f} über {items} Wochenakten überein; der Plan verlangt {publish:.2f}."),
    "any_place": ("A first rank for {agent}.", "Ein erster Rang für {agent}."),
    "any_order": ("Any ranking of {agents}.", "Eine Rangfolge von {agents}."),
    "any_beats": ("That any agent invests better than equal weight.",
                  "Dass ein Agent besser anlegt als die Gleichgewichtung."),
    "tier": ("cannot be ranked", "nicht zu ordnen"),
    "contested": ("contested between two bands", "zwischen zwei Stufen umstritten"),
    "drops": ("first without any judge", "Erster auch ohne jedes einzelne Urteil"),
    "none": ("not graded", "nicht bewertet"),
    "meaning": ("{field} as the season file has it.", "{field}, wie die Saisondatei es angibt."),
}  # fmt: skip


@cache
def made_catalogue(language: str = ENGLISH) -> Catalogue:
    """A language of the package, with the sentences of invented claims."""
    shipped = catalogue(language)
    own = {f"made.{key}": texts[language != ENGLISH] for key, texts in _TEXTS.items()}
    return replace(shipped, texts={**shipped.texts, **own})


def _verdict(
    kind: str, subjects: tuple[str, ...], level: Level, statement: Phrase, reasons: tuple[Phrase, ...] = (),
    condition: tuple[Phrase, ...] = (), withheld: Phrase | None = None,
) -> SeasonVerdict:  # fmt: skip
    text = made_catalogue()
    claim = Claim(
        id=f"season.{kind}[{'|'.join(subjects)}]", scope="aggregate-ranking", statement=text.render(statement),
        subjects=subjects, dimension=AGGREGATE, asserts_order=kind in ("first", "above"),
    )  # fmt: skip
    verdict = Verdict(
        claim=claim, agreement_status="methodology" if level != "headline" else "publish",
        stability_status="tie-class" if level == "no-claim" else "stable", adversarial_status="not tested",
        publication_level=level, reasons=tuple(text.render(one) for one in reasons), binding=("agreement",),
        measurements=tuple(measurement_id("season.total", {"agent": name}) for name in subjects), plan_hash=PLAN,
        condition=text.join(condition) or None,
    )  # fmt: skip
    return SeasonVerdict(kind, verdict, statement, reasons, condition, withheld)  # type: ignore[arg-type]


def decided(agents: Sequence[AgentSpec], table: tuple[SeasonRow, ...], judges: int, days: int) -> SeasonVerdicts:
    """The best agent ranks first and the worst is below all others; what lies between cannot be ranked."""
    graded = [row.contestant for row in table if row.total is not None]
    tiers, found = [tuple(sorted(graded))], []
    if judges > 1 and len(graded) > 2:
        tiers = [(graded[0],), tuple(sorted(graded[1:-1])), (graded[-1],)]
    several = len(tiers) > 1
    if judges > 1:
        first = phrase("made.band", agent=graded[0], band="strong", judges=judges)
        found.append(_verdict("band", (graded[0],), "headline", first))
    if several:
        last = phrase("made.band", agent=graded[-1], band="weak", judges=judges)
        found.append(_verdict("band", (graded[-1],), "qualified", last, (), (phrase("made.unresolved"),)))
    straddle, floor = (phrase("made.straddle", points=25),), (phrase("made.floor", points=6.2),)
    for agent in sorted(graded):
        what = phrase("made.any_place", agent=agent)
        found.append(
            _verdict("first", (agent,), "headline", phrase("made.alone", agent=agent), floor)
            if several and agent == graded[0]
            else _verdict("first", (agent,), "no-claim", what, straddle, withheld=what)
        )
    path, any_beats = (phrase("made.path", days=days),), phrase("made.any_beats")
    for one in agents:
        earned = phrase("made.beats", agent=one.name)
        found.append(_verdict("beats", (one.name,), "no-claim", earned, path, withheld=any_beats))
    place = {name: at for at, tier in enumerate(tiers) for name in tier}
    for one, two in combinations(sorted(graded), 2):
        high, low = (one, two) if place[one] <= place[two] else (two, one)
        behind, what = phrase("made.behind", high=high, low=low), phrase("made.any_order", agents=(one, two))
        found.append(
            _verdict("above", (high, low), "qualified", behind, floor, floor)
            if place[one] != place[two]
            else _verdict("above", (high, low), "no-claim", what, straddle, withheld=what)
        )
    places, at = [], 1
    for tier in tiers:
        alone, end = len(tier) == 1 and several, at + len(tier) - 1
        level: Level = "headline" if alone and at == 1 else "qualified" if several else "no-claim"
        why = phrase("made.drops" if level == "headline" else "made.unresolved" if alone else "made.tier")
        places += [Rank(name, at, end, alone, level, why) for name in tier]
        at = end + 1
    rest, none = [row.contestant for row in table if row.total is None], phrase("made.none")
    places += [Rank(name, None, None, False, "no-claim", none) for name in rest]
    return SeasonVerdicts(tuple(found), tuple(tiers), tuple(places))
