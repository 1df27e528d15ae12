"""What an external agent is sent, what it answers, and the failures that stand in the place of an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final, Literal

from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import InputError, ModelError
from assaymark.prompting.strict_json import Rejected, strict_json
from assaymark.records import JSON, Context, canonical_json, parse, record
from assaymark.typography import code_points

FORMAT: Final = "assaymark context 1"
"""What the ``format`` of a request says; another form would have another number."""

PATIENCE_S: Final = 100.0
"""Seconds that an agent has for one decision unless its ``args.timeout_s`` says otherwise."""

MOST_BYTES: Final = 2_000_000
"""The longest answer that is taken from an agent; a decision is a few thousand bytes."""

FailureKind = Literal[
    "timeout",
    "refused",
    "unreachable",
    "tls",
    "cut",
    "not HTTP",
    "status",
    "redirect",
    "encoding",
    "too large",
    "not UTF-8",
    "exception",
    "wrong type",
]

_CAME: Final[frozenset[FailureKind]] = frozenset({"wrong type", "too large", "encoding", "not UTF-8"})
"""Failures of an answer that came and could not be read."""

_LONGEST_PATIENCE_S: Final = 3600.0
_DETAIL_CHARS: Final = 300
_START_CHARS: Final = 500
_WORD_CHARS: Final = 200
_MOST_TOKENS: Final = 10**12
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "http": ("token_env", "timeout_s"),
    "https": ("token_env", "timeout_s"),
    "python": ("timeout_s",),
}

OUTSIDE: Final = tuple(f"{provider}/" for provider in _ARGUMENTS)
"""How the names of agents of one's own begin: an address, or a Python callable."""


@record
class MarketContext(Context):
    """A context of the benchmark's pipeline: what its prompt says in words and tables, as numbers.

    ``instruments`` give the order of everything that comes as rows and columns. ``returns`` are daily simple returns, a
    row a day, oldest first, the last one of the decision day; ``correlations`` are those of these returns.
    ``horizon_days`` is how many trading days ahead views look. ``views`` and ``signals`` are the agent's own answers to
    the stages before, as they were read; ``weights`` the shares of net asset value that are held before the trade.
    """

    stage: Literal["S1", "S2", "S3"]
    returns: tuple[tuple[float, ...], ...]
    correlations: tuple[tuple[float, ...], ...]
    horizon_days: int | None = None
    views: Mapping[str, float] = field(default_factory=dict)
    signals: Mapping[str, Literal["buy", "hold", "sell"]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)


@record
class QuestionContext(Context):
    """A context of a question of the benchmark.

    ``given`` are the numbers that the prompt states, by name and with the digits that it prints; of a question whose
    text is somebody else's there are none. What is left out of a restricted prompt is left out of them too.
    """

    template: str
    given: Mapping[str, JSON] = field(default_factory=dict)


@record
class AgentRequest:
    """What an external agent is sent: all that it may use, and the JSON Schema of the answer.

    As JSON it is the user message of the call, and the body of the POST.
    """

    context: Context | MarketContext | QuestionContext
    reply_schema: Mapping[str, JSON]
    format: Literal["assaymark context 1"] = FORMAT


def is_outside(model: str) -> bool:
    """Whether a model name is an agent of one's own, which is sent contexts and no prompt.

    >>> is_outside("http/127.0.0.1:8700/decide"), is_outside("reference/steward")
    (True, False)
    """
    return model.startswith(OUTSIDE)


@record
class AgentFailure:
    """Why there is no answer. ``start`` is the beginning of what did arrive, for a person who looks into it.

    >>> AgentFailure(failure="status", detail="the agent answered with status 500").text
    '{"detail":"the agent answered with status 500","failure":"status","start":""}'
    """

    failure: FailureKind
    detail: str
    start: str = ""

    @property
    def text(self) -> str:
        """The failure as the text of a reply; ``parse(AgentFailure, text)`` reads it back."""
        return canonical_json(self)

    def reply(self, model: str, raw: str | None = None) -> Reply:
        """The failure as the recorded reply of a model: the call has its outcome and is never asked again."""
        return Reply(text=self.text, model=model, finish="failed", raw=raw)


def failure(kind: FailureKind, detail: str, start: str = "") -> AgentFailure:
    """A failure in printable words that are cut short, whatever the agent put into them.

    >>> failure("exception", "ValueError: no\\n\\x1b[31mway").detail
    'ValueError: no [31mway'
    """
    return AgentFailure(failure=kind, detail=_plain(detail, _DETAIL_CHARS), start=_plain(start, _START_CHARS))


def no_reply(reply: Reply) -> bool:
    """Whether a call was asked for and nothing came: an exception, nobody there, a refusal, no answer in time.

    An answer that came and cannot be read is none of these.

    >>> no_reply(failure("exception", "ValueError").reply("python/m:f")), no_reply(Reply(text="?", model="m"))
    (True, False)
    """
    return reply.finish == "refusal" or (reply.finish == "failed" and _object(reply.text).get("failure") not in _CAME)


def request_text(call: CallSpec) -> str:
    """The text that an external agent is sent: the user message of its call.

    Raises
    ------
    ModelError
        The call is none for an external agent: it was made for a model that reads a prompt.
    """
    text = "".join(message.text for message in call.messages if message.role == "user")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise ModelError(
            f"{call.model} is an external agent: it is sent contexts ({FORMAT!r}), and cannot judge or read a prompt",
            retryable=False,
        )
    return text


def read_request(call: CallSpec) -> AgentRequest:
    """The request of a call, as records.

    Raises
    ------
    ModelError
        The call is none for an external agent, or holds no context.
    """
    try:
        return parse(AgentRequest, request_text(call), source=f"the request to {call.model}")
    except InputError as exc:
        raise ModelError(str(exc), retryable=False) from None


def answered(text: str, model: str) -> Reply:
    """An agent's answer as a reply. Its own words for who answered, and what it used, are read if they are there.

    The orders and reasons in it are not looked at here; what is not of the form counts as not said.

    >>> answered('{"model": "two-agents", "usage": {"input_tokens": 12, "output_tokens": "?"}}', "http/x").input_tokens
    12
    """
    facts = _object(text)
    usage = facts.get("usage")
    tokens = usage if isinstance(usage, dict) else {}
    return Reply(
        text=text,
        model=_word(facts.get("model")) or model,
        fingerprint=_word(facts.get("fingerprint")),
        input_tokens=_count(tokens.get("input_tokens")),
        output_tokens=_count(tokens.get("output_tokens")),
    )


def patience(args: Mapping[str, JSON]) -> float:
    """Seconds that an agent has for one decision. The deadline of the run must be longer, or it cuts in first.

    >>> patience({"timeout_s": 600})
    600.0
    """
    return float(args.get("timeout_s", PATIENCE_S))


def external_argument_problems(model: str, args: Mapping[str, JSON]) -> Iterator[str]:
    """What is wrong with the arguments of an external agent, in words; nothing for models of other providers.

    >>> list(external_argument_problems("python/mine:decide", {"timeout_s": 0}))
    ['timeout_s must be a number of seconds above 0 and at most 3600 (got 0)']
    """
    allowed = _ARGUMENTS.get(model.partition("/")[0])
    if allowed is None:
        return
    for name, value in args.items():
        if name not in allowed:
            yield f"unknown argument {name!r} of {model}; allowed: {', '.join(allowed)}"
        elif name == "timeout_s" and not _is_patience(value):
            yield f"timeout_s must be a number of seconds above 0 and at most {_LONGEST_PATIENCE_S:g} (got {value!r})"
        elif name == "token_env" and not (isinstance(value, str) and _VARIABLE.fullmatch(value)):
            # Not shown: somebody may have put the token itself here.
            yield "token_env must be the name of an environment variable: letters, digits and underscores"


def require_arguments(call: CallSpec) -> None:
    """Raise `ModelError` unless the arguments of a call are those of an external agent."""
    problems = list(external_argument_problems(call.model, call.args))
    if problems:
        raise ModelError("; ".join(problems), retryable=False)


def _is_patience(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _LONGEST_PATIENCE_S


def _object(text: str) -> dict[str, Any]:
    try:
        found = strict_json(text)
    except Rejected:
        return {}
    return found if isinstance(found, dict) else {}


def _word(value: object) -> str | None:
    """A short printable text, or nothing."""
    good = isinstance(value, str) and 0 < len(value) <= _WORD_CHARS and value.isprintable()
    return str(value) if good else None


def _count(value: object) -> int | None:
    """A number of tokens, or nothing."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if good and isinstance(value, int) else None


def _plain(text: str, most: int) -> str:
    """``text`` on one line, printable, at most ``most`` characters."""
    shown = " ".join("".join(char if char.isprintable() else " " for char in code_points(text[: 4 * most])).split())
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."
