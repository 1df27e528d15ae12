"""Helpers shared by browser tests of pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

APART: Final = """() => {
  const bad = [];
  for (const fig of document.querySelectorAll('svg.fig, svg.strip')) {
    if (getComputedStyle(fig).display === 'none' || !fig.getBoundingClientRect().width) continue;
    const f = fig.getBoundingClientRect();
    const texts = [...fig.querySelectorAll('text')].filter(t => t.getClientRects().length);
    const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
    for (const [a, p] of boxes) if (p.left < f.left - 1 || p.right > f.right + 1) bad.push(fig.id + ': ' + a);
    boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
      const over = Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 &&
                   Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4;
      if (over) bad.push(fig.id + ': ' + a + ' / ' + b);
    }));
  }
  return bad;
}"""
"""Script that lists the labels of figures which are clipped or lie on one another."""


FITS: Final = "document.documentElement.scrollWidth <= innerWidth"
UNFOLD: Final = "document.querySelectorAll('details').forEach(d => { d.open = true; })"
LUM: Final = """const lum = c => {
  const m = c.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const v = (c.startsWith('color(') ? m : m.map(x => x / 255))
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };"""
"""Script: how light a colour is, as contrast counts it."""


def write_pages(root: Path, pages: Mapping[str, str]) -> None:
    """Pages by path, as files below a folder."""
    for path, page in pages.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page, encoding="utf-8")
