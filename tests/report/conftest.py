"""Pages as a reader opens them."""

from __future__ import annotations

import pytest


@pytest.fixture
def visit(browser, folder):
    """``visit(path, width)``: a page of the module's ``folder`` in the browser.
    ``noise`` is what it said on the console, ``asked`` what it asked of the network, and ``show(path, width)`` leads to
    another page in the same tab. More arguments go to the context."""
    contexts = []

    def go(path: str, width: int = 1440, **more):
        context = browser.new_context(viewport={"width": width, "height": 900}, **more)
        contexts.append(context)
        page = context.new_page()
        page.noise, page.asked = [], []
        page.on("console", lambda message: page.noise.append(message.text))
        page.on("pageerror", lambda error: page.noise.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))

        def show(path: str, width: int = width):
            """Another page in the same tab."""
            page.noise.clear()
            page.asked.clear()
            page.set_viewport_size({"width": width, "height": 900})
            file, mark, place = path.partition("#")
            page.goto((folder / file).as_uri() + mark + place)

        page.show = show
        show(path)
        return page

    yield go
    for context in contexts:
        context.close()
