"""`assaymark doctor`: what is installed, which keys are present (never their values), and what can run."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import typer

from assaymark import __version__
from assaymark.cli.options import AsJson, examples, say, tools_of
from assaymark.engine.providers.anthropic import ANTHROPIC
from assaymark.engine.providers.google import GOOGLE
from assaymark.engine.providers.openai import RESPONSES
from assaymark.errors import AssayError
from assaymark.importers import IMPORTERS
from assaymark.market.sources import SOURCES

CLIENTS: Final = {"yfinance": "yfinance", "fred": "fredapi", "ccxt": "ccxt", "huggingface": "huggingface_hub"}
"""The client library of each extra for market data."""
CORE: Final = ("numpy", "scipy", "pyarrow", "duckdb", "sqlalchemy", "pydantic", "zstandard", "pyyaml", "typer", "rich",
               "jinja2", "svg.py")  # fmt: skip
PROVIDERS: Final = (RESPONSES, ANTHROPIC, GOOGLE)
KEYS: Final = tuple(key for provider in PROVIDERS for key in provider.key_envs)
"""The environment variables that keys of model providers are read from."""
DISTRIBUTIONS: Final = {"openai": "openai", "anthropic": "anthropic", "google": "google-genai", "inspect": "inspect-ai",
                        "postgres": "psycopg", "ray": "ray"}  # fmt: skip
"""The package of each extra for models, shared ledgers and clusters."""
_WHAT_FOR: Final = {"postgres": "a ledger in PostgreSQL", "ray": "assaymark measure --compute ray"}
SOURCE_KEYS: Final = tuple(dict.fromkeys(one.key_variable for one in SOURCES.values() if one.key_variable))
"""The environment variables that keys of networked sources are read from."""


app = typer.Typer(rich_markup_mode=None)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the examination: what was looked at, whether it is there, and what that means."""

    what: str
    present: bool
    detail: str
    needed: bool = True


def examine(environment: Mapping[str, str], installed: Callable[[str], str | None] | None = None) -> list[Finding]:
    """Look at the interpreter, the packages and the keys. Values of keys are not read beyond "is it empty"."""
    lookup = installed or _installed
    findings = [Finding("assaymark", True, f"{__version__} on Python {platform.python_version()}")]

    def package(name: str, lacking: str, *, needed: bool = False) -> None:
        found = lookup(name)
        findings.append(Finding(name, found is not None, found or lacking, needed))

    def key(name: str, purpose: str) -> None:
        present = bool(environment.get(name))
        findings.append(Finding(name, present, f"{'set' if present else 'not set'} (for {purpose})", needed=False))

    for name in CORE:
        package(name, "missing; install assaymark again with pip", needed=True)
    for extra, name in DISTRIBUTIONS.items():
        what = _WHAT_FOR.get(extra, f"models {extra}/...")
        package(name, f"not installed; pip install 'assaymark[{extra}]' for {what}")
    for provider in PROVIDERS:
        for name in provider.key_envs:
            key(name, f"models {provider.name}/...")
    for extra in dict.fromkeys(one.extra for one in SOURCES.values()):
        package(CLIENTS[extra], f"not installed; pip install 'assaymark[{extra}]' for assaymark data pull")
    for name in SOURCE_KEYS:
        asking = ", ".join(source for source, one in SOURCES.items() if one.key_variable == name)
        key(name, f"assaymark data pull: {asking}")
    return findings


def can_run(findings: list[Finding], models: list[str]) -> list[str]:
    """What works on this machine, in words."""
    if any(not finding.present for finding in findings if finding.needed):
        return ["nothing until the missing packages above are installed"]
    return [
        "assaymark demo: yes, with no key, no file and no network",
        "assaymark bench qa, assaymark bench pipeline: yes, with ten reference models",
        "assaymark run studies/valueblind.toml: yes; agents of your own as http/... or python/...",
        f"import: {', '.join(sorted(IMPORTERS))}", f"models without a key: {', '.join(models)}",
    ]  # fmt: skip


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@app.command(epilog=examples("assaymark doctor", "assaymark doctor --json | jq .can_run"))
def doctor(ctx: typer.Context, json: AsJson = False) -> None:
    """Check which packages and keys are present (never the keys' values), and list what can run."""
    findings = examine(os.environ)
    runs, lines = can_run(findings, sorted(tools_of(ctx).models())), []
    for one in findings:
        mark = "yes" if one.present else ("NO " if one.needed else "no ")
        lines.append(f"{mark}  {one.what:<20} {one.detail}")
    say(ctx, {"findings": findings, "can_run": runs}, [*lines, *runs])
    if any(not finding.present for finding in findings if finding.needed):
        raise AssayError("a package that assaymark needs is missing")
