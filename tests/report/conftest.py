"""Pages as a reader opens them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from looking import visiting


@pytest.fixture
def visit(browser, folder):
    """``visit(path, width)``: a page of the module's ``folder`` in the browser.
    ``noise`` is what it said on the console, ``asked`` what it asked of the network, and ``show(path, width)`` leads to
    another page in the same tab. More arguments go to the context."""
    with ExitStack() as contexts:

        def go(path: str, width: int = 1440, **more):
            visitor = contexts.enter_context(visiting(browser, **more))

            def show(path: str, width: int = width):
                """Another page in the same tab."""
                file, mark, place = path.partition("#")
                visitor.page.set_viewport_size({"width": width, "height": 900})
                visitor.open((folder / file).as_uri() + mark + place, ("light", width))

            page = visitor.page
            page.noise, page.asked, page.show = visitor.noise, visitor.asked, show
            show(path)
            return page

        yield go
