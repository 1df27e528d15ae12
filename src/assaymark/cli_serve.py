"""`assaymark serve`: look at a run in a browser while it goes on."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli_tools import Tools
from assaymark.workflow.serving import HOST, PORT, open_server

Folder = Annotated[Path, typer.Argument(help="Run folder, or the folder of a site.", metavar="FOLDER")]
Host = Annotated[str, typer.Option("--host", help="Where to listen; other than this machine shows it to others.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open it in the browser.")]


def serve_command(tools: Tools) -> Callable[..., None]:
    """The command, to be added to the command line."""

    def serve(folder: Folder, host: Host = HOST, port: Port = PORT, open_: Open = False) -> None:
        """Show a run in the browser, with its progress while it goes on; Ctrl-C ends it."""
        with open_server(folder, host=host, port=port) as server:
            address = f"http://{host}:{server.server_address[1]}/"
            tools.say_all([f"{folder} at {address}", "Ctrl-C ends this; a run that is under way goes on"])
            if open_:
                webbrowser.open(address)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                tools.say_all(["stopped"])

    return serve
