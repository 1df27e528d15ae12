"""The documentation says what the code does: fields, defaults, names, commands, files and links."""

from __future__ import annotations

import re
import shlex
import tomllib
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from assaymark import protocol
from assaymark.cli import COMMANDS
from assaymark.importers.read import DecisionColumns, TextColumns
from assaymark.workflow import MEASUREMENTS, RunFolder, Store

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
WRITTEN = ("index", "check", "tutorial", "protocol", "metrics", "sources", "import")

_ROW = re.compile(r"^\| `([a-z_.]+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.M)
_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generate(docs_script) -> ModuleType:
    return docs_script("generate")


# --- the study file ---------------------------------------------------------------------------------------------------


def part_of(info: FieldInfo) -> type[BaseModel] | None:
    """The model of a nested table, or of the entries of a list of tables."""
    inner = [kind for kind in (info.annotation, *typing.get_args(info.annotation)) if isinstance(kind, type)]
    return next((kind for kind in inner if issubclass(kind, BaseModel)), None)


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every field of a study file with its dotted name; the fields of a judge once, where judges are listed."""
    for own, info in model.model_fields.items():
        name = info.alias or own
        yield prefix + name, info
        inner = part_of(info)
        if inner and (inner is not protocol.JudgeSpec or name == "judges"):
            yield from fields(inner, f"{prefix}{name}.")


FIELDS = dict(fields(protocol.Study))
TABLE = {name: cells for name, *cells in _ROW.findall(page("protocol"))}


def test_the_page_lists_exactly_the_fields_of_the_study_file():
    models = {kind for kind in vars(protocol).values() if isinstance(kind, type) and issubclass(kind, protocol.Frozen)}
    reached = {protocol.Study, *filter(None, map(part_of, FIELDS.values()))}
    shared = {kind for one in reached for kind in one.mro()[1:]}  # what seasons and benchmarks take too
    assert models - shared == reached
    assert set(TABLE) == set(FIELDS)


def is_default(cell: str, info: FieldInfo) -> bool:
    """True if a cell of the page is the default of a field."""
    if info.is_required():
        return cell == "required"
    default = info.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        return cell == "table" and default == type(default)()
    if default is None:
        return cell == "not set"
    stated = tomllib.loads(f"x = {cell.strip('`')}")["x"]
    wanted = list(default) if isinstance(default, tuple) else default
    return (stated, type(stated)) == (wanted, type(wanted))


def test_defaults_and_bounds_on_the_page_are_those_of_the_code():
    assert {name: TABLE[name][0] for name, info in FIELDS.items() if not is_default(TABLE[name][0], info)} == {}
    kinds = (("ge", ""), ("le", ""), ("gt", "above"), ("lt", "below"), ("max_length", ""))
    missing = []
    for name, info in FIELDS.items():
        cell = TABLE[name][1]
        numbers = {float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", cell)}
        bounds = [(kind, word, getattr(bound, kind, None)) for bound in info.metadata for kind, word in kinds]
        for kind, word, value in bounds:
            if value is not None and (float(value) not in numbers or (word and f"{word} {value:g}" not in cell)):
                missing.append((name, kind, value))
    assert missing == []


def literals(annotation: Any) -> Iterator[Any]:
    """Every literal value that a type allows."""
    if typing.get_origin(annotation) is typing.Literal:
        yield from typing.get_args(annotation)
    else:
        for inner in typing.get_args(annotation):
            yield from literals(inner)


def test_every_allowed_word_and_every_meaning_is_on_the_page():
    allowed = [(name, value) for name, info in FIELDS.items() for value in literals(info.annotation)]
    assert allowed
    assert [(name, value) for name, value in allowed if f"{value}" not in f"{TABLE[name][1]}\n{TABLE[name][2]}"] == []
    assert [name for name in FIELDS if len(TABLE[name][2]) < 5 or not re.search(r"[.`]$", TABLE[name][2])] == []


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_the_measurements_of_a_run_have_a_row(demo):
    rows = set(re.findall(r"^\| `([a-z0-9_.]+)` \| .* \| .* \| .* \|", page("metrics"), re.M))
    assert {item.name for item in Store(RunFolder(demo)).read(MEASUREMENTS)} - rows == set()
    # Controls and probes are not in every run, so the other direction is asked of the code.
    source = (ROOT / "src" / "assaymark").rglob("*.py")
    texts = {text for path in source for text in re.findall(r'"[a-z0-9_.]+"', path.read_text(encoding="utf-8"))}
    assert [name for name in sorted(rows) if not {f'"{name}"', f'"{name.partition(".")[2]}"'} & texts] == []


# --- sources and import -----------------------------------------------------------------------------------------------


def test_the_packages_and_tests_of_every_source_are_there():
    """``none yet`` stands for a test that is still to be written."""
    lines = [line for line in page("sources").splitlines() if line.startswith("|") and "`" in line]
    assert len(lines) > 50
    missing = []
    for line in lines:
        row = re.search(r"\| `([\w/.]+)` \| ((?:`[\w/]+\.py`(?:, )?)+|none yet) \|$", line)
        assert row is not None, line
        places = [f"src/assaymark/{row[1]}", *(f"tests/{test}" for test in re.findall(r"`([^`]+)`", row[2]))]
        missing += [place for place in places if not (ROOT / place).exists()]
    assert missing == []


def test_every_column_and_kind_of_text_of_the_generic_format_is_named():
    text = page("import")
    assert [key for key in (*DecisionColumns.model_fields, *TextColumns.model_fields) if f"`{key}`" not in text] == []
    needed = {name for name, info in DecisionColumns.model_fields.items() if info.is_required()}
    _, _, table = text.partition("| our name | what it is |\n")
    assert set(re.findall(r"^\| `(\w+)` \|", table.partition("\n\n")[0], re.M)) == needed


# --- what is generated ------------------------------------------------------------------------------------------------


def block(path: Path, mark: str) -> str:
    """Return the generated block between two marks of a page."""
    return path.read_text(encoding="utf-8").partition(f"<!-- {mark} -->\n")[2].partition(f"\n<!-- /{mark} -->")[0]


def test_pages_are_as_generated(generate):
    assert page("cli") == generate.manual()
    commands = [name for places in COMMANDS.values() for name in places]
    assert [name for name in commands if f"\n## `assaymark {name}`\n" not in page("cli")] == []
    assert (DOCS / "verdicts.schema.json").read_text(encoding="utf-8") == generate.schema()
    assert block(DOCS / "check.md", "roles") == generate.roles()
    assert block(DOCS / "check.md", "makers") == generate.makers()
    assert [name for name in generate.MEASURED if page(name) != generate.measurements(name)] == []


def test_the_screens_of_the_first_page_and_the_readme_are_those_of_the_demo_and_the_table(demo, docs_script):
    shown = docs_script("demo_shown")
    assert block(DOCS / "index.md", "screen") == f"```text\n{shown.screen_head(shown.screen(demo))}\n```"
    assert shown.SCORES.read_text(encoding="utf-8") == shown.scores()
    assert block(shown.README, "screen") == f"```text\n{shown.check_head()}\n```"


# --- form -------------------------------------------------------------------------------------------------------------


def test_the_readme_and_lines_are_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 100
    lines = [line for name in WRITTEN for line in page(name).splitlines() if not line.startswith("|")]
    assert [line for line in lines if len(line) > 120] == []


ODD = re.compile(
    r"\b(leads? on|hears?|told|somebody|anybody|nobody|of (its|one's|their|your) own|put(s)? before|"
    r"stands? (beside|in|at|on|for)|goes on|a stranger|what (may|may not) be said)\b",
    re.I,
)
QUOTED = ("stands at +2.27%", "stands at 0.60", "not-told-apart", "Of its own profile")


def test_pages_are_written_in_plain_terms():
    """Help texts and tests that pages repeat have their own checks; a text of an agent is quoted as it is."""
    pages = [path for path in PAGES if "decisions" not in path.parts and path.stem not in ("CHANGELOG", "cli")]
    lines = [(path.name, line) for path in pages for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(name, line) for name, line in lines if ODD.search(line) and not any(one in line for one in QUOTED)] == []


def anchors(text: str) -> set[str]:
    """The fragments that the headings of a page can be linked by."""
    titles = re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_relative_links_resolve():
    broken = []
    for path in PAGES:
        for link in _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8"))):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, fragment = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists() or (fragment and fragment not in anchors(target.read_text(encoding="utf-8"))):
                broken.append(f"{path.relative_to(ROOT)}: {link}")
    assert broken == []


def test_every_page_can_be_reached():
    """From the README or the index, by links between pages."""
    seen: set[Path] = set()
    queue = [ROOT / "README.md", DOCS / "index.md"]
    while queue:
        path = queue.pop()
        if path in seen or path.suffix != ".md" or not path.is_file():
            continue
        seen.add(path)
        queue += [(path.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(path.read_text("utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in PAGES if path not in seen] == []


# --- what CONTRIBUTING tells a newcomer -------------------------------------------------------------------------------


GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```sh\n(.*?)^```$", GUIDE, re.M | re.S)
TYPED = [shlex.split(line) for fence in FENCES for line in fence.replace("\\\n", " ").splitlines()]
NAMED = sorted(set(re.findall(r"`((?:src|tests|docs|bench|studies)/[\w./*]+|\w+\.(?:toml|yml|lock))`", GUIDE)))


def test_a_command_names_what_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    installed = " ".join(extra for name in ("test", "dev", "docs") for extra in extras[name])
    for command in TYPED:
        match command:
            case ["python3", "-m", "venv", _] | [".", _]:
                pass
            case ["python", "-m", "pip", "install", "-e", what]:
                assert set(what.removeprefix(".[").removesuffix("]").split(",")) <= set(extras)
            case ["python", "-m", "pytest", *paths]:
                assert [path for path in paths if not (ROOT / path).exists()] == []
            case ["python", script, *_]:
                assert (ROOT / script).is_file()
            case ["pip-compile", *_]:
                assert command[-1] == "pyproject.toml"
            case [tool, *_]:
                assert {"lint-imports": "import-linter"}.get(tool, tool) in installed


def test_files_and_packages_that_are_named_are_there_and_every_package_has_its_row():
    assert [name for name in NAMED if name != "fr.toml" and not list(ROOT.glob(name))] == []
    rows = set(re.findall(r"^\| [^|]+ \| `src/assaymark/(\w+)", GUIDE, re.M))
    packages = {path.parent.name for path in (ROOT / "src" / "assaymark").glob("*/__init__.py")}
    assert packages - rows == {"prompting"}  # what prompts and replies are made of, for those who ask


def test_recipes_run_and_what_they_name_is_where_they_say():
    for session in re.findall(r"^```python\n(.*?)^```$", GUIDE, re.M | re.S):
        exec(compile(session, "<CONTRIBUTING.md>", "exec"), {})
    named = (
        ("engine/providers/base.py", "class SdkModel"), ("engine/providers/registry.py", "GoogleModel"),
        ("importers/formats.py", "IMPORTERS"), ("report/quantities/study.toml", "title"),
        ("report/study/pages.py", "def each_page"), ("claims/verdicts.py", "class ClaimType"),
    )  # fmt: skip
    source = ROOT / "src" / "assaymark"
    assert [name for name, word in named if word not in (source / name).read_text(encoding="utf-8")] == []
    assert all(f"`src/assaymark/{name}`" in GUIDE for name, _ in named)
