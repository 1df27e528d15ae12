"""What every page is rendered with: the templates, their style and script, and the policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from assaymark import __version__
from assaymark.claims.messages import Catalogue, english

SCRIPTS: Final = ("page.js",)
"""The scripts of a page that names none."""

NO_SCRIPT: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The policy of a page without a script."""

_WORDS: Final = (
    "skip", "pages", "languages", "copy", "copied", "not_copied", "say_also", "open", "close", "covers", "search",
    "in_part",
    "shown", "withheld", "plan", "footer", "runs", "contents", "brush", "brush_from", "brush_to", "brush_said",
    "brush_line", "judges", "data",
)  # fmt: skip


@cache
def environment() -> Environment:
    """The templates of this package, with every value escaped and an undefined one an error.

    ``ui`` are the words of the frame, in English where a page does not bring those of its own language.
    """
    made = Environment(
        loader=PackageLoader("assaymark.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["ui"] = frame_words(english())
    return made


def frame_words(catalogue: Catalogue) -> SimpleNamespace:
    """The words of the frame in a language, by name; ``lang`` is its code and ``point`` what stands before decimals.

    >>> frame_words(english()).copy
    'Copy'
    """
    known = {"lang": catalogue.language, "point": catalogue.decimal}
    return SimpleNamespace(**known, **{word: catalogue.say(f"frame.{word}") for word in _WORDS})


@cache
def asset(name: str) -> str:
    """A style sheet or script, without the comments and the spaces that only its author needs."""
    loader = environment().loader
    assert loader is not None
    source, _, _ = loader.get_source(environment(), name)
    if name.endswith(".css"):
        return _shortened(re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL), r"[{};,]").replace(";}", "}")
    return _shortened(re.sub(r"^\s*//.*", "", source, flags=re.MULTILINE), r"[-+*/%=<>!?:;,{}()&|\[\]]")


def _shortened(source: str, signs: str) -> str:
    """A text without space around some signs, and with one blank for any other; what stands in quotes stays.

    >>> _shortened('a  ; b { c: " ; " }', "[{};]")
    'a;b{c: " ; "}'
    """
    return re.sub(rf'("[^"\n]*")|\s*({signs})\s*|\s+', lambda found: found[1] or found[2] or " ", source).strip()


@cache
def content_security_policy(*scripts: str, connect: bool = False) -> str:
    """Nothing may be loaded, inline styles may apply, and no scripts may run but these of ours, by their hashes.

    ``scripts`` are names of assets; without any, the one of every page. ``connect`` lets them ask the server that the
    page came from.
    """
    digests = " ".join(f"'sha256-{_digest(name)}'" for name in scripts or SCRIPTS)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {digests}; base-uri 'none'; form-action 'none'"
    return f"{policy}; connect-src 'self'" if connect else policy


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(asset(script).encode()).digest()).decode()


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of a menu: its name among the others, where it leads, and its words."""

    key: str
    href: str
    word: str


@dataclass(frozen=True, slots=True)
class Site:
    """A site of several runs, as the pages of one run see it.

    Attributes
    ----------
    runs : sequence of Link
        Every run by its key, seen from the folder of this run's pages. Empty for a run that stands alone.
    here : str
        The key of this run.
    home : str
        The first page of the whole site, seen from the same folder.
    """

    runs: tuple[Link, ...] = ()
    here: str = ""
    home: str = "index.html"

    def below(self, folders: int) -> Site:
        """The same site, seen from so many folders further down."""
        up = "../" * folders
        return Site(
            tuple(Link(one.key, up + one.href, one.word) for one in self.runs),
            self.here,
            up * bool(self.runs) + self.home,
        )


JUDGES: Final = "judges"
"""The key of the page of datasheets in the menu of a run that has them."""

ALONE: Final = Site()
"""Where a run stands whose pages are all there is."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around every page of one run: the menus, the style, the footer.

    Attributes
    ----------
    study : str
        What the run is called, for the title of the window. Cleaned.
    mark : str
        The short plan hash for the footer, or empty.
    nav : sequence of Link
        The pages of the run, seen from the folder they lie in.
    site : Site
    styles : sequence of str
        Style sheets of every page of the run, by name.
    ui : SimpleNamespace or None
        The words of the frame, where they are not English.
    """

    study: str
    mark: str
    nav: tuple[Link, ...]
    site: Site = ALONE
    styles: tuple[str, ...] = ("page.css",)
    ui: SimpleNamespace | None = None

    def render(
        self,
        template: str,
        title: str,
        *,
        here: str = "",
        root: str = "",
        styles: Sequence[str] = (),
        scripts: Sequence[str] = SCRIPTS,
        connect: bool = False,
        **values: Any,
    ) -> str:
        """One page.

        Parameters
        ----------
        template : str
            Extends ``base.html``.
        title : str
            Set as it is: clean what comes from a record.
        here : str
            Its key in the menu; empty for pages that are not there.
        root : str
            The way from the page to the folder of the run's pages: empty or ``../``.
        styles, scripts : sequence of str
            Style sheets beside those of every page; all scripts of the page. By name.
        connect : bool
            Whether its script asks the server that the page came from.
        **values
            What the template needs.
        """
        words = {} if self.ui is None else {"ui": self.ui}
        return (
            environment()
            .get_template(template)
            .render(
                csp=content_security_policy(*scripts, connect=connect) if scripts else NO_SCRIPT,
                css="\n".join(asset(name) for name in (*self.styles, *styles)),
                scripts=[asset(name) for name in scripts],
                frame=self,
                here=here,
                root=root,
                title=title,
                version=__version__,
                **words,
                **values,
            )
        )
