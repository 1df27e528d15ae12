"""PostgreSQL servers for tests: an empty schema on one, and one from the system's own package."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

import sqlalchemy as sa

Schemas = Callable[[], AbstractContextManager[str]]
_NUMBERS = count()


def schemas_of(server: sa.URL) -> Schemas:
    """``with schemas() as url``: the URL of an empty schema, which is gone afterwards."""

    @contextmanager
    def made() -> Iterator[str]:
        name = f"test_{os.getpid()}_{next(_NUMBERS)}"
        engine = sa.create_engine(server)
        with engine.begin() as connection:
            connection.execute(sa.text(f"CREATE SCHEMA {name}"))
        url = server.update_query_dict({"options": f"-csearch_path={name}"})
        yield url.render_as_string(hide_password=False)
        with engine.begin() as connection:
            connection.execute(sa.text("SET client_min_messages = warning"))
            connection.execute(sa.text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()

    return made


def system_programs() -> Path | None:
    """The folder of the newest PostgreSQL that Debian's packages put here; None without one."""
    found = Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")
    return max((path.parent for path in found), key=lambda folder: float(folder.parent.name), default=None)


@contextmanager
def system_server(programs: Path) -> Iterator[sa.URL]:
    """A server of its own from those programs, on a socket in a new folder, with the settings of its package."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the name of its socket has to fit
    as_user: list[str] = []
    if os.geteuid() == 0:  # it refuses to be run by root
        shutil.chown(folder, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]

    def do(*command: str) -> None:
        subprocess.run([*as_user, *command], cwd="/", check=True, capture_output=True, timeout=60)

    data, control = str(folder / "data"), str(programs / "pg_ctl")
    try:
        do(str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--locale=C.UTF-8")
        options = f"-k {folder} -c listen_addresses=''"
        do(control, "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield sa.URL.create("postgresql+psycopg", "postgres", database="postgres", query={"host": str(folder)})
        finally:
            do(control, "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
