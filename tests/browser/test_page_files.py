"""Every page of every example as a file: valid, within its budget, and with links that lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from looking import said
from markup import Page, covering, link_problems, markup_problems, pages_below, parser_problems
from page_examples import NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_page_is_valid_within_its_budget_and_leads_somewhere(example, name):
    root = example(name)
    pages = pages_below(root)
    assert any(Path(path).name in ("index.html", "datasheets.html") for path in pages)
    problems = [problem for page in pages.values() for problem in markup_problems(page)]
    problems += [*link_problems(root, pages), *parser_problems(pages)]
    assert not problems, said(problems)


HEAD = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; '
    'style-src &#39;unsafe-inline&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>t</title><style>b{}</style></head><body>"
)
FAULTS = {
    "<table><tbody><tr><th scope='row'>X</th>X</th></tr></tbody></table>": "not HTML", "<p>a & b</p>": "not HTML",
    "<p class='a' class='b'>x</p>": "not HTML", "<!-- left over -->": "not HTML", "<p>a < b</p>": "not HTML",
    "<p>a<div>b</div></p>": "div in p", "<p id='m'>x</p>": "id 'm' stands 2 times", "<h1>Two</h1>": "2 h1, wants one",
    "<h3>Three</h3>": "h3 after h1", "<p onclick='x()'>x</p>": "p has onclick", "<ul><p>x</p></ul>": "p in ul",
    "<svg><g onclick='x()'></g></svg>": "g has onclick", "<img alt='' src='a.png'>": "img has no place",
    "<span><div>x</div></span>": "div in span", "<title>x</title>": "title in main",
    "<a href='#m'><button>x</button></a>": "button inside of something that is clicked",
    "<table><tbody><tr><th>x</th></tr></tbody></table>": "th without scope",
    "<table><tbody><tr><td>x</td></tr><tr><td>x</td><td>y</td></tr></tbody></table>": "rows of [1, 2] cells",
    "<p aria-labelledby='nobody'>x</p>": "'nobody' names no id", "<script>x()</script>": "does not name this script",
    f"<p>{'x' * 1_000_000}</p>": "bytes, at most 1,000,000", f"<style>{'b{}' * 8000}</style>": "bytes of style",
}  # fmt: skip
# A cell that reaches down counts in every row that it reaches.
REACHES = (
    "<table><tbody><tr><td rowspan='3'>a</td><td colspan='2'>b</td></tr><tr><td>c</td><td>d</td></tr>"
    "<tr><td>e</td><td>f</td></tr><tr><td>g</td><td>h</td><td>i</td></tr></tbody></table>"
)


def test_faults_of_a_page_are_found_and_nothing_else():
    def of(body: str) -> Page:
        return Page("a.html", f'{HEAD}<main id="m"><h1>One</h1>{body}</main></body></html>')

    for fine in ("<p>Two.</p>", REACHES):
        assert markup_problems(of(fine)) == of(fine).errors == []
    missed = {
        body[:80]: why for body, why in FAULTS.items() if not any(why in one for one in markup_problems(of(body)))
    }
    assert not missed
    loose = of("<p>Two.</p>").text.replace("form-action", "img-src *; form-action")
    assert markup_problems(Page("a.html", loose)) == ["a.html: has no policy of ours ahead of its style"]
    row = "<tr><td>1</td></tr>\n"
    assert of(f"<table>\n{row * 3}{row.replace('1', '1</b>')}</table>").errors  # a row of another kind is parsed
    assert of("<p>&nothing;</p>").errors


def test_what_a_page_is_built_of_is_read_from_its_file_and_few_pages_hold_every_kind():
    text = f'{HEAD}<p class="a" id="x">One<br>two <b>three</b></p><script>"<i>"</script><svg><path d="m"/></svg></body>'
    page = Page("a.html", text)
    body = {("body", "p id.a"), ("p id.a", "br"), ("p id.a", "b"), ("body", "script"), ("body", "svg")}
    assert {one for one in page.blocks if one[0] not in ("html lang", "head", "")} == body | {("svg", "path d")}
    assert page.kinds >= {("p", ""), ("p", "class"), ("p", "id"), ("path", "d")}
    assert Page("b.html", text.replace("three", "four")).blocks == page.blocks
    pages = {"a": {1}, "b": {1, 2, 3}, "c": {2, 4}, "d": {3, 4}}
    assert [covering(pages, known) for known in (set(), {4}, {1, 2, 3, 4})] == [["b", "c"], ["b"], []]


def test_links_are_followed(tmp_path):
    root = tmp_path / "in"
    root.mkdir()
    (root / "b.html").write_text(f'{HEAD}<main id="there"><h1>One</h1></main>')
    (tmp_path / "a.html").write_text("outside")
    for link, why in {
        "b.html#there": "", "#m": "", "b.html#gone": "no such id", "#gone": "no such id", "c.html": "does not exist",
        "../a.html": "outside of its folder", "https://example.org/": "not beside it",
        "javascript:alert(1)": "not beside it", "/a.html": "not beside it",
    }.items():  # fmt: skip
        (root / "a.html").write_text(f'{HEAD}<main id="m"><h1>One</h1><p><a href="{link}">x</a></p></main>')
        found = link_problems(root, pages_below(root))
        assert [why in one for one in found] == ([True] if why else []), link
