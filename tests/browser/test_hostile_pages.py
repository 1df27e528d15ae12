"""Nothing that others wrote runs, loads or stretches a page, with the policy of the page and without."""

from __future__ import annotations

import pytest
from hostile_pages import PAYLOADS, unseen, without_policy
from looking import said, until, visiting
from markup import covering, link_problems, markup_problems, pages_below

_TOUCH = """() => document.querySelectorAll('main *, footer *').forEach(e => {
  if (e.tagName !== 'BUTTON') for (const kind of ['mouseover', 'focus', 'toggle', 'load', 'error', 'begin'])
    e.dispatchEvent(new Event(kind));
})"""
_FIRED = "window.__canary !== undefined || document.title === 'pwned'"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_others_wrote_stays_text_in_every_page(example, payload):
    root = example(f"hostile {payload}")
    pages = pages_below(root)
    problems = [problem for page in pages.values() for problem in markup_problems(page)]
    problems += [one for one in link_problems(root, pages) if "'../sheet.html'" not in one]  # the made season's own
    for path in covering({path: page.kinds for path, page in pages.items()}):
        problems += pages[path].errors
    # These runs hold a payload in sentences of the package too, which are long as they are and never cut.
    problems = [one for one in problems if "at most 200,000" not in one and "at most 45,000" not in one]
    problems += [f"{page.name}: holds {found}" for page in pages.values() if (found := unseen(page.text))]
    assert not problems, said(problems)


@pytest.mark.browser
@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_runs_or_loads_even_without_a_policy(browser, example, tmp_path, payload):
    pages, problems = pages_below(example(f"hostile {payload}")), []
    path = tmp_path / "page.html"
    with visiting(browser) as visitor:
        for page in (pages[name] for name in covering({name: page.kinds for name, page in pages.items()})):
            path.write_text(without_policy(page.text), encoding="utf-8")
            visitor.open(path.as_uri(), ("light", 390))
            visitor.page.evaluate(_TOUCH)
            found = [*visitor.spoken(path.as_uri()), *visitor.overflow(390, unfolded=True)]
            found += ["a script of somebody else ran"] if visitor.page.evaluate(_FIRED) else []
            if payload == "ends":  # what is too long, or not seen, must not be in anybody's way either
                found += visitor.barriers()
            problems += [f"{page.name}: {one}" for one in found]
    assert not problems, said(problems)


_OPEN = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'\">\n<title>t</title></head><body><main>{}</main></body></html>"
)


@pytest.mark.browser
@pytest.mark.parametrize("payload", ["elements", "attributes"])
def test_a_page_that_escaped_nothing_would_be_noticed(browser, tmp_path, payload):
    text = PAYLOADS[payload] if payload == "elements" else f'<p title="{PAYLOADS[payload]}">x</p>'
    text = _OPEN.format(text.replace("http-equiv=refresh", ""))  # it would lead away before anybody looked
    path = tmp_path / "page.html"
    for page, stopped in ((text, True), (without_policy(text), False)):
        path.write_text(page, encoding="utf-8", errors="replace")
        with visiting(browser) as visitor:
            visitor.open(path.as_uri())
            visitor.page.evaluate(_TOUCH)
            if stopped:
                assert not visitor.page.evaluate(_FIRED), "its policy stops it"
                assert any("script-src" in one for one in visitor.spoken(path.as_uri())), "and says so"
            else:
                until(visitor.page, _FIRED)
