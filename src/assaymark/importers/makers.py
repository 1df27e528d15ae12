"""Who makes a model, told from its name: a dated table, printed wherever it was used and overridden by ``--family``."""

from __future__ import annotations

import re
from typing import Final

MAKERS_OF: Final = "2026-11"
"""When the table was last gone over."""

_MAKERS: Final = {
    "OpenAI": r"gpt|o[134](?![a-z0-9])|chatgpt|openai|davinci|codex",
    "Anthropic": r"claude|anthropic",
    "Google": r"gemini|gemma|palm-2|learnlm|google",
    "Meta": r"llama|meta(?![a-z])",
    "Alibaba": r"qwen|qwq|qvq|tongyi",
    "DeepSeek": r"deepseek",
    "Mistral": r"mistral|mixtral|ministral|codestral|magistral|pixtral",
    "xAI": r"grok|xai",
    "Cohere": r"command-|cohere|aya-",
    "Microsoft": r"phi|wizardlm|microsoft",
    "LG": r"exaone",
    "Moonshot": r"kimi|moonshot",
    "Zhipu": r"glm|chatglm|zhipu",
    "MiniMax": r"minimax|abab",
    "01.AI": r"yi(?![a-z])",
    "NVIDIA": r"nemotron|nvidia",
    "AI21": r"jamba|jurassic",
    "Amazon": r"nova-|titan-|amazon",
    "IBM": r"granite-|ibm(?![a-z])",
    "Databricks": r"dbrx|dolly",
    "Upstage": r"solar-|upstage",
    "Yanolja": r"eeve",
    "Tencent": r"hunyuan",
    "Baidu": r"ernie",
    "ByteDance": r"doubao|seed(?![a-z])",
    "TII": r"falcon-",
    "LMSYS": r"vicuna|fastchat",
    "Stanford": r"alpaca-",
    "Perplexity": r"sonar-|perplexity|pplx",
    "Reka": r"reka-",
    "Snowflake": r"snowflake",
    "AllenAI": r"olmo|tulu",
}  # fmt: skip
_FOUND: Final = {maker: re.compile(rf"(?<![a-z0-9])(?:{words})", re.I) for maker, words in _MAKERS.items()}
_PERSON: Final = re.compile(r"(?<![a-z])(?:humans?|person|people|expert|annotator|crowd(?:worker)?)(?![a-z])", re.I)


def maker_of(name: str) -> str | None:
    """The maker of a model, by the first word of its name that the table knows; None where it knows none.

    Examples
    --------
    >>> maker_of("gpt-4o-mini"), maker_of("deepseek-r1-distill-qwen-32b"), maker_of("our-bot")
    ('OpenAI', 'DeepSeek', None)
    """
    places = {maker: match.start() for maker, words in _FOUND.items() if (match := words.search(name))}
    return min(places, key=lambda maker: (places[maker], maker)) if places else None


def is_person(name: str) -> bool:
    """Whether the name of a judge says that it is a person: human_1, expert-a.

    Examples
    --------
    >>> is_person("human_2"), is_person("gpt-4o")
    (True, False)
    """
    return _PERSON.search(name.replace("_", " ")) is not None
