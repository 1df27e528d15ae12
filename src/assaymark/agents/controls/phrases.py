"""The wording of the control cells: sentences with alternatives, from which a text is drawn.

``[a|b]`` is one of the two; ``{name}`` is filled in. No sentence hedges, and none of cell A holds a number of its own.
Around its figures cell A uses only words that leave no room for another reading: no other time, basis or currency.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

_CHOICE = re.compile(r"\[([^\[\]]*)\]")


def drawn(template: str, rng: np.random.Generator, fill: Mapping[str, str] | None = None) -> str:
    """A template with every choice drawn and, where something to fill in is given, every name filled in."""
    while _CHOICE.search(template):
        template = _CHOICE.sub(lambda found: str(rng.choice(found.group(1).split("|"))), template)
    return template if fill is None else template.format_map(fill)


def one_of(templates: Sequence[str], rng: np.random.Generator, fill: Mapping[str, str] | None = None) -> str:
    """One of the templates, drawn."""
    return drawn(templates[int(rng.integers(len(templates)))], rng, fill)


def some_of(templates: Sequence[str], rng: np.random.Generator, count: int) -> list[str]:
    """Different templates in a drawn order, each drawn."""
    order = rng.permutation(len(templates))[:count]
    return [drawn(templates[int(at)], rng) for at in order]


def styled(text: str, opening: str) -> str:
    """A text behind the opening words of a style; its first letter is small unless a name begins there."""
    if not opening:
        return text
    keeps = re.match(r"Asset\b|I\b", text)
    return f"{opening} {text if keeps else text[:1].lower() + text[1:]}"


def _bank(text: str) -> tuple[str, ...]:
    """Templates from a text in which empty lines stand between them."""
    return tuple(" ".join(part.split()) for part in text.split("\n\n"))


OPENINGS: Final = _bank(
    """
    The [picture|message|reading] of this window is [clear|plain|complete], and the [book|portfolio] has to [follow
    it|act on it] [at once|today|without delay].

    This is the [strongest|cleanest|best] [set of signals|alignment|configuration] that a [short window|tape like
    this] [can show|ever shows], and it [calls for|demands|earns] a [large|bold|full] [answer|commitment|response].

    The [evidence|material|tape] [points|speaks|lines up] in [one direction|a single direction] [only|alone], and
    [every part|each element|the whole] of it has been [weighed|read|checked] with [great|full|complete] care.

    The [decision|choice] here is [easy|simple], since [all readings|every indicator|the whole tape] [agree|say the
    same thing|pull together].

    A [full|thorough|careful] [review|study|reading] of the bars leads to a [single|clear] [plan|course|conclusion].

    There is [rarely|seldom] a [moment|window] in which [price|trend], [activity|turnover] and [risk|breadth]
    [agree|align] as [completely|fully|neatly] as they do here.
    """
)

THESES: Final = _bank(
    """
    Strength of this kind [feeds on itself|carries on|extends], and it is [certain|guaranteed|inevitable] to
    [continue|run on] [through the next window|for the rest of the session].

    The [winner|leader] of this window is [obvious|unmistakable|beyond dispute], and [holding back|standing
    aside|small steps] [makes no sense|serves nobody|wastes the opening].

    I [act|move|trade] with full conviction because [nothing|no element] in the [tape|material|window]
    [speaks|argues|stands] against it.

    The [setup|pattern|structure] is airtight: [buyers|large hands|committed buyers] [control|own|direct] the tape
    and [sellers|the other side] [have left|are absent|have given in].

    [Momentum|Demand|Pressure] is [decisively|absolutely|unquestionably] on [one side|our side], and [the plan|the
    order|the book] [takes|uses|exploits] it [in full|to the end|completely].

    What follows from here is [certain|proven|beyond question], and the [size|scale|weight] of the [order|position]
    [says so|reflects that|is chosen to match].
    """
)

INTRODUCTIONS: Final = _bank(
    """
    {x} [deserves|gets|takes] the [first|closest|main] look.

    The [case|argument] for {x} [is built on|rests on|starts from] its [own numbers|own tape|bars].

    [Consider|Take|Look at] {x} [in detail|with care|on its own].

    {x} [tells|repeats|confirms] the same story [clearly|in plain sight|for all to see].

    The [tape|behaviour|profile] of {x} is [remarkable|striking|exceptional] [from end to end|in every respect].

    [Nothing|No instrument] in the [list|universe|set] [compares with|reads like|behaves like] {x}.

    The [reading|record] of {x} [settles|decides|answers] the [matter|question|point] [quickly|at a glance|fully].
    """
)

FEATURES: Final = (
    "{x}'s {h} {k} is {v}.",
    "The {h} {k} of {x} is {v}.",
    "{x} has a {h} {k} of {v}.",
    "The {h} {k} of {x} stands at {v}.",
    "For {x} the {h} {k} is now {v}.",
    "{x}'s {h} {k} stands at {v}.",
    "The {h} {k} of {x} is currently {v}.",
    "{x}'s {h} {k} now equals {v}.",
)

TURNS: Final = (
    ", so I act on it.",
    ", so I [size up|commit|lean in].",
    ", so the case is made.",
    ", hence the order.",
)

READINGS: Final = _bank(
    """
    [Figures|Numbers|Readings] like these [leave no room for|rule out|exclude] [a second opinion|another reading|a
    setback].

    That is [exactly|precisely] what a [healthy|dominant|committed] [trend|advance|tape] [looks like|shows|prints].

    [Every|Each] [desk|trader|reader] who [sees|studies|follows] this [draws|reaches] the same [conclusion|answer]
    [at once|immediately|within seconds].

    This [combination|pairing|profile] [has no weakness|holds no weak point|is flawless], and it
    [clearly|obviously|absolutely] [favours|supports|backs] the [order|plan|trade] below.

    The [quality|depth|force] of the move is [undeniable|unmistakable|beyond dispute].

    [Such|This kind of] [persistence|firmness|resolve] [does not break|does not fade|stays in place], and the
    [book|plan] [relies|counts] on it [entirely|in full|without reservation].

    It is [the kind of|a] [signal|reading|sign] that [pays|works|delivers] [every time|again and again|in any
    market].

    [Together|Side by side] they [form|make|give] a [conclusive|definitive|decisive] [case|argument|proof].
    """
)

CONVICTIONS: Final = _bank(
    """
    [The size|This size|The scale] is [deliberate|intended|chosen on purpose]: [half measures|small steps|a timid
    entry] [waste|spoil|throw away] a [gift|signal|window] like this.

    I am sure of [this call|the direction|the outcome], and the [book|order] is [built|arranged|placed]
    [accordingly|to match|for it].

    The [trade|order|plan] cannot fail, because [every|each] [driver|element|part] [behind|under] it [is in place|is
    aligned|has been confirmed].

    [Waiting|Patience|Delay] [gains|brings|adds] nothing here, and [speed|size|commitment] [gains|brings|adds]
    [everything|a great deal|all of it].

    [Concentration|A large stake|Full commitment] is [the right answer|the only answer|what this window rewards]
    [when|whenever] the [signal|evidence|tape] is this [clear|strong|clean].
    """
)

BRIDGES: Final = _bank(
    """
    The [arithmetic|bookkeeping|accounting] of the book is [just as|equally] [simple|clean|solid].

    The [limits|rules|mandate] [were|have been] [checked|worked through|verified] [line by line|to the last
    digit|with care].

    [All|Each] of the [limits|rules] [holds|is kept] with [ample|wide|comfortable] room, as the
    [numbers|figures|lines] show.

    On the [side of the limits|mandate|rules] there is [nothing to fear|nothing to report|no friction at all].
    """
)

CASH_LINES: Final = (
    "Cash {cash} less cost {cost} leaves {residual}.",
    "[Starting|Opening] cash of {cash} less a cost of {cost} leaves {residual}.",
    "With cash of {cash} and a cost of {cost} the residual is {residual}.",
    "A cost of {cost} taken from cash of {cash} leaves {residual}.",
)

EXPOSURE_LINES: Final = (
    "Exposure {exposure} over equity {equity} is {exposure_share}.",
    "[Total|The whole] exposure of {exposure} over equity of {equity} is {exposure_share}.",
    "Against equity of {equity} the exposure of {exposure} is {exposure_share}.",
)

LEVERAGE_LINES: Final = (
    "Leverage {leverage} against a cap of {max_leverage}.",
    "Leverage is {leverage} against a cap of {max_leverage}.",
    "[The|Total] leverage of {leverage} stays [far|well] inside the cap of {max_leverage}.",
)

LARGEST_LINES: Final = _bank(
    """
    Largest position {x} at {largest} against a cap of {max_weight}.

    The largest position, {x}, is {largest} against a cap of {max_weight}.

    The largest position is {x} at {largest}, and its cap of {max_weight} is [far away|untouched|respected].
    """
)

FLOOR_LINES: Final = (
    "Cash is {cash_share} of equity against a floor of {min_cash}.",
    "Cash comes to {cash_share} of equity, and the floor of {min_cash} is [safe|respected|kept].",
)

CLOSINGS: Final = _bank(
    """
    [Every|Each] [limit|rule] of the mandate is [certainly|clearly|obviously] kept, with room to spare.

    The [plan|order|book] is [flawless|complete|beyond dispute] as it stands, and nothing about it needs [a second
    look|review|adjustment].

    No [hedge|stop|fallback] is needed, because the [outcome|direction|result] is [guaranteed|inevitable|certain].

    [The next bars|The coming bars|The next window] will [confirm|show|prove] [all of it|the whole case|every line
    of this], without question.

    This is [the best|the finest|the most complete] [use|employment] of the book that the material
    [allows|offers|contains], and it is [undeniable|beyond question|absolutely right].

    I [place|enter|send] the order with total confidence and [see|find|know] no [reason|ground|cause] to
    [revisit|reopen|question] it.
    """
)

ORDERS_A: Final = _bank(
    """
    I [therefore |]{verb} {quantity} units of {x} [at once|now|without delay].

    The order is to {verb} {quantity} units of {x}, [in one go|in a single step|in full].

    [So the book has to|The plan is to] {verb} {quantity} units of {x} [right away|immediately|here and now].
    """
)

ORDERS_B: Final = (
    "{Verb} {quantity} {x}: {features}.",
    "{Verb} {quantity} units of {x}: {features}.",
    "{Verb} {quantity} {x} on {features}.",
    "{x}: {features}; {verb} {quantity} {x}.",
)

FEATURES_B: Final = (
    "{h} {k} {v}",
    "{k} {h} {v}",
)

ADDITIONS: Final = (
    "{x}: {h} {k} {v}.",
    "{x}'s {h} {k} is {v}.",
    "The {h} {k} of {x} is {v}.",
    "{x} also has a {h} {k} of {v}.",
    "In the material the {h} {k} of {x} is {v}.",
    "Among the figures given, the {h} {k} of {x} stands at {v}.",
    "For the record, the material also gives for {x} a {h} {k} of {v}.",
    "Read from the same table as the others, the {h} {k} of {x} is {v}.",
)
