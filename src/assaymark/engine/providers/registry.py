"""Registry of models: the model behind each name in a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from assaymark.engine.calls import CallSpec, Model
from assaymark.engine.prices import Prices
from assaymark.engine.providers.base import SdkModel
from assaymark.engine.providers.batches import BatchMaker
from assaymark.engine.providers.http_agent import HttpAgent, PythonAgent, external_argument_problems, is_agent_name
from assaymark.engine.providers.transports import may_hold_secret
from assaymark.errors import InputError, Problem, UnknownNameError
from assaymark.records import JSON

if TYPE_CHECKING:
    from assaymark.engine.prices import SpendLimit


# Models by name. Those of providers are made on demand: not every address can be listed in advance.


Factory = Callable[[str], Model]
"""Makes the model of a provider from the part of a name after the first slash; raises `InputError` if that is wrong."""

EXAMPLES: Final = (
    "openai/MODEL", "openai-chat/MODEL", "anthropic/MODEL", "google/MODEL", "inspect/PROVIDER/MODEL",
    "http/HOST:PORT/PATH", "https/HOST/PATH", "python/PACKAGE.MODULE:ATTRIBUTE",
)  # fmt: skip
"""Forms of the names of provider models and external agents, for messages."""

COMPATIBLE: Final = frozenset(
    {"azure", "deepseek", "fireworks", "groq", "llamacpp", "lmstudio", "mistral", "ollama", "openrouter", "together",
     "vllm", "xai"}
)  # fmt: skip
"""Servers that `openai-chat` can call, with the address of their API in ``args.base_url``."""


class Models(Mapping[str, Model]):
    """Fixed models, and models that providers make from a name. Iteration yields the fixed ones only."""

    def __init__(
        self, fixed: Mapping[str, Model], providers: Mapping[str, Factory], prices: Prices | None = None,
        budget: SpendLimit | None = None, strict: bool = False,
    ) -> None:  # fmt: skip
        self._fixed, self._providers = fixed, dict(providers)
        self._made: dict[str, Model] = {}
        self.prices, self.budget, self._strict = prices, budget, strict

    def paid_from(self, budget: SpendLimit | None, prices: Prices, strict: bool = False) -> Models:
        """Return the same models with these prices and, if given, this budget."""
        return Models(self._fixed, self._providers, prices, budget, strict)

    def raised(self) -> list[str]:
        """The exceptions of Python agents with their counts: one line for each place in an agent's code."""
        agents = {name: model for name, model in self._made.items() if isinstance(model, PythonAgent)}
        return [
            f"{name} raised {text}{f', {times:,} times' if times > 1 else ', once'}; recorded as no answer"
            for name, agent in sorted(agents.items())
            for text, times in agent.raised.most_common()
        ]

    def __getitem__(self, name: str) -> Model:
        """Return the model of that name; raise `KeyError` with the reason if there is none."""
        if name not in self._made and name in self._fixed:
            self._made[name] = self._fixed[name]
        if name not in self._made:
            provider, _, rest = name.partition("/")
            if name.lower().startswith("http") and may_hold_secret(name):
                problem = "an address has no user and no query (not shown: it may hold a secret; see args.token_env)"
                raise InputError("model", [Problem("", problem)])
            if not rest or provider not in self._providers:
                raise KeyError(str(self._unknown(name)))
            try:
                model = self._providers[provider](rest)
                self._made[name] = model.with_strict(self._strict) if isinstance(model, PythonAgent) else model
            except InputError as exc:
                raise KeyError(str(exc)) from None
        return self._made[name]

    def _unknown(self, name: str) -> UnknownNameError:
        """Return the error for an unknown name; if its provider is unknown, the message lists providers, not models."""
        provider, _, rest = name.partition("/")
        ours = {name.partition("/")[0] for name in self._fixed}
        if not rest or provider in ours:
            return UnknownNameError("model", name, [*self._fixed, *EXAMPLES])
        known = [*ours, *self._providers]
        matches = ["openai-chat"] if provider in COMPATIBLE else get_close_matches(provider, known, n=1)
        names = [*(f"{our}/MODEL" for our in ours), *EXAMPLES]
        return UnknownNameError("model", name, names, meant=f"{matches[0]}/{rest.lstrip('/')}" if matches else None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._fixed)

    def __len__(self) -> int:
        return len(self._fixed)

    def problem(self, name: str) -> str | None:
        """Return the reason why no model has that name, for the user who wrote it; None if one has."""
        try:
            self[name]
        except KeyError as exc:
            return str(exc.args[0])
        except InputError as exc:
            return str(exc)
        return None


def providers(environ: Mapping[str, str] | None = None) -> dict[str, Factory]:
    """Return every provider of models and agents, by the part of a name before its first slash."""
    return external_providers() | {name: partial(_make, name, 1, environ) for name in _SDK_MODELS}


def batch_providers(environ: Mapping[str, str] | None = None) -> dict[str, BatchMaker]:
    """Return the providers that take batches, by the part of a model's name before its first slash."""
    return {name: partial(_make, name, 2, environ) for name, classes in _SDK_MODELS.items() if len(classes) > 2}


_SDK_MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("anthropic", "AnthropicModel", "AnthropicBatches"),
    "google": ("google", "GoogleModel", "GoogleBatches"), "openai": ("openai", "OpenAIModel", "OpenAIBatches"),
    "openai-chat": ("openai", "OpenAIChatModel", "OpenAIChatBatches"), "inspect": ("inspect", "InspectModel"),
}  # fmt: skip
"""Providers behind an SDK: module, model class and, if they take batches, batch class; imported when first needed."""


def _sdk_class(provider: str, index: int) -> Any:
    """A provider's model class (1), or its batches (2)."""
    names = _SDK_MODELS[provider]
    return getattr(import_module(f"assaymark.engine.providers.{names[0]}"), names[index])


def _make(provider: str, index: int, environ: Mapping[str, str] | None, name: Any) -> Any:
    return _sdk_class(provider, index)(name, environ)


def provider_argument_problems(model: str, args: Mapping[str, JSON]) -> list[str]:
    """Return the problems with the arguments of a provider's model; empty for built-in models."""
    provider = model.partition("/")[0]
    of = _sdk_class(provider, 1).argument_problems if provider in _SDK_MODELS else external_argument_problems
    return list(of(model, args))


def external_providers() -> dict[str, Factory]:
    """The providers of external agents: ``http/...`` and ``https/...`` addresses, ``python/...`` callables."""

    def python(rest: str) -> PythonAgent:
        if not is_agent_name(rest):
            problem = "must be python/PACKAGE.MODULE:ATTRIBUTE or an installed entry point of group assaymark.agents"
            raise InputError(f"python/{rest[:80]}", [Problem("", problem)])
        return PythonAgent(rest)

    addresses = {scheme: lambda rest, scheme=scheme: HttpAgent(f"{scheme}://{rest}") for scheme in ("http", "https")}
    return {**addresses, "python": python}


def check_ready(model: Model, call: CallSpec | None = None) -> None:
    """Raise unless a model can make this call, before a run calls any; built-in models always can."""
    if isinstance(model, HttpAgent | PythonAgent):
        model.check()
    elif isinstance(model, SdkModel) and call is not None:
        model.check(call)
