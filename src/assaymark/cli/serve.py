"""`assaymark serve`: look at a run in a browser while it is running."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from assaymark.cli.options import examples, option, tools_of
from assaymark.workflow.serve import EVERY, HOST, PORT, open_server

Folder = Annotated[Path, typer.Argument(help="Run folder, or the folder of a site.", metavar="FOLDER")]
Host = Annotated[str, option("Bind address; anything but 127.0.0.1 exposes the pages.", "ADDRESS", "--host")]
Allow = Annotated[list[str] | None, option("Host name or address of this machine; repeatable.", "NAME", "--allow-host")]
Port = Annotated[int, option("Port; 0 picks a free one.", "N", "--port", min=0, max=65535)]
Open = Annotated[bool, typer.Option("--open", help="Open the pages in the browser.")]


app = typer.Typer(rich_markup_mode=None)


@app.command(
    epilog=examples(
        "assaymark serve runs/mine",
        "assaymark serve runs/mine --port 0 --open",
        "assaymark serve runs/mine --host 0.0.0.0 --allow-host lab.example.org",
    )
)
def serve(
    ctx: typer.Context, folder: Folder, host: Host = HOST, allow: Allow = None, port: Port = PORT, open_: Open = False
) -> None:
    """Show a run in the browser, with live progress; Ctrl-C stops the server.

    Only requests to a host named here are answered, so that no other web page can read the run.
    """
    tools = tools_of(ctx)
    with open_server(folder, host, port, allowed=allow or ()) as server:
        names = ["localhost" if host in EVERY else host, *(allow or ())]
        address, *others = (f"http://{name}:{server.server_address[1]}/" for name in names)
        hint = ["others on the network are refused: say with --allow-host NAME how they call this machine"]
        tools.print_lines(
            [
                f"{folder} at {', '.join([address, *others])}",
                *(hint if host in EVERY and not allow else ()),
                "Ctrl-C ends this; a run that is under way goes on",
            ]
        )
        if open_:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            tools.print_lines(["stopped"])
