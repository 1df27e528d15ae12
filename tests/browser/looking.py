"""Checks of a page in Chromium: its console, requests and scripts, its layout, and its accessibility."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from time import monotonic
from typing import Any, Final

from browsing import UNFOLD

Setting = tuple[str, int]

SETTINGS: Final[tuple[Setting, ...]] = (("light", 1440), ("dark", 390))
NARROWEST: Final[Setting] = ("light", 320)
RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
CSS_RULES: Final = ("color-contrast", "target-size", "scrollable-region-focusable", "link-in-text-block")
"""Rules whose answer depends on how a page is laid out and painted; the others see the same in every setting."""

HEIGHT: Final = 900
_TALLEST: Final = 3000
_TOLD: Final = 40

WATCH: Final = """
window.__violations = [];
addEventListener('securitypolicyviolation', e => window.__violations.push(e.violatedDirective + ' ' + e.blockedURI));
"""
"""Run ahead of anything on a page: it gathers what the policy of the page refused."""

PATIENCE_S: Final = 10.0


BROKEN: Final = r"""() => [...document.querySelectorAll('td, th, dt')].flatMap(e => {
  if (e.getBoundingClientRect().right <= 0) return [];
  const found = [], walk = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walk.nextNode()) if (!walk.currentNode.parentElement.closest('bdi, code, pre, svg'))
    for (const m of walk.currentNode.data.matchAll(/(?<![\p{L}\d/._-])\p{L}{4,20}(?![\p{L}\d/._-])/gu)) {
      range.setStart(walk.currentNode, m.index), range.setEnd(walk.currentNode, m.index + m[0].length);
      if (new Set([...range.getClientRects()].map(one => Math.round(one.top))).size > 1) found.push(m[0]);
    }
  return found; })"""
"""Returns the words of tables that are broken without a hyphen."""


def until(page: Any, holds: str, arg: Any = None) -> None:
    """Wait until something holds, asked from outside: the policy of a page lets it evaluate nothing by itself."""
    late = monotonic() + PATIENCE_S
    while not page.evaluate(holds, arg):
        assert monotonic() < late, f"never: {holds}"
        page.wait_for_timeout(20)


_OVERFLOWING: Final = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return '';
  const inside = e => { for (e = e.parentElement; e && e !== document.body; e = e.parentElement)
    if (getComputedStyle(e).overflowX !== 'visible') return true; return false; };
  const all = [...document.body.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > wide + 1);
  const worst = all.find(e => !inside(e)) || document.body;
  return document.documentElement.scrollWidth + ' px: ' + worst.outerHTML.slice(0, 120);
}"""

SHORTENED: Final = """() => {
  const walk = e => {
    const kinds = new Set();
    for (const one of [...e.children]) {
      const kind = walk(one);
      if (kinds.has(kind)) one.remove(); else kinds.add(kind);
    }
    const marks = [...e.attributes].map(a => a.name === 'class' ? '.' + a.value : ' ' + a.name);
    return e.tagName + marks.sort() + '(' + [...kinds].sort() + ')';
  };
  walk(document.body);
}"""
"""Leaves one of each kind of row on a page: rules are for kinds of rows, and take their time over each."""

AXE: Final = """only => axe.run(document, {resultTypes: ['violations'], preload: false, runOnly: only}).then(
  found => found.violations.map(({id, nodes}) => {
    const why = nodes[0].any.concat(nodes[0].all, nodes[0].none).map(one => one.message).join('; ');
    return id + ' (' + nodes.length + '): ' + nodes[0].html.slice(0, 140) + ' | ' + why.slice(0, 200);
  }))"""

_CUT: Final = """() => [...document.querySelectorAll('main *')]
  .filter(e => e.getClientRects().length && getComputedStyle(e).overflowX !== 'visible')
  .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1 && !e.closest('svg'))
  .map(e => e.scrollWidth + ' px in ' + e.clientWidth + ': ' + e.outerHTML.slice(0, 120))"""


@cache
def axe_source() -> str:
    """The script of axe-core, as a package of the test extra brings it."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


class Visitor:
    """One tab that goes from page to page and remembers what each of them said and asked for."""

    def __init__(self, context: Any, shots: Path | None = None) -> None:
        self.shots = shots
        self.page = context.new_page()
        self.page.add_init_script(WATCH)
        self._now: Setting | None = None
        self.noise: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda one: self.noise.append(f"console {one.type}: {one.text}"))
        self.page.on("pageerror", lambda one: self.noise.append(f"error: {one}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda one: self.asked.append(one.url))

    def _dialog(self, dialog: Any) -> None:
        self.noise.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, url: str, setting: Setting = SETTINGS[0]) -> None:
        """Load a page as a reader with such a screen does."""
        self.noise.clear()
        self.asked.clear()
        self.set(setting)
        self.page.goto(url)

    def set(self, setting: Setting) -> None:
        """Change screen and light while a page is open."""
        if setting != self._now:
            scheme, width = setting
            self.page.emulate_media(color_scheme=scheme, media="screen")
            self.page.set_viewport_size({"width": width, "height": HEIGHT})
            self._now = setting

    def spoken(self, *allowed: str) -> list[str]:
        """Return console messages of the open page, violations of its policy, and requests that are not ``allowed``."""
        refused = [f"refused by its policy: {one}" for one in self.page.evaluate("window.__violations")]
        return [*self.noise, *refused, *(f"asks for {url}" for url in self.asked if url not in allowed)]

    def overflow(self, *widths: int, unfolded: bool = False) -> list[str]:
        """At which widths the open page can be scrolled sideways, as it stands or folded out."""
        if unfolded:
            self.page.evaluate(UNFOLD)
        found = []
        for width in widths:
            self._now = None
            self.page.set_viewport_size({"width": width, "height": HEIGHT})
            if why := self.page.evaluate(_OVERFLOWING):
                found.append(f"at {width} px it is {why}")
        return found

    def barriers(self) -> list[str]:
        """Return the findings of axe: by all rules in light on a wide screen, by layout rules in dark on a narrow one.
        Shortens the page."""
        found = []
        self.page.evaluate(SHORTENED)
        self.page.evaluate(axe_source())
        for (scheme, width), (kind, values) in zip(SETTINGS, (("tag", RULES), ("rule", CSS_RULES)), strict=True):
            self.set((scheme, width))
            only = {"type": kind, "values": values}
            found += [f"axe, {scheme} {width}: {one}" for one in self.page.evaluate(AXE, only)]
        return found

    def printed(self) -> list[str]:
        """Return the elements that would be cut off on paper, 190 mm between its margins."""
        self._now = None
        self.page.emulate_media(media="print")
        self.page.set_viewport_size({"width": 718, "height": HEIGHT})
        self.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        found = [f"cut on paper: {one}" for one in self.page.evaluate(_CUT)]
        if why := self.page.evaluate(_OVERFLOWING):
            found.append(f"on paper it is {why}")
        if self.page.evaluate("[...document.querySelectorAll('details')].some(one => !one.open)"):
            found.append("on paper something stays folded")
        self.page.emulate_media(media="screen")
        return found

    def pictures(self, name: str, shots: Path | None = None) -> list[str]:
        """Pictures of the open page in both settings, in a folder or where somebody wants pictures."""
        found = []
        for scheme, width in SETTINGS if shots or self.shots else ():
            target = (shots or self.shots) / f"{name.replace('/', '~').removesuffix('.html')}-{width}-{scheme}.jpg"
            target.parent.mkdir(parents=True, exist_ok=True)
            self.set((scheme, width))
            self._now = None
            tall = int(self.page.evaluate("document.documentElement.scrollHeight"))
            self.page.set_viewport_size({"width": width, "height": min(max(tall, HEIGHT), _TALLEST)})
            self.page.screenshot(path=str(target), type="jpeg", quality=60)
            found.append(str(target))
        return found


@contextmanager
def visiting(browser: Any, shots: Path | None = None, **more: Any) -> Iterator[Visitor]:
    """A tab in a context of its own; arguments go to the context."""
    context = browser.new_context(viewport={"width": 1440, "height": HEIGHT}, **more)
    try:
        yield Visitor(context, shots)
    finally:
        context.close()


def said(problems: Sequence[str]) -> str:
    """Problems as a failing test shows them."""
    more = [f"and {len(problems) - _TOLD} more"] if len(problems) > _TOLD else []
    return "\n" + json.dumps([*problems[:_TOLD], *more], indent=1, ensure_ascii=False)
