"""Sentences by key: equal keys and values in every language, numbers and lists as the language sets them."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark.claims import Catalogue, Phrase, catalogue, english, languages, phrase
from assaymark.errors import InputError, UnknownNameError

PARTS = ("claim.scope.one", "claim.scope.other", "claim.says.within_gap", "claim.reason.points")
"""Parts of sentences, which begin with the space before them."""

OWN = 'language = "Own"\ndecimal = ","\nlist_and = "et"\nminus = "-"\n'


def own(**changes: str) -> dict[str, str]:
    """A language of one's own: the English sentences, some changed, as one file."""
    texts = {**english().texts, **changes}
    quoted = {key: text.replace("\\", "\\\\").replace('"', '\\"') for key, text in texts.items()}
    return {"own.toml": OWN + "\n".join(f'"{key}" = "{text}"' for key, text in quoted.items())}


def flat(**changes: str) -> Catalogue:
    """Dots in quoted keys are no tables, so a flat file reads the same."""
    return Catalogue.of(own(**changes), "own")


def test_english_comes_first_and_every_language_has_its_sentences_none_empty_or_loose():
    assert languages()[0] == "en"
    assert "de" in languages()
    names = {one.name for one in files("assaymark.claims.messages").iterdir() if one.name.endswith(".toml")}
    assert {"en.toml", "en.claims.toml", "de.toml", "de.claims.toml"} <= names, "the files of a language go together"
    assert english().say("places.range", first=1, last=2) == "1 to 2"
    assert english().say("claim.band.strong") == "strong"
    for language in languages():
        assert set(catalogue(language).texts) == set(english().texts)
        for key, text in catalogue(language).texts.items():
            part = key in PARTS or key.endswith(".ends")
            assert text == text.strip() or len(text) == 1 or part, key
            assert text, key
            assert "  " not in text, key
            assert "—" not in text, key


def test_german_says_nothing_in_english():
    known = {key for key, text in catalogue("de").texts.items() if text == english().texts[key]}
    # what reads the same in both: formats, names, and words that both languages share
    plain = {key: re.sub(r"\{[^}]*\}", " ", english().texts[key]).split() for key in known if key.startswith("claim.")}
    assert [key for key, words in plain.items() if any(part.isalpha() and len(part) > 4 for part in words)] == []


def test_numbers_take_the_signs_of_their_language():
    assert english().number(-2.345, "+.1f") == "−2.3"
    assert catalogue("de").number(-1234.5, ".2f") == "−1234,50"
    assert flat().number(-0.5) == "-0,5"
    assert english().number(7) == "7"


@given(st.floats(-0.0499, 0.0499))
def test_no_zero_has_a_minus(value: float):
    assert english().number(value, ".1f") == "0.0"
    assert english().number(value, "+.1f") == "+0.0"


def test_names_are_listed_and_sentences_stand_in_sentences():
    assert [english().names(names) for names in ([], ["ash"])] == ["", "ash"]
    assert catalogue("de").names(["ash", "birch", "cedar"]) == "ash, birch und cedar"
    assert flat().names(["ash", "birch"]) == "ash et birch"
    inner = phrase("claim.kappa.two", value=0.25)
    assert "kappa 0.25" in english().say("claim.condition.weak", kappa=inner, cut=0.4)
    assert "Kappa 0,25" in catalogue("de").say("claim.condition.weak", kappa=inner, cut=0.4)
    assert english().say("places.range", first="{last}", last="{0}") == "{last} to {0}", "braces in a value stay"
    # One and several are chosen by n.
    one = phrase("claim.condition.probe", 1, judges=("ash",))
    two = phrase("claim.condition.probe", 2, judges=("ash", "birch"))
    assert english().render(one) == "Blinding is incomplete: ash names the author of a record more often than chance."
    assert english().join([one, two]).endswith("ash and birch name the author of a record more often than chance.")


def test_unknown_keys_and_missing_values_are_named():
    with pytest.raises(UnknownNameError, match=r"claim\.band\.strong"):
        english().say("claim.band.stron")
    with pytest.raises(UnknownNameError, match="last"):
        english().say("places.range", first=1)
    with pytest.raises(UnknownNameError, match="language"):
        catalogue("xx")
    with pytest.raises(UnknownNameError):
        english().render(Phrase("claim.says.above", {}))


def test_a_language_of_ones_own_is_taken_whole():
    mine = flat(**{"places.range": "{first} - {last}"})
    assert (mine.language, mine.name, mine.decimal, mine.list_and) == ("own", "Own", ",", "et")
    assert mine.say("places.range", first=1, last=3) == "1 - 3"


def test_a_language_is_refused_with_all_its_problems():
    sources = own(**{"places.range": "{first} to {end}", "places.new": "new"})
    lines = [line for line in sources["own.toml"].splitlines() if not line.startswith(('"claim.band.weak"', "minus"))]
    with pytest.raises(InputError) as caught:
        Catalogue.of({"own.toml": "\n".join([*lines, "[numbers]", "two = 2"]), "more.toml": "not TOML ["}, "own")
    for problem in (
        "claim.band.weak: is missing", "minus: is missing", "places.new: is no message",
        "places.range: must have the values first, last (got end, first)", "own.toml, numbers.two: must be a text",
        "more.toml: is not TOML",
    ):  # fmt: skip
        assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{first} to {last", "braces"),
        ("{first} to {last} }", "braces"),
        ("{first:.1q} to {last}", "format"),
        ("{first!r} to {last}", "format"),
        ("{first.real} to {last}", "must have the values"),
        ("{} to {last}", "must have the values"),
    ],
)
def test_a_sentence_that_cannot_be_set_is_refused_when_it_is_read(text: str, words: str):
    with pytest.raises(InputError, match=words) as caught:
        flat(**{"places.range": text})
    assert "places.range" in str(caught.value)


def test_sentences_given_twice_and_empty_signs_are_refused():
    sources = own()
    with pytest.raises(InputError, match=r"places\.range: is given twice"):
        Catalogue.of({**sources, "second.toml": 'places.range = "{first} to {last}"'}, "own")
    with pytest.raises(InputError, match="decimal"):
        Catalogue.of({"own.toml": sources["own.toml"].replace('decimal = ","', 'decimal = ""')}, "own")
