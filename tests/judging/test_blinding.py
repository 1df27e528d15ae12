"""Blinding: laws, the names people use, and what has to stay."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judged_records import AGENTS

from assaymark.errors import InputError
from assaymark.judging import anonymise, blinding_names
from assaymark.judging.blinding import blinding_for
from assaymark.records import Agent

TOKEN = re.compile(r"\[agent [A-Z]{1,2}\]")
NAMES = blinding_names(AGENTS)

words = st.sampled_from([
    "Claude", "claude opus", "GPT-5.5", "gpt5", "Gemini", "Google", "GOOGL", "gold", "up", "5.5", "5", "%", "-", ".",
    " ", "\n", "é", "İ", "ﬁ", "模型", "иван", "\u200b", "[agent A]", "S&P 500", "_", "Ｃｌａｕｄｅ", "xAI", "x",
])  # fmt: skip
texts = st.lists(words, max_size=12).map(" ".join) | st.lists(words, max_size=12).map("".join) | st.text(max_size=30)
listed = ["Claude", "Claude Opus", "GPT", "GPT-5.5", "Gemini", "Google", "xAI", "иван", "模型", "İ"]
names = st.lists(st.sampled_from(listed), max_size=5)
kept = st.lists(st.sampled_from(["Google", "GOOGL", "Gold", "Claude Gold", "GPT up", "Gemini", "S&P 500"]), max_size=3)


@given(texts, names, kept, st.randoms(use_true_random=False))
@example("gpt5claude GPT claude gpt", ["GPT", "Claude"], [], random.Random(1))
@example("Google Gemini", ["Google Gemini"], ["Google"], random.Random(1))
@example("CLAUDE\u200bA", ["Claude"], [], random.Random(1))
@example("Cl\u200baude", ["Claude"], [], random.Random(1))
def test_laws_of_blinding(text, hidden, keep, order):
    """Twice is once, no name survives as a word, kept strings survive byte for byte, and no order of lists matters."""
    found = anonymise(text, hidden, keep=keep)
    once = str(found)
    assert str(anonymise(once, hidden, keep=keep)) == once
    assert anonymise(text, order.sample(hidden, len(hidden)), keep=order.sample(keep, len(keep))) == found
    assert anonymise(text, set(hidden), keep=frozenset(keep)) == found
    left = TOKEN.sub(" | ", str(anonymise(text, hidden)))  # tokens replaced by something that joins nothing
    for name in hidden:
        if name.isascii():
            assert not re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", left, re.IGNORECASE)
    for name in keep:
        stands = re.compile(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])")
        assert len(stands.findall(once)) >= len(stands.findall(TOKEN.sub("|", text)))
    assert str(anonymise(text, [])) == text


def test_names_in_the_ways_people_write_them():
    for text in (
        "GPT-5.5", "gpt5", "GPT 5.5", "gpt_5.5", "GPT‑5.5", "ＧＰＴ-5.5", "G\u200bPT-5.5", "gpt-4o", "GPT-5.5-preview",
        "Claude Opus 4.8", "claude-opus-4-8", "CLAUDE", "Cláude", "Claude 4.8", "Anthropic",
        "anthropic/claude-opus-4-8", "Gemini 3.1 Pro", "gemini-3.1-pro-preview", "Grok 4.6", "通义千问", "zephyr-9b",
        "desk-zephyr", "Open AI", "Сlаudе", "Gro\u043a", "xᴀɪ", "GEM\u0399NI", "DeepSeek-R1", "DeepSeek R1",
        "kimi-k2-0905", "gpt-oss:20b", "qwen3-235b-a22b", "GPT 4o", "Claude Code", "deep seek", "@AnthropicAI", "GPTs",
    ):  # fmt: skip
        after = str(anonymise(f"As {text}, I buy gold.", NAMES))
        assert re.fullmatch(r"As [^a-z0-9]*(\[agent [A-Z]+\][/ ]?)+[^a-z0-9]*, I buy gold\.", after), after


A, B = "[agent A]", "[agent B]"


def test_what_is_replaced_and_what_stays_and_the_audit_says_so():
    for text in (
        "Claudette buys a geminiviral grokking stock", "Meta, Amazon and Microsoft report on July 29",
        "momentum and equal-weight value", "The S&P 500 rose 5.5% in 4.8 days", "q3 and o 1 and 13",
    ):  # fmt: skip
        assert str(anonymise(text, NAMES)) == text
    after = anonymise("Google (GOOGL) by Gemini; google again", ["Google", "Gemini"], keep=["Google", "GOOGL"])
    assert str(after) == "Google (GOOGL) by [agent A]; google again"
    assert (after.replaced, after.kept) == ({"Gemini": 1}, {"Google": 2})
    assert anonymise("Claude Opus", ["Claude", "Claude Opus"]).replaced == {"Claude Opus": 1}
    for hidden, keep, text, after in (
        # a version goes with its name, an amount stays
        (["Claude"], [], "Claude 4.8 says Claude 4.8% is much", f"{A} says {A} 4.8% is much"),
        (NAMES, [], "我是Claude模型，不是文心一言。", f"我是{A}模型，不是{B}。"),
        # of a name that contains a kept one the rest goes; a kept name that contains a name stays whole
        (["Google Gemini"], ["Google"], "Google Gemini is mine", f"Google{A} is mine"),
        (["Gemini"], ["Gemini Trust"], "Gemini Trust, not Gemini", f"Gemini Trust, not {A}"),
        # tokens are lettered by first appearance, and one that is in the text already is not given again
        (["Claude", "GPT-5"], [], "GPT 5 and CLAUDE, gpt5", f"{A} and {B}, {A}"),
        (["Claude", "GPT-5"], [], "claude", A), (["alder"], [], f"{A} is not alder", f"{A} is not {B}"),
        (["GPT", "Codex", "Maverick"], [], "GPT-5.1-codex-max, gpt-maverick", f"{A}-{B}, {A}-[agent C]"),
        # other names change nothing, and names without letters are taken literally
        (["aaron", "alder", "zoe"], [], "I am alder", f"I am {A}"), (["¨"], [], "a ¨ b", "a ¨ b"),
        (["***", "  "], [], "call me *** or ** then", f"call me {A} or ** then"),
        (["😀 alder"], [], "As 😀alder or alder", f"As {A} or {A}"), (["😀😀"], [], "😀 😀😀", f"😀 {A}"),
        (["@alder"], [], "me@alder, alder", f"me{A}, {A}"), (["a 😀"], [], "a 😀 is a name", f"{A} is a name"),
        (["Yahoo!"], [], "yahoo! Yahoo yahoos", f"{A} {A} yahoos"), (["❤️ x9"], [], "❤x9 ❤️ x9", f"{A} {A}"),
    ):  # fmt: skip
        assert str(anonymise(text, hidden, keep=keep)) == after
    found = blinding_for(["alder", "birch"], []).apply_all(["birch", "alder and birch", A])  # texts share their tokens
    assert [str(one) for one in found] == [B, f"[agent C] and {B}", A]
    symbols = ["bot 😀", "bot 🚀", "BOT"]  # tell names apart
    for hidden in (symbols, symbols[::-1], symbols[:2], set(symbols)):
        after = anonymise("I am bot 😀 and not bot 🚀, nor bot; bot😀!", hidden)
        assert str(after) == f"I am {A} and not {B}, nor [agent C]; {A}!"


@given(st.lists(st.sampled_from([*"0123"]), max_size=8), st.permutations(["alder", "birch", "cedar wood", "zelkova"]))
def test_what_names_are_called_changes_nothing(said, called):
    texts = [" and ".join(f"I am {names[int(one)]}" for one in said) for names in (called, sorted(called))]
    first, second = (str(anonymise(text, called)) for text in texts)
    assert first == second


@given(st.lists(st.sampled_from(["bot 😀", "bot 🚀", "BOT", "😀 bot", "bot++", "bot+", "🚀"]), min_size=1, unique=True))
def test_different_names_have_different_tokens(said):
    after = str(anonymise(" / ".join(said), said))
    assert len(set(TOKEN.findall(after))) == len(said)
    assert after.replace("[agent", "").count("bot") == 0


def test_one_string_is_no_list_of_strings_and_there_are_tokens_for_many_names():
    for hidden, keep, says in (
        ("ab", [], r"anonymise: names: must be a list of strings \(got one string, 'ab'\)"),
        (["a"], "Google", r"anonymise: keep: must be a list of strings \(got one string, 'Google'\)"),
        (["a", 3], [], r"anonymise: names: must hold strings only \(got 3\)"),
    ):
        with pytest.raises(InputError, match=says):
            anonymise("a cab at Google", hidden, keep=keep)
    many = [f"name{'abcdefghij'[n // 100]}{'abcdefghij'[n // 10 % 10]}{'abcdefghij'[n % 10]}" for n in range(800)]
    found = TOKEN.findall(str(anonymise(" ".join(many), many)))
    assert len(found) == 800
    assert found[25:28] == ["[agent Z]", "[agent AA]", "[agent AB]"]


def test_names_are_of_agents_companies_and_fingerprints_and_no_words_of_the_trade():
    # They do not depend on who carries what, and a company is a name only where an agent is its own.
    fields = list(zip(*((a.id, a.family, a.model) for a in AGENTS), strict=True))
    mixed = [random.Random(seed).sample(column, 3) for seed, column in enumerate(fields)]
    others = [replace(AGENTS[at], id=mixed[0][at], family=mixed[1][at], model=mixed[2][at]) for at in range(3)]
    assert blinding_names(others) == blinding_names(AGENTS)
    assert ("Google" in NAMES, "Amazon" in NAMES) == (True, False)
    assert "Alibaba" in blinding_names([Agent(id="qwen3-235b-a22b", family="tongyi")])
    trade = ("momentum", "a", "agent-1", "7")
    agents = [Agent(id=name, family="reference", model=f"reference/{name}") for name in trade]
    assert {*trade, "reference"}.isdisjoint(blinding_names(agents))
    assert "fp_9a8b7zq" in blinding_names([Agent(id="x", family="y", fingerprint="fp_9a8b7zq")])
