"""Who makes a model, told from its name: a dated table, printed wherever it was used and overridden by ``--family``."""

from __future__ import annotations

import re
from typing import Final

MAKERS_OF: Final = "2026-11"
"""When the table was last gone over."""

MAKERS: Final = {
    "openai": r"gpt|o[134](?![a-z0-9])|chatgpt|openai|davinci|codex",
    "anthropic": r"claude|anthropic",
    "google": r"gemini|gemma|palm-2|learnlm|google",
    "meta": r"llama|meta(?![a-z])",
    "alibaba": r"qwen|qwq|qvq|tongyi",
    "deepseek": r"deepseek",
    "mistral": r"mistral|mixtral|ministral|codestral|magistral|pixtral",
    "xai": r"grok|xai",
    "cohere": r"command-|cohere|aya-",
    "microsoft": r"phi|wizardlm|microsoft",
    "lg": r"exaone",
    "moonshot": r"kimi|moonshot",
    "zhipu": r"glm|chatglm|zhipu",
    "minimax": r"minimax|abab",
    "01-ai": r"yi(?![a-z])",
    "nvidia": r"nemotron|nvidia",
    "ai21": r"jamba|jurassic",
    "amazon": r"nova-|titan-|amazon",
    "ibm": r"granite-|ibm(?![a-z])",
    "databricks": r"dbrx|dolly",
    "upstage": r"solar-|upstage",
    "yanolja": r"eeve",
    "tencent": r"hunyuan",
    "baidu": r"ernie",
    "bytedance": r"doubao|seed(?![a-z])",
    "tii": r"falcon-",
    "lmsys": r"vicuna|fastchat",
    "stanford": r"alpaca-",
    "perplexity": r"sonar-|perplexity|pplx",
    "reka": r"reka-",
    "snowflake": r"snowflake",
    "allenai": r"olmo|tulu",
}  # fmt: skip
_FOUND: Final = {maker: re.compile(rf"(?<![a-z0-9])(?:{words})", re.I) for maker, words in MAKERS.items()}
_PERSON: Final = re.compile(r"(?<![a-z])(?:humans?|person|people|expert|annotator|crowd(?:worker)?)(?![a-z])", re.I)


def maker_of(name: str) -> str | None:
    """The maker of a model, by the first word of its name that the table knows; None where it knows none.

    Examples
    --------
    >>> maker_of("gpt-4o-mini"), maker_of("deepseek-r1-distill-qwen-32b"), maker_of("our-bot")
    ('openai', 'deepseek', None)
    """
    places = {maker: match.start() for maker, words in _FOUND.items() if (match := words.search(name))}
    return min(places, key=lambda maker: (places[maker], maker)) if places else None


def family_of(name: str) -> str:
    """A maker's name as the table writes it; one that it does not know as it is.

    Examples
    --------
    >>> family_of("OpenAI"), family_of("our lab")
    ('openai', 'our lab')
    """
    plain = name.strip().lower()
    return plain if plain in MAKERS else name.strip()


def is_person(name: str) -> bool:
    """Whether the name of a judge says that it is a person: human_1, expert-a.

    Examples
    --------
    >>> is_person("human_2"), is_person("gpt-4o")
    (True, False)
    """
    return _PERSON.search(name.replace("_", " ")) is not None
