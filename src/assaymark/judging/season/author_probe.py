"""Can a judge tell whose record it reads? A probe of the blinding of a season.

A judge that recognises an author may favour it, whatever its grades say. The probe asks for a guess and compares how
often it is right with chance. It is the one prompt that lists the agents' names, and no grade comes of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from assaymark.engine.calls import CallSpec, Message, Reply
from assaymark.errors import InputError, Problem
from assaymark.judging.replies import Invalid
from assaymark.judging.season.horizon_prompts import judge_call, record_head, schema_text, season_template, shared_text
from assaymark.judging.season.horizon_replies import (
    Read,
    checked_object,
    checked_text,
    parsed_by,
    read_reply,
)
from assaymark.judging.season.horizon_split import BUDGET, split_horizon
from assaymark.judging.season.horizon_types import Horizon
from assaymark.prompting.strict_json import Rejected, shown
from assaymark.protocol import JudgeSpec
from assaymark.quantiles import wilson_ends
from assaymark.records import JSON

AUTHOR_TEMPLATE: Final = "author-v1.txt"
"""The prompt template in use."""

ProbeState = Literal["above chance", "not above chance", "no guess"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedProbe:
    """One probe call, and the author it is about. ``shown`` are the numbers of the first and last step shown."""

    call: CallSpec
    author: str
    judge: str
    trial: int
    options: tuple[str, ...]
    shown: tuple[int, int]


@dataclass(frozen=True, slots=True)
class AuthorGuess:
    """A reply to a probe that has the form that was asked for."""

    author: str
    reason: str


@dataclass(frozen=True, slots=True)
class AuthorProbe:
    """How often a judge guessed the author.

    Attributes
    ----------
    judge : str
    hits, guesses, asked : int
        Right guesses, replies that are a guess, and replies altogether.
    chance : float
        One over the number of agents.
    accuracy, low, high : float or None
        Hits over guesses with Wilson's score interval; None without a guess.
    level : float
        Of the interval.
    state : "above chance", "not above chance" or "no guess"
        Above chance where the whole interval is. The other answer is no proof of blindness: with few guesses the
        interval is wide.
    hits_of : mapping of author to (hits, guesses)
        One agent with a style of its own can be known while the others are not.
    """

    judge: str
    hits: int
    guesses: int
    asked: int
    chance: float
    accuracy: float | None
    low: float | None
    high: float | None
    level: float
    state: ProbeState
    hits_of: Mapping[str, tuple[int, int]]

    def __str__(self) -> str:
        if self.accuracy is None or self.low is None or self.high is None:
            return f"{self.judge}: {self.state} in {self.asked} replies"
        ends = f"[{self.low:.0%}, {self.high:.0%}]"
        said = f"{self.judge}: {self.hits} of {self.guesses} right {ends}"
        return f"{said} against {self.chance:.0%} by chance, {self.state}"


def author_texts() -> dict[str, str]:
    """The text that probes are made from, by name, for a plan hash. The schema of a guess follows from the agents."""
    return {AUTHOR_TEMPLATE: season_template(AUTHOR_TEMPLATE).text}


def author_schema(options: Sequence[str]) -> dict[str, JSON]:
    """The JSON schema of a guess among these names."""
    return {
        "type": "object",
        "properties": {"author": {"type": "string", "enum": list(options)}, "reason": {"type": "string"}},
        "required": ["author", "reason"],
        "additionalProperties": False,
    }


def probe_calls(
    horizons: Mapping[str, Horizon], judges: Sequence[JudgeSpec], *, budget: int = BUDGET
) -> list[PlannedProbe]:
    """A probe for every agent, judge and trial. Of a horizon that is split the first part is shown.

    Parameters
    ----------
    horizons : mapping of agent to Horizon
        All agents of the season: they are the options, in alphabetical order.

    Raises
    ------
    InputError
        Fewer than two agents, between whom there is nothing to guess.
    """
    options = tuple(sorted(horizons))
    if len(options) < 2:
        raise InputError("author probe", [Problem("agents", f"at least two are needed (got {len(options)})")])
    template = season_template(AUTHOR_TEMPLATE)
    schema = schema_text(author_schema(options))
    listed = "\n".join(f"- {json.dumps(name, ensure_ascii=False)}" for name in options)
    system = shared_text(template.filled("system", options=listed, schema=schema.text))
    planned = []
    for author in options:
        part = split_horizon(horizons[author], budget=budget)[0]
        head = record_head(horizons[author].mandate, part, template=AUTHOR_TEMPLATE)
        messages = (Message("system", (system,)), Message("user", (head, part.body)))
        planned += [
            PlannedProbe(
                call=judge_call(judge, trial, messages, AUTHOR_TEMPLATE, schema),
                author=author,
                judge=judge.name,
                trial=trial,
                options=options,
                shown=(part.first, part.last),
            )
            for judge in judges
            for trial in range(1, judge.trials + 1)
        ]
    return planned


def parse_guess(text: str, options: Sequence[str]) -> AuthorGuess | Invalid:
    """What a judge guesses, or why that is no guess.

    >>> parse_guess('{"author": "alder", "reason": "its phrases"}', ["alder", "birch"])
    AuthorGuess(author='alder', reason='its phrases')
    >>> parse_guess('{"author": "cedar", "reason": ""}', ["alder", "birch"])
    Invalid(reason="author must be one of the names listed (got 'cedar')")
    """
    return parsed_by(text, lambda raw: _guess(raw, options))


def _guess(raw: JSON, options: Sequence[str]) -> AuthorGuess:
    found = checked_object(raw, ("author", "reason"))
    author = found["author"]
    if not isinstance(author, str) or author not in options:
        raise Rejected(f"author must be one of the names listed (got {shown(author)})")
    return AuthorGuess(author, checked_text(found["reason"], "reason"))


def read_guess(reply: Reply, probe: PlannedProbe) -> Read[AuthorGuess]:
    """What a reply to a probe amounts to; nothing in it can make this raise."""
    return read_reply(reply, parse_guess(reply.text, probe.options))


def author_probe(
    answered: Iterable[tuple[PlannedProbe, Read[AuthorGuess]]], *, level: float = 0.95
) -> list[AuthorProbe]:
    """How often each judge guessed the author, against chance.

    Replies that are no guess are left out of the accuracy and counted in ``asked``. The interval takes guesses to be
    independent; repeated trials on one record are not quite, so probe several periods rather than many trials.

    Parameters
    ----------
    answered : iterable of (probe, what its reply amounts to)
    level : float
        Coverage of the intervals, strictly between 0 and 1.

    Returns
    -------
    list of AuthorProbe, by judge in alphabetical order

    Raises
    ------
    InputError
        A call that comes twice, probes of one judge with other options, or a level that is none.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22, 209-212.
    """
    found = list(answered)
    _refuse(found, level)
    judges = sorted({probe.judge for probe, _ in found})
    return [_of_judge(judge, [one for one in found if one[0].judge == judge], level) for judge in judges]


def _of_judge(judge: str, found: Sequence[tuple[PlannedProbe, Read[AuthorGuess]]], level: float) -> AuthorProbe:
    """One judge's guesses."""
    right = [(probe.author, read.answer.author == probe.author) for probe, read in found if read.answer is not None]
    hits, n, chance = sum(hit for _, hit in right), len(right), 1 / len(found[0][0].options)
    low, high = wilson_ends(hits / n, n, level=level) if n else (None, None)
    state: ProbeState = "no guess" if low is None else "above chance" if low > chance else "not above chance"
    guesses, hits_of = Counter(author for author, _ in right), Counter(author for author, hit in right if hit)
    return AuthorProbe(
        judge=judge,
        hits=hits,
        guesses=n,
        asked=len(found),
        chance=chance,
        accuracy=hits / n if n else None,
        low=low,
        high=high,
        level=level,
        state=state,
        hits_of={author: (hits_of[author], guesses[author]) for author in sorted(guesses)},
    )


def _refuse(found: Sequence[tuple[PlannedProbe, Read[AuthorGuess]]], level: float) -> None:
    """What there is no accuracy of."""
    problems = [] if 0 < level < 1 else [Problem("level", f"must lie strictly between 0 and 1 (got {level})")]
    for (author, key), count in Counter((probe.author, probe.call.key) for probe, _ in found).items():
        if count > 1:
            problems.append(Problem(f"{author}, call {key[:12]}", f"was answered {count} times"))
    for judge in sorted({probe.judge for probe, _ in found}):
        if len({probe.options for probe, _ in found if probe.judge == judge}) > 1:
            problems.append(Problem(judge, "guessed among different agents; report each season on its own"))
    if problems:
        raise InputError("author probe", problems)
