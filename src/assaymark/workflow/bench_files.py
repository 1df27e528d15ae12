"""From the command line to the plan of a benchmark: a file, or models by name and a few choices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assaymark.benchmark.reference import PREFIX, reference_benchmark_models
from assaymark.engine.models import is_outside
from assaymark.errors import InputError, Problem
from assaymark.workflow.folder import read_text
from assaymark.workflow.toml_text import toml_value

ALIASES: Final[Mapping[str, str]] = {"solver": "literal", "guesser": "prior", "equal-weight": "stubborn"}
"""Other words for reference models: what they are known as elsewhere."""

TAKES_NONE: Final = ("openai/", "anthropic/")
"""Providers whose newest models take no temperature: none is sent, unless one is asked for."""

_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a command line asks for; None and empty are the defaults of the plan."""

    models: Sequence[str] = ()
    judges: Sequence[str] = ()
    convention: str | None = None
    market: str | None = None
    market_seed: int | None = None
    instruments: int | None = None
    profiles: Sequence[str] = ()
    windows: Sequence[str] = ()
    pace: str | None = None
    per_template: int | None = None
    split: str | None = None
    conditions: Sequence[str] = ()
    question_file: Path | None = None
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int = 4096
    base_url: str | None = None
    key_env: str | None = None
    concurrency: int | None = None


def plan_text(path: Path | None, wanted: Wanted) -> tuple[str, str]:
    """The text of a plan and where it is from: the file, or one written from what is wanted.

    Raises
    ------
    InputError
        The file cannot be read, or a model is not named provider/name.
    """
    if path is not None:
        return read_text(path, "benchmark file"), str(path)
    return "\n".join(_lines(wanted)) + "\n", "the command line"


def default_folder(wanted: Wanted) -> Path:
    """Where a run goes that names no folder: one a model, so that questions and pipeline of one model come together.

    >>> str(default_folder(Wanted(models=["openai/gpt-5.2"]))), str(default_folder(Wanted()))
    ('assaymark-bench-gpt-5.2', 'assaymark-bench')
    """
    if len(wanted.models) != 1:
        return Path("assaymark-bench")
    return Path(f"assaymark-bench-{model_name(resolved(wanted.models[0]))}")


def resolved(model: str) -> str:
    """A model by its full name: ``reference/momentum`` is the benchmark's own, not the agent of that name.

    >>> resolved("reference/solver"), resolved("openai/gpt-5.2")
    ('reference/portbench-literal', 'openai/gpt-5.2')
    """
    provider, _, word = model.partition("/")
    own = PREFIX + ALIASES.get(word, word)
    return own if provider == "reference" and own in reference_benchmark_models() else model


def model_name(model: str) -> str:
    """What a model is called on the pages: the last part of its name.

    >>> model_name("openai-chat/deepseek-ai/DeepSeek V3"), model_name("reference/portbench-bold")
    ('DeepSeek-V3', 'bold')
    """
    last = model.removeprefix(PREFIX).rpartition("/")[2]
    return _NAME.sub("-", last).strip("-") or "model"


def _lines(wanted: Wanted) -> list[str]:
    models = [resolved(one) for one in wanted.models] or list(reference_benchmark_models())
    if wrong := [one for one in (*models, *wanted.judges) if not re.fullmatch(r"[a-z0-9_.-]+/.+", one)]:
        raise InputError("--model", [Problem(one, "a model is named provider/name") for one in wrong])
    lines = [
        'version = "2"',
        *_given(convention=wanted.convention, seed=wanted.seed),
        *_table(
            "market",
            source=wanted.market,
            seed=wanted.market_seed,
            instruments=wanted.instruments,
        ),
        *_table(
            "pipeline",
            profiles=list(wanted.profiles) or None,
            windows=list(wanted.windows) or None,
            frequency=wanted.pace,
        ),
        *_table(
            "questions",
            per_template=wanted.per_template,
            split=wanted.split,
            conditions=list(wanted.conditions) or None,
            file=None if wanted.question_file is None else str(wanted.question_file),
        ),
        *_table("engine", concurrency=wanted.concurrency),
    ]
    for name, model in zip(_unique([model_name(one) for one in models]), models, strict=True):
        lines += ["", "[[models]]", *_model(name, model, wanted)]
    for name, judge in zip(_unique([model_name(one) for one in wanted.judges]), wanted.judges, strict=True):
        lines += ["", "[[judges]]", *_given(name=name, model=judge, family=_family(judge))]
    return lines


def _model(name: str, model: str, wanted: Wanted) -> list[str]:
    own = model.startswith("reference/")
    if is_outside(model):
        return _given(name=name, model=model, family=_family(model))
    args = {} if own else {"max_tokens": wanted.max_tokens, "base_url": wanted.base_url, "api_key_env": wanted.key_env}
    kept = {key: value for key, value in args.items() if value is not None}
    return _given(
        name=name,
        model=model,
        family=_family(model) if not own else name,
        temperature=None if own else _temperature(model, wanted.temperature),
        args=kept or None,
    )


def _temperature(model: str, wanted: float | None) -> float | None:
    """The protocol's 0, unless another one is asked for or the provider's newest models take none."""
    if wanted is None:
        return None if model.startswith(TAKES_NONE) else 0.0
    return wanted if wanted >= 0 else None


def _family(model: str) -> str:
    """For whom a model counts: its provider, and for one name on a server of one's own that name."""
    provider, _, rest = model.partition("/")
    return model_name(rest) if provider in ("openai-chat", "http", "python", "inspect", "reference") else provider


def _unique(names: Sequence[str]) -> list[str]:
    """Names that differ: the second of the same name gets a number."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found


def _table(name: str, **values: object) -> list[str]:
    given = _given(**values)
    return ["", f"[{name}]", *given] if given else []


def _given(**values: object) -> list[str]:
    return [f"{name} = {toml_value(value)}" for name, value in values.items() if value is not None]
