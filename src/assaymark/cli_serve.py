"""`assaymark serve`: look at a run in a browser while it goes on."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli_tools import tools_of
from assaymark.cli_verb import examples
from assaymark.workflow.serving import HOST, PORT, open_server

Folder = Annotated[Path, typer.Argument(help="Run folder, or the folder of a site.", metavar="FOLDER")]
Host = Annotated[
    str, typer.Option("--host", help="Where to listen; others than this machine can see it then.", metavar="ADDRESS")
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.", metavar="N")]
Open = Annotated[bool, typer.Option("--open", help="Open it in the browser.")]


app = typer.Typer(rich_markup_mode=None)


@app.command(epilog=examples("assaymark serve runs/mine", "assaymark serve runs/mine --port 0 --open"))
def serve(ctx: typer.Context, folder: Folder, host: Host = HOST, port: Port = PORT, open_: Open = False) -> None:
    """Show a run in the browser, with its progress while it goes on; Ctrl-C ends it."""
    tools = tools_of(ctx)
    with open_server(folder, host=host, port=port) as server:
        address = f"http://{host}:{server.server_address[1]}/"
        tools.say_all([f"{folder} at {address}", "Ctrl-C ends this; a run that is under way goes on"])
        if open_:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            tools.say_all(["stopped"])
