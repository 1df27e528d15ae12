"""Models behind Inspect AI's model API: any provider that Inspect supports, with the rules of our own clients."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final

from assaymark.engine.calls import CallSpec, Finish, Reply
from assaymark.engine.providers import base
from assaymark.engine.providers.transports import (
    API_RULES,
    PerLoop,
    Provider,
    Rule,
    Secret,
    Transport,
    argument_problems,
    load_sdk,
    refuse,
    transport,
)
from assaymark.errors import InputError, ModelError, Problem
from assaymark.records import JSON

INSPECT: Final = Provider(
    name="inspect", sdk="inspect_ai", extra="inspect", key_envs=(), home="the provider's own address"
)
"""Inspect itself; the provider behind it, its key and its address are looked up when a model is made."""

OPTION: Final = "provider_"
"""Prefix of arguments that are passed on to Inspect's provider, such as ``provider_responses_api``."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}/[!-~]{1,200}")
_OPTION = re.compile(rf"{OPTION}[a-z][a-z0-9_]*")
_SECRET = re.compile(r"key|token|secret|password|credential|header", re.IGNORECASE)
_MARKUP = re.compile(r"\[/?[a-z][a-z0-9_ ]*\]")
_PLAIN: Final = (lambda value: isinstance(value, str | int | float), "a text, number or truth value")
_NOT_OPTIONS: Final = frozenset({"model", "role", "required", "default", "config", "base_url", "memoize"})
_MOST_AT_ONCE: Final = 100_000  # connections: the runner limits the number of calls in flight
_NO_KEY: Final = "no-key"
_SHORTEST_KEY: Final = 8
_FINISH: Final[Mapping[str, Finish]] = {"max_tokens": "length", "model_length": "length", "content_filter": "refusal"}
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "seed": ("seed",), "temperature": ("temperature",), "effort": ("effort", "thinking"),
}  # fmt: skip
"""Parts of names in a request that show that a setting was sent; the names differ between providers."""

_SENT_UNSEEN: Final[Mapping[str, frozenset[str]]] = {
    "mockllm": frozenset(_PARTS), "hf": frozenset({"seed", "temperature"}),
}  # fmt: skip
"""Settings that are known to reach providers without a request, which run in this process."""

_NOT_SETTINGS: Final = frozenset({"messages", "input", "contents", "system", "instructions", "properties", "tools"})

_Client = tuple[Any, Transport]
"""Inspect's model, and its transport with the key that Inspect found."""


@dataclass(slots=True)
class _Exchange:
    """One exchange below Inspect's own layer: request and response, or the provider's exception."""

    request: Mapping[str, Any] | None = None
    response: Mapping[str, Any] | None = None
    error: Exception | None = None


_SEEN: ContextVar[_Exchange | None] = ContextVar("assaymark_inspect_seen", default=None)


class InspectModel:
    """A model of one of Inspect's providers. Each attempt is one request: Inspect's retries and cache are off."""

    def __init__(
        self, name: str, environ: Mapping[str, str] | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        if _NAME.fullmatch(name) is None:
            problem = "must be inspect/PROVIDER/MODEL, such as inspect/mistral/mistral-large-latest"
            raise InputError(f"inspect/{name[:80]}", [Problem("", problem)])
        self.name = name
        self.provider = name.partition("/")[0]
        self._environ, self._options = environ, dict(options or {})
        self._clients: PerLoop[_Client] = PerLoop(self._client, lambda client: client[0].api.aclose())
        self._unsent: set[str] = set()

    async def complete(self, call: CallSpec) -> Reply:
        """Send a call once and return the reply. Raises `ModelError`."""
        refuse(call, list(self._problems(call)))
        # an address from the study's plan only gets the key that the plan names
        options = tuple((name.removeprefix(OPTION), call.args[name]) for name in sorted(call.args) if _is_option(name))
        provider = replace(INSPECT, name=f"inspect/{self.provider}")
        at = replace(transport(provider, call, self._environ), options=options)
        load_sdk(INSPECT)
        (model, at), trace = await self._clients.of(at), _Exchange()
        output = await base.attempt(at, self._generated(model, at, call, trace))
        # Refuse the answer if a setting of the call was not sent, and remember which
        if trace.request is None or self.provider in _SENT_UNSEEN:
            sent = _SENT_UNSEEN.get(self.provider, frozenset[str]())
            missing = [name for name in _wanted(call) if name not in sent]
        else:
            names = {name.lower() for name in _setting_names(trace.request)}
            missing = [key for key in _wanted(call) if not any(part in name for part in _PARTS[key] for name in names)]
        self._unsent.update(missing)
        refuse(call, [self._drops(name) for name in missing])
        response = trace.response if trace.response is not None else output.model_dump(mode="json", exclude_none=True)
        raw = at.scrubbed(json.dumps(response, ensure_ascii=False, default=str))
        if (outcome := base.too_large(raw.encode("utf-8", "backslashreplace"), call, at)) is not None:
            return outcome
        if not output.choices:
            return Reply("the provider gave no answer", call.model, "failed", raw)
        usage, stop = output.usage, output.choices[0].stop_reason
        if stop == "model_length" and usage is None:
            # Inspect's form of a prompt that is too long; a reply that was cut off has a usage.
            text = f"{at.provider.name}: the prompt is too long for {at.model!r}"
            raise ModelError(text, retryable=False, refused="call")
        counts: dict[str, Any] = {}
        if usage is not None:  # Inspect's input tokens exclude those of the cache, ours include them
            cached, written = usage.input_tokens_cache_read, usage.input_tokens_cache_write
            counts = {
                "input_tokens": base.count_of(usage.input_tokens + (cached or 0) + (written or 0)),
                "output_tokens": base.count_of(usage.output_tokens),
                "reasoning_tokens": base.count_of(usage.reasoning_tokens), "cached_tokens": base.count_of(cached),
            }  # fmt: skip
        fingerprint = trace.response.get("system_fingerprint") if isinstance(trace.response, Mapping) else None
        return Reply(
            output.completion, base.word_of(output.model) or call.model, _FINISH.get(str(stop), "stop"), raw,
            fingerprint=base.word_of(fingerprint), **counts,
        )  # fmt: skip

    async def aclose(self) -> None:
        """Close the connections of this event loop; those of other loops close when their loop ends."""
        await self._clients.aclose()

    async def _generated(self, model: Any, at: Transport, call: CallSpec, exchange: _Exchange) -> Any:
        """Return Inspect's output for a call; every exception becomes a `ModelError`."""
        api = load_sdk(replace(INSPECT, sdk="inspect_ai.model"))
        system, users = base.system_and_users(call)
        messages = [api.ChatMessageSystem(content=system)] if system else []
        messages += [api.ChatMessageUser(content=text) for text in users]
        # with Inspect's retries, cache and batching off
        config = api.GenerateConfig(
            max_retries=0, cache=False, batch=False, fail_on_refusal=False, adaptive_connections=False,
            max_connections=_MOST_AT_ONCE, max_tokens=call.args.get("max_tokens"), temperature=call.temperature,
            seed=call.seed, reasoning_effort=call.effort, response_schema=response_schema(call),
        )  # fmt: skip
        token = _SEEN.set(exchange)
        try:
            return await model.generate(messages, config=config, cache=False)
        except ModelError as exc:
            error = exc
        except Exception as exc:
            # Our rules first; without a status, Inspect's provider decides about its own exceptions.
            caused = exchange.error or exc
            mapped = base.as_model_error(caused, at)
            status = getattr(caused, "status_code", None) or getattr(caused, "code", None)
            if mapped.retryable or mapped.quota or isinstance(status, int):
                error = mapped
            else:
                decision = model.api.should_retry(caused)
                error = ModelError(
                    str(mapped), retryable=bool(decision), retry_after=getattr(decision, "retry_after", None)
                )
        finally:
            _SEEN.reset(token)
        raise error

    @staticmethod
    def argument_problems(model: str, args: Mapping[str, JSON]) -> Iterator[str]:
        """Yield the problems with the arguments of a model behind Inspect."""
        options: dict[str, Rule] = dict.fromkeys(filter(_is_option, args), _PLAIN)
        secret = [name for name in options if _SECRET.search(name)]
        for name in secret:
            yield f"{name} may hold a secret (not shown); name an environment variable in args.api_key_env"
        shown = {name: value for name, value in args.items() if name not in secret}
        yield from argument_problems(model, shown, {**API_RULES, **options})

    def _problems(self, call: CallSpec) -> Iterator[str]:
        """Yield the settings of a call that are known to be unsupported before it is sent."""
        yield from self.argument_problems(call.model, call.args)
        yield from (self._drops(name) for name in _wanted(call) if name in self._unsent)
        yield from base.prompt_problems(call)

    def _drops(self, name: str) -> str:
        return f"Inspect's provider {self.provider} does not send {name} for this model; leave it out"

    def _client(self, at: Transport) -> _Client:
        """Make Inspect's model for a transport, with all retries off and each exchange recorded."""
        api = load_sdk(replace(INSPECT, sdk="inspect_ai.model"))
        key = at.key.reveal() if at.key else (_NO_KEY if at.base_url else None)
        options = {**dict(at.options), **self._options}
        try:
            model = api.get_model(self.name, base_url=at.base_url, api_key=key, memoize=False, **options)
        except Exception as exc:  # Inspect's messages have markup: make one plain line
            message = _MARKUP.sub("", str(getattr(exc, "message", None) or exc)).removeprefix("ERROR: ")
            error = ModelError(f"{at.provider.name}: {at.shown(message)}", retryable=False, quota=True)
        else:
            inner: Any = getattr(model.api, "client", None)
            if isinstance(getattr(inner, "max_retries", None), int):
                inner.max_retries = 0  # the SDK's own, below Inspect's
            # record the exchange: Inspect's own layer returns neither the response nor the exception
            original = model.api.generate

            @functools.wraps(original)
            async def generate(*args: Any, **named: Any) -> Any:
                exchange = _SEEN.get() or _Exchange()
                try:
                    result = await original(*args, **named)
                except Exception as exc:
                    exchange.error = exc
                    raise
                output, shown = result if isinstance(result, tuple) else (result, None)
                exchange.error = output if isinstance(output, Exception) else None
                exchange.request, exchange.response = getattr(shown, "request", None), getattr(shown, "response", None)
                return result

            model.api.generate = generate
            # Add the key that Inspect's provider found, so that it can be removed from every text.
            names = [name for name in getattr(model.api, "api_key_vars", None) or () if os.environ.get(name)]
            found_key = getattr(model.api, "api_key", None) or (os.environ[names[0]] if names else None)
            if at.key is not None or not isinstance(found_key, str) or len(found_key) < _SHORTEST_KEY:
                place = at
            else:
                of = [name for name in names if os.environ[name] == found_key] or ["the key of Inspect's provider"]
                place = replace(at, key=Secret(found_key), key_env=of[0])
            return model, place
        raise error


def _is_option(name: str) -> bool:
    return _OPTION.fullmatch(name) is not None and name.removeprefix(OPTION) not in _NOT_OPTIONS


def response_schema(call: CallSpec) -> Any:
    """Return the schema of a call as Inspect's ``ResponseSchema``, unchanged; None if it has none."""
    if call.schema is None:
        return None
    expected = base.strict_schema(call.schema)
    schema = load_sdk(replace(INSPECT, sdk="inspect_ai.util")).JSONSchema.model_validate(expected)
    if schema.model_dump(exclude_none=True) != expected:
        refuse(call, ["Inspect's form of a schema would lose a part of the reply schema"])
    model = load_sdk(replace(INSPECT, sdk="inspect_ai.model"))
    return model.ResponseSchema(name="reply", json_schema=schema, strict=True)


def _wanted(call: CallSpec) -> list[str]:
    """Return the settings that a call sets."""
    return [name for name in _PARTS if getattr(call, name) is not None]


def _setting_names(node: Any) -> Iterator[str]:
    """Yield the names of all settings in a request that have a value, except those in messages and schemas."""
    if isinstance(node, Mapping):
        for name, value in node.items():
            if value is not None and name not in _NOT_SETTINGS:
                yield str(name)
                yield from _setting_names(value)
    elif isinstance(node, list | tuple):
        for part in node:
            yield from _setting_names(part)
