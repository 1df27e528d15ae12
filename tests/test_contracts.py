"""The tree is the protocol: data flows one way, and nobody who grades can reach what happened next."""

from __future__ import annotations

import ast
import logging
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "assaymark"
CONTRACTS = {
    item["id"]: item
    for item in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}
PACKAGES = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file())


@pytest.fixture
def loggers():
    """The linter silences the loggers that are there; tests after it hear them again."""
    yield
    for one in logging.root.manager.loggerDict.values():
        if isinstance(one, logging.Logger):
            one.disabled = False


@pytest.mark.usefixtures("loggers")
@pytest.mark.parametrize("contract", sorted(CONTRACTS))
def test_import_contract_is_kept(contract, capsys):
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), limit_to_contracts=(contract,), no_cache=True)
    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_every_module_of_the_tree_has_its_rank():
    ranked = {name.strip() for layer in CONTRACTS["flow"]["layers"] for name in layer.split("|")}
    modules = {f"assaymark.{path.stem}" for path in SOURCE.glob("*.py") if path.stem not in ("__init__", "__main__")}
    assert ranked == modules | {f"assaymark.{name}" for name in PACKAGES}


def test_the_blind_cannot_see_where_the_future_lives():
    blind = CONTRACTS["blind"]
    assert set(blind["source_modules"]) == {f"assaymark.{n}" for n in ("agents", "judging", "metrology", "claims")}
    assert set(blind["forbidden_modules"]) == {f"assaymark.{n}" for n in ("market", "benchmark", "importers")}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_what_lives_there(package):
    docstring = ast.get_docstring(ast.parse((SOURCE / package / "__init__.py").read_text()))
    assert docstring is not None
    assert len(docstring.split()) >= 10


def test_files_stay_readable():
    lines = {
        str(path.relative_to(SOURCE)): sum(1 for line in path.read_text().splitlines() if line.strip())
        for path in SOURCE.rglob("*.py")
    }
    assert lines
    assert {name: count for name, count in lines.items() if count > 620} == {}
    assert [one for one in lines if Path(one).stem in ("utils", "util", "helpers", "common", "misc")] == []
