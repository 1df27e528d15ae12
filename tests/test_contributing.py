"""What CONTRIBUTING tells a newcomer is there: commands, folders, files, extras and options."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
COMMANDS = [shlex.split(line) for fence in FENCES for line in fence.replace("\\\n", " ").splitlines()]
NAMED = sorted(set(re.findall(r"`((?:src|tests|docs|bench|studies)/[\w./*]+|\w+\.(?:toml|yml|lock))`", PAGE)))
BESIDE = {"registry.py", "prices.toml", "fr.toml"}


def words(command: list[str]) -> str:
    return " ".join(command)


@pytest.mark.parametrize("command", COMMANDS, ids=words)
def test_a_command_names_what_is_there(command):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    installed = " ".join(extra for name in ("test", "dev", "docs") for extra in extras[name])
    match command:
        case ["python3", "-m", "venv", _] | [".", _]:
            pass
        case ["python", "-m", "pip", "install", "-e", what]:
            assert set(what.removeprefix(".[").removesuffix("]").split(",")) <= set(extras)
        case ["python", "-m", "pytest", *paths]:
            assert [path for path in paths if not (ROOT / path).exists()] == []
        case ["python", script]:
            assert (ROOT / script).is_file()
        case ["pip-compile", *_]:
            assert command[-1] == "pyproject.toml"
        case [tool, *_]:
            assert {"lint-imports": "import-linter"}.get(tool, tool) in installed


@pytest.mark.parametrize("name", NAMED)
def test_a_file_or_folder_that_is_named_is_there(name):
    if name not in BESIDE:
        assert list(ROOT.glob(name)), name


def test_every_package_has_its_row():
    rows = set(re.findall(r"^\| [^|]+ \| `src/assaymark/(\w+)", PAGE, re.M))
    packages = {path.parent.name for path in (ROOT / "src" / "assaymark").glob("*/__init__.py")}
    assert packages - rows == {"prompting"}  # what prompts and replies are made of, for those who ask


def test_the_files_of_the_recipes_are_where_they_say():
    models = ROOT / "src" / "assaymark" / "engine" / "providers"
    assert all((models / name).is_file() for name in ("registry.py", "prices.toml"))
    assert (ROOT / "src" / "assaymark" / "importers" / "formats.py").is_file()
