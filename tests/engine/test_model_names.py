"""Names in study files, and the models they stand for."""

from __future__ import annotations

import pytest
from engine_calls import echo

from assaymark.engine import Registry, resolve
from assaymark.errors import InputError, UnknownNameError


def test_a_registered_name_is_found_and_a_wrong_one_answered_with_the_right_one():
    styles: Registry[int] = Registry("style")
    assert styles.add("plain")(3) == 3
    styles.add("fancy")(4)
    assert styles.get("plain") == 3
    assert styles.names() == ("fancy", "plain")
    with pytest.raises(UnknownNameError, match=r"unknown style 'plian'. Did you mean 'plain'"):
        styles.get("plian")


def test_a_name_is_given_once():
    styles: Registry[int] = Registry("style")
    styles.add("plain")(3)
    with pytest.raises(ValueError, match="style 'plain' is registered twice"):
        styles.add("plain")(4)


def test_the_factory_of_the_provider_gets_the_rest_of_the_name():
    seen = []
    factories = {"reference": lambda rest: seen.append(rest) or echo()}
    assert resolve("reference/auditor/v2", factories)
    assert seen == ["auditor/v2"]


@pytest.mark.parametrize("name", ["auditor", "/auditor", "reference/", ""])
def test_a_name_without_provider_or_rest_is_refused(name):
    with pytest.raises(InputError, match=r"must be provider/name .* known providers: reference"):
        resolve(name, {"reference": lambda _rest: echo()})


def test_an_unknown_provider_is_answered_with_the_closest():
    with pytest.raises(UnknownNameError, match=r"unknown model provider 'referense'. Did you mean 'reference'"):
        resolve("referense/auditor", {"reference": lambda _rest: echo()})
