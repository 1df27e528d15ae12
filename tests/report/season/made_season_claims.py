"""What is decided about an invented season, in sentences of its own in two languages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

from assaymark.claims.messages import ENGLISH, Catalogue, Said, catalogue, said
from assaymark.claims.season_types import Place, SeasonVerdict, SeasonVerdicts
from assaymark.judging.season.table import SeasonTable
from assaymark.records import AGGREGATE, Claim, Level, Verdict, measurement_id
from assaymark.report.season.inputs import SeasonAgent

PLAN = "a41f7c029b6e11d45a83f0c7e0d39c2e" * 2
_TEXTS = {
    "en": """
[made]
band = "{agent}'s record is graded {band} by all {judges} judges."
alone = "{agent} scores highest."
last = "{agent} scores lowest."
behind.one = "{low} scores behind {high}."
behind.other = "{low} score behind {high}."
tie = "{agents} are one class."
beats = "{agent} earned more than equal weight."
floor = "Their totals lie within the noise floor of {points:.1f} points."
unresolved = "Without an outcome, which could not be resolved."
straddle = "The judges differ by {points:.0f} points."
path = "The return is one path of {days} days, and the interval of the daily difference contains zero."
kappa = "The judges agree at {kappa:.2f} on {items} records of a week, and the plan asks for {publish:.2f}."
any_place = "Any position for {agent}."
any_order = "Any order of {agents}."
any_beats = "That any agent invests better than equal weight."
one_class = "one class, order withheld"
depends = "depends on who judges"
contested = "contested between two bands"
drops = "first without any judge"
none = "not graded"
meaning = "{field} as the season file has it."
""",
    "de": """
[made]
band = "Alle {judges} Urteilenden bewerten die Akte von {agent} mit {band}."
alone = "{agent} hat die höchste Gesamtpunktzahl."
last = "{agent} hat die niedrigste Gesamtpunktzahl."
behind.one = "{low} liegt hinter {high}."
behind.other = "{low} liegen hinter {high}."
tie = "{agents} bilden eine Klasse."
beats = "{agent} hat mehr verdient als die Gleichgewichtung."
floor = "Ihre Gesamtpunktzahlen liegen innerhalb des Rauschens von {points:.1f} Punkten."
unresolved = "Ohne Ergebnis, da keines feststellbar war."
straddle = "Die Urteile liegen {points:.0f} Punkte auseinander."
path = "Die Rendite ist ein einziger Verlauf von {days} Tagen; das Intervall der täglichen Differenz enthält null."
kappa = "Die Urteile stimmen mit {kappa:.2f} über {items} Wochenakten überein; der Plan verlangt {publish:.2f}."
any_place = "Jeder Platz für {agent}."
any_order = "Jede Reihenfolge von {agents}."
any_beats = "Dass ein Agent besser anlegt als die Gleichgewichtung."
one_class = "eine Klasse, Reihenfolge zurückgehalten"
depends = "hängt davon ab, wer urteilt"
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
    kind: str,
    subjects: tuple[str, ...],
    level: Level,
    statement: Said,
    *,
    reasons: tuple[Said, ...] = (),
    condition: tuple[Said, ...] = (),
    withheld: Said | None = None,
) -> SeasonVerdict:
    text = made_catalogue()
    claim = Claim(
        id=f"season.{kind}[{'|'.join(subjects)}]",
        scope="aggregate-ranking",
        statement=text.render(statement),
        subjects=subjects,
        dimension=AGGREGATE,
        asserts_order=kind in ("cut", "above"),
    )
    verdict = Verdict(
        claim=claim,
        agreement_status="methodology" if level != "headline" else "publish",
        stability_status="judge-dependent" if kind == "unplaced" else "tie-class" if kind == "tie" else "stable",
        adversarial_status="not tested",
        publication_level=level,
        reasons=tuple(text.render(one) for one in reasons),
        binding=("agreement",),
        measurements=tuple(measurement_id("season.total", {"agent": name}) for name in subjects),
        plan_hash=PLAN,
        condition=text.join(condition) or None,
    )
    return SeasonVerdict(kind, verdict, statement, reasons, condition, withheld)  # type: ignore[arg-type]


def decided(agents: Sequence[SeasonAgent], table: SeasonTable, judges: int, days: int) -> SeasonVerdicts:
    graded = [row.contestant for row in table.rows if row.total is not None]
    rest = [row.contestant for row in table.rows if row.total is None]
    if judges == 1:
        return _alone(graded, rest)
    placed = [name for name in graded if name != "Elm"]
    groups = [(placed[0],), tuple(sorted(placed[1:-1])), tuple(placed[-1:])] if len(placed) > 2 else [tuple(placed)]
    groups = [group for group in groups if group]
    found = [
        _verdict("band", (placed[0],), "headline", said("made.band", agent=placed[0], band="strong", judges=judges))
    ]
    floor = (said("made.floor", points=6.2),)
    for high, low in pairwise(groups):
        first = said("made.behind", high=high, low=low, n=len(low))
        found.append(_verdict("cut", (*high, *low), "qualified", first, reasons=floor, condition=floor))
    found += [
        _verdict("tie", group, "qualified", said("made.tie", agents=group), condition=floor)
        for group in groups
        if len(group) > 1
    ]
    if "Elm" in graded:
        why, what = (said("made.straddle", points=25),), said("made.any_place", agent="Elm")
        found.append(_verdict("unplaced", ("Elm",), "no-claim", what, reasons=why, withheld=what))
    path = (said("made.path", days=days),)
    found += [
        _verdict(
            "beats", (one.name,), "no-claim", said("made.beats", agent=one.name), reasons=path,
            withheld=said("made.any_beats"),
        )
        for one in agents
    ]  # fmt: skip
    return SeasonVerdicts(tuple(found), tuple(groups), (*_places(groups), *_unplaced(graded, rest)))


def _places(groups: Sequence[tuple[str, ...]]) -> list[Place]:
    found, at = [], 1
    for group in groups:
        last = at + len(group) - 1
        alone = len(group) == 1
        level: Level = "headline" if alone and at == 1 else "qualified"
        why = said("made.drops" if level == "headline" else "made.unresolved" if alone else "made.one_class")
        found += [Place(name, at, last, alone, level, why) for name in group]
        at = last + 1
    return found


def _unplaced(graded: Sequence[str], rest: Sequence[str]) -> list[Place]:
    found = [Place("Elm", None, None, False, "no-claim", said("made.depends"))] if "Elm" in graded else []
    return [*found, *(Place(name, None, None, False, "no-claim", said("made.none")) for name in rest)]


def _alone(graded: Sequence[str], rest: Sequence[str]) -> SeasonVerdicts:
    """One judge: everybody is one class."""
    why = said("made.one_class")
    places = [Place(name, 1, len(graded), False, "no-claim", why) for name in sorted(graded)]
    what = said("made.tie", agents=tuple(sorted(graded)))
    tie = _verdict(
        "tie", tuple(sorted(graded)), "no-claim", what, reasons=(said("made.straddle", points=0),), withheld=what
    )
    return SeasonVerdicts((tie,), (tuple(sorted(graded)),), (*places, *_unplaced([], rest)))
