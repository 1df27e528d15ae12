"""Reference agents as models: the prompt in, a reply in the format that is asked of everybody out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from assaymark.agents.composers import equal_weight, inverse_volatility, minimum_variance, steward
from assaymark.agents.composers.daily import in_days, is_daily
from assaymark.agents.composers.directional import CONTRARIAN, MOMENTUM, composer
from assaymark.agents.composers.draft import Composer, Draft, briefly
from assaymark.agents.composers.observation import Observation, observe
from assaymark.engine.calls import CallSpec, Reply
from assaymark.errors import InputError, ModelError
from assaymark.prompting.fences import sections
from assaymark.prompting.material_reading import read_material
from assaymark.prompting.styles import SIGNATURES, signature

VERSION: Final = "1"
"""Changes with anything that can change a reply; part of the fingerprint."""

COMPOSERS: Final[Mapping[str, Composer]] = MappingProxyType(
    {
        "reference/momentum": composer(MOMENTUM),
        "reference/contrarian": composer(CONTRARIAN),
        "reference/minimum-variance": minimum_variance.compose,
        "reference/equal-weight": equal_weight.compose,
        "reference/inverse-volatility": inverse_volatility.compose,
        "reference/steward": steward.compose,
    }
)
"""The rule-based agents by model name."""

MIXED: Final = "reference/mixed"
"""Draws for each prompt, by its seed, whether to compose as momentum or as contrarian.

Two of them with different seeds are exchangeable: a tie that is planted, whatever the judges like.
"""

_MIXTURE = ("reference/momentum", "reference/contrarian")
_ARGUMENTS = ("style", "brief")


@dataclass(frozen=True, slots=True)
class ReferenceAgent:
    """A rule-based agent that answers like any model.

    The argument ``style`` names its opening words; ``brief`` is the share of its texts, 0..1, that give its orders and
    nothing else, drawn by seed and prompt. It is a `Model`: it reads the material back out of the rendered prompt and
    knows nothing else.
    """

    name: str

    async def complete(self, call: CallSpec) -> Reply:
        """Answer one call.

        Raises
        ------
        ModelError
            The prompt holds no material that it can read, or an argument is wrong (`agent_argument_problems`).
        """
        if problems := agent_argument_problems(self.name, call.args):
            raise ModelError("; ".join(problems), retryable=False)
        prompt = "\n\n".join(part.text for message in call.messages if message.role == "user" for part in message.parts)
        try:
            seen, daily, volume = _seen(prompt)
        except InputError as exc:
            raise ModelError(f"{self.name} cannot read the prompt: {exc}", retryable=False) from None
        opening = signature(str(call.args.get("style", "")))
        draft = self._composer(prompt, call.seed)(seen, opening)
        if _drawn(f"brief|{call.seed}|{prompt}") < 256 * float(call.args.get("brief", 0.0)):
            draft = briefly(draft, opening)
        if daily:
            draft = replace(draft, text=in_days(draft.text, volume=volume))
        return Reply(text=_answer(draft), model=self.name, fingerprint=f"{self.name}@{VERSION}")

    def _composer(self, prompt: str, seed: int | None) -> Composer:
        if self.name != MIXED:
            return COMPOSERS[self.name]
        return COMPOSERS[_MIXTURE[_drawn(f"{seed}|{prompt}") % 2]]


def _drawn(name: str) -> int:
    """A number in 0..255 that is fixed by a name."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[0]


def reference_agents() -> dict[str, ReferenceAgent]:
    """The reference agents by model name, for registration.

    >>> sorted(reference_agents())[:2]
    ['reference/contrarian', 'reference/equal-weight']
    """
    return {name: ReferenceAgent(name) for name in (*COMPOSERS, MIXED)}


def agent_argument_problems(model: str, args: Mapping[str, Any]) -> list[str]:
    """What is wrong with a reference agent's arguments, in words; nothing is known of other models.

    >>> agent_argument_problems("reference/steward", {"style": "oak"})
    ["argument style must be one of alder, birch, cedar, dogwood, elder (got 'oak')"]
    """
    if model not in COMPOSERS and model != MIXED:
        return []
    found = [
        f"argument {name} is unknown (allowed: {', '.join(_ARGUMENTS)})" for name in args if name not in _ARGUMENTS
    ]
    if "style" in args and args["style"] not in SIGNATURES:
        found.append(f"argument style must be one of {', '.join(SIGNATURES)} (got {args['style']!r})")
    share = args.get("brief", 0.0)
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0.0 <= share <= 1.0:
        found.append(f"argument brief must be a share in 0..1 (got {share!r:.80})")
    return found


@lru_cache(maxsize=64)
def _seen(prompt: str) -> tuple[Observation, bool, bool]:
    """One reading serves every agent: what is seen, whether its bars are daily, and whether they have a volume."""
    context = read_material(sections(prompt))
    return observe(context), is_daily(context), any(one.volume for one in context.series)


def _answer(draft: Draft) -> str:
    """The reply as JSON text."""
    return json.dumps(
        {
            "orders": [
                {"instrument": one.instrument, "side": one.kind, "quantity": one.quantity} for one in draft.orders
            ],
            "rationale": draft.text,
            "confidence": draft.confidence,
        }
    )
