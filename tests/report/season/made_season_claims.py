"""What is decided about an invented season, in sentences of its own in two languages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations

from assaymark.claims import ENGLISH, Catalogue, Place, Said, SeasonVerdict, SeasonVerdicts, catalogue, said
from assaymark.judging.season.scoring import SeasonRow
from assaymark.protocol import AgentSpec
from assaymark.records import AGGREGATE, Claim, Level, Verdict, measurement_id

PLAN = "a41f7c029b6e11d45a83f0c7e0d39c2e" * 2
_TEXTS = {
    "en": """
[made]
band = "{agent}'s record is graded {band} by all {judges} judges."
alone = "{agent} scores highest."
behind = "{low} scores behind {high}."
beats = "{agent} earned more than equal weight."
floor = "Their totals lie within the noise floor of {points:.1f} points."
unresolved = "Without an outcome, which could not be resolved."
straddle = "The judges differ by {points:.0f} points."
path = "The return is one path of {days} days, and the interval of the daily difference contains zero."
kappa = "The judges agree at {kappa:.2f} on {items} records of a week, and the plan asks for {publish:.2f}."
any_place = "A first rank for {agent}."
any_order = "Any ranking of {agents}."
any_beats = "That any agent invests better than equal weight."
tier = "cannot be ranked"
contested = "contested between two bands"
drops = "first without any judge"
none = "not graded"
meaning = "{field} as the season file has it."
""",
    "de": """
[made]
band = "Alle {judges} Urteilenden bewerten die Akte von {agent} mit {band}."
alone = "{agent} hat die höchste Gesamtpunktzahl."
behind = "{low} liegt hinter {high}."
beats = "{agent} hat mehr verdient als die Gleichgewichtung."
floor = "Ihre Gesamtpunktzahlen liegen innerhalb des Rauschens von {points:.1f} Punkten."
unresolved = "Ohne Ergebnis, da keines feststellbar war."
straddle = "Die Urteile liegen {points:.0f} Punkte auseinander."
path = "Die Rendite ist ein einziger Verlauf von {days} Tagen; das Intervall der täglichen Differenz enthält null."
kappa = "Die Urteile stimmen mit {kappa:.2f} über {items} Wochenakten überein; der Plan verlangt {publish:.2f}."
any_place = "Ein erster Rang für {agent}."
any_order = "Eine Rangfolge von {agents}."
any_beats = "Dass ein Agent besser anlegt als die Gleichgewichtung."
tier = "nicht zu ordnen"
contested = "zwischen zwei Stufen umstritten"
drops = "Erster auch ohne jedes einzelne Urteil"
none = "nicht bewertet"
meaning = "{field}, wie die Saisondatei es angibt."
""",
}


@cache
def made_catalogue(language: str = ENGLISH) -> Catalogue:
    """A language of the package, with the sentences of invented claims."""
    shipped = catalogue(language)
    own = {"language": shipped.name, "decimal": shipped.decimal, "list_and": shipped.list_and, "minus": shipped.minus}
    extra = Catalogue.of(
        {"made.toml": "\n".join(f'{key} = "{text}"' for key, text in own.items()) + _TEXTS["en"]}, "en"
    )
    if language != ENGLISH:
        lines = [line.partition(" = ") for line in _TEXTS[language].splitlines() if " = " in line]
        extra = replace(extra, texts={f"made.{key}": text[1:-1] for key, _, text in lines})
    return replace(shipped, texts={**shipped.texts, **extra.texts})


def _verdict(
    kind: str, subjects: tuple[str, ...], level: Level, statement: Said, *, reasons: tuple[Said, ...] = (),
    condition: tuple[Said, ...] = (), withheld: Said | None = None,
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
    rest = [row.contestant for row in table if row.total is None]
    tiers = [tuple(sorted(graded))]
    if judges > 1 and len(graded) > 2:
        tiers = [(graded[0],), tuple(sorted(graded[1:-1])), (graded[-1],)]
    found = []
    if judges > 1:
        first = said("made.band", agent=graded[0], band="strong", judges=judges)
        found.append(_verdict("band", (graded[0],), "headline", first))
    if len(tiers) > 1:
        last = said("made.band", agent=graded[-1], band="weak", judges=judges)
        found.append(_verdict("band", (graded[-1],), "qualified", last, condition=(said("made.unresolved"),)))
    straddle, floor = (said("made.straddle", points=25),), (said("made.floor", points=6.2),)
    for agent in sorted(graded):
        top = len(tiers) > 1 and agent == graded[0]
        what = said("made.any_place", agent=agent)
        found.append(
            _verdict("first", (agent,), "headline", said("made.alone", agent=agent), reasons=floor)
            if top
            else _verdict("first", (agent,), "no-claim", what, reasons=straddle, withheld=what)
        )
    path = (said("made.path", days=days),)
    found += [
        _verdict(
            "beats", (one.name,), "no-claim", said("made.beats", agent=one.name), reasons=path,
            withheld=said("made.any_beats"),
        )
        for one in agents
    ]  # fmt: skip
    place = {name: at for at, tier in enumerate(tiers) for name in tier}
    for one, two in combinations(sorted(graded), 2):
        high, low = (one, two) if place[one] <= place[two] else (two, one)
        behind, what = said("made.behind", high=high, low=low), said("made.any_order", agents=(one, two))
        found.append(
            _verdict("above", (high, low), "qualified", behind, reasons=floor, condition=floor)
            if place[one] != place[two]
            else _verdict("above", (high, low), "no-claim", what, reasons=straddle, withheld=what)
        )
    none = said("made.none")
    nowhere = [Place(name, None, None, False, "no-claim", none) for name in rest]
    return SeasonVerdicts(tuple(found), tuple(tiers), (*_places(tiers), *nowhere))


def _places(tiers: Sequence[tuple[str, ...]]) -> list[Place]:
    found, at = [], 1
    for tier in tiers:
        last = at + len(tier) - 1
        alone = len(tier) == 1 and len(tiers) > 1
        level: Level = "headline" if alone and at == 1 else "qualified" if len(tiers) > 1 else "no-claim"
        why = said("made.drops" if level == "headline" else "made.unresolved" if alone else "made.tier")
        found += [Place(name, at, last, alone, level, why) for name in tier]
        at = last + 1
    return found
