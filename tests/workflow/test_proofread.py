"""`assaymark gate`, `proofread` and `skill`: labelled sentences, claims, documents, outputs, and hostile texts."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
import time
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

import validation_sentences

from assaymark.cli import COMMANDS, main
from assaymark.workflow import Document, form_of, read_decided
from assaymark.workflow import proofread_text as proofread

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runs(demo, tmp_path_factory):
    """The verdicts of the demo, and of a table of four models."""
    folder = tmp_path_factory.mktemp("models")
    validation_sentences.table_of_models(folder / "scores.csv")
    words = ["check", str(folder / "scores.csv"), *validation_sentences.OPTIONS]
    assert main([*words, "--out", str(folder / "run")]) == 0
    return {"demo": read_decided(demo), "models": read_decided(folder / "run")}


def read(text, run, form="markdown"):
    """Return the findings in a text, and the fixed text."""
    found = proofread(Document(Path("text.md"), text, form, lambda code: code in run.names.agents), run)
    return found.found, found.fixed()


def marks(text, run):
    return "".join(one.finding.mark for one in read(text, run)[0])


# --- sentences --------------------------------------------------------------------------------------------------------


def test_labelled_sentences_are_read_as_the_page_says(runs):
    rows = list(validation_sentences.count_labels(runs))
    with (ROOT / "docs" / "validation" / "sentences.csv").open(newline="") as handle:
        assert [{name: int(value) for name, value in row.items()} for row in csv.DictReader(handle)] == rows
    total = {name: sum(row[name] for row in rows) for name in rows[0]}
    assert total["sentences"] >= 200
    assert total["right"] / total["compare"] >= 0.95
    assert total["right"] / total["found"] >= 0.9
    assert total["marks"] / total["sentences"] >= 0.95


def test_what_a_run_supports_passes_in_its_own_words_and_an_unsupported_order_is_never_told(runs):
    for run in runs.values():
        for verdict in run.verdicts:
            (alone, *_), fixed = read(verdict.claim.statement, run)
            wanted = {"headline": "x", "qualified": "/", "no-claim": "-!"}[verdict.publication_level]
            assert alone.finding.mark in wanted, verdict.claim.statement
            if alone.finding.mark != "-" or alone.finding.write:
                assert {*marks(fixed, run)} == {"x"}, fixed
            if verdict.claim.id.startswith("above[") and verdict.publication_level == "no-claim":
                high, low = verdict.claim.subjects
                where = verdict.claim.dimension.replace("_", " ").replace("aggregate", "the overall score")
                (one,), _ = read(f"{high} beats {low} on {where}.", run)
                (other,), _ = read(f"{low} beats {high} on {where}.", run)
                assert one.finding == other.finding


NUMBERS = [
    ("Alder and Birch score within 0.001 of each other.", "!"),
    ("Cedar beats Alder by less than 0.1.", "!"),
    ("Cedar beats Alder, with the gap standing at 0.92.", "?"),
    ("Cedar beats Alder (p = 3·10⁻⁴).", "x"),
    ("Cedar beats Alder (p = tiny).", "?"),
    ("Alder does not beat Cedar by 0.3.", "?"),
    ("Cedar leads Alder (0.90 against 0.32).", "?"),
]


COUNTS = [
    ("Five judges graded three agents.", "?"),
    ("Two judges graded four agents over 31 weeks.", "!"),
    ("Three judges scored 160 decisions in 14 weeks.", "?"),
    ("Three judges scored 160 decisions in 5 weeks.", "x"),
    ("160 decisions were graded by 3 judges.", "x"),
    ("999 decisions were graded by 3 judges.", "!"),
    ("The panel has 5 judges.", "!"),
    ("The season had 5 judges.", "!"),
    ("Five judges graded alder, birch and cedar.", "!"),
    ("Five judges graded poems.", ""),
    ("Two judges put their names down first.", ""),
    ("cedar scores above alder on the overall score in the scores of these 5 judges.", "!"),
    ("cedar ranks first of the nine agents on the overall score in the scores of these 3 judges.", "!"),
]


@pytest.mark.parametrize(("text", "mark"), NUMBERS + COUNTS)
def test_differences_margins_p_values_and_counts_are_checked_or_said_not_to_be(runs, text, mark):
    assert marks(text, runs["demo"]) == mark


DOCUMENTS = [
    ("Alder is our new agent. It beats Cedar.", "!"),
    ("**Cedar** [beats](https://a.b/alder) `alder`. **Cedar** beats `birch` by `0.9` points.", "x!"),
    ("`cedar > alder` and\n\n    cedar beats alder\n\n```\ncedar beats alder\n```\n<!-- cedar beats alder -->", ""),
    ("| agent | what |\n|---|---|\n| x | Cedar beats Alder. |", "x"),
    ("> Cedar beats\n> Alder.", "x"),
    ("1. Cedar beats Alder\n2. Alder beats Cedar\n", "x!"),
    ("The kappa of people and judges is 0.31.", ""),
    ("Cedar leads on SWE-bench. Cedar beats Alder on MMLU.", "??"),
    ("160 decisions of four agents, and four judges.", "!"),
    ("On 709 decisions of ten models the judges agree weakly (kappa 0.15; 0.20 needed).", ""),
    ("Is kappa at least 0.40? The cut-off of kappa is at least 0.40.", ""),
    ("Cedar beats Alder (p < .05), see docs/alder.md.", "x"),
    ("| agent | score |\n|---|---|\n| Alder | 3.97 |\n| Cedar | 4.43 |\n", "?"),
    ("", ""),
]


def test_documents_are_read_in_their_form(runs):
    assert [marks(text, runs["demo"]) for text, _ in DOCUMENTS] == [wanted for _, wanted in DOCUMENTS]
    page = "<p>Cedar <b>beats</b> Alder &amp; Birch.<br>Alder&#39;s ahead of Cedar"
    found, fixed = read(f"{page}<script>cedar beats dogwood</script></p>", runs["demo"], "html")
    assert [(one.finding.mark, one.line, one.column) for one in found] == [("x", 1, 4), ("!", 1, 45)]
    assert "<b>beats</b>" in fixed
    paper = "\\section{Cedar}\nCedar \\textbf{beats} Alder~\\cite{birch}. % cedar beats dogwood\n\nDogwood is last."
    paper += " Cedar beats alder ($\\Delta = 0.9$)."
    found, fixed = read(paper, runs["demo"], "latex")
    assert [(one.finding.mark, one.line) for one in found] == [("x", 2), ("/", 4), ("!", 4)]
    assert r"82.5 \% of the rationales" in fixed
    assert [form_of(name) for name in ("README", "a.HTM", "b.tex", "c.md")] == ["text", "html", "latex", "markdown"]


def test_a_condition_counts_in_its_sentence_or_behind_it(runs):
    # a size is of the pair that is named, also where the sentence says more of one of the two
    assert [marks(f"Cedar ranks first and beats Dogwood by {n} points.", runs["demo"]) for n in (2.3, 0.6)] == [
        "/",
        "!",
    ]
    said = "These scores were analysed after they were seen. No control texts were graded, so nothing shows that the "
    said += "panel rewards substance over style. Families of agents are not given."
    claim = "GPT-5.5 scores above Qwen3 32B on clarity."
    assert [marks(f"{claim}{gap}{said}", runs["models"]) for gap in (" ", "\n\n")] == ["x", "/"]
    opposite = said.replace("No control", "Control").replace("nothing shows", "it shows")
    assert read(f"{claim} {opposite}", runs["models"])[0][0].finding.add[0].startswith("No control texts")


# --- commands ---------------------------------------------------------------------------------------------------------


GATED = [
    ("cedar > alder", "headline", 0, "[x] headline: cedar scores above alder"),
    ("alder < cedar", "headline", 0, "[x] headline: cedar scores above alder"),
    ("cedar first", "qualified", 0, "[/] qualified: cedar ranks first"),
    ("cedar first", "headline", 1, "[/] qualified; headline needed"),
    ("Cedar > dogwood on risk_alignment", "qualified", 0, "[/] qualified: cedar scores above dogwood"),
    ("alder ~ birch", "headline", 0, "[x] headline: alder and birch score within 0.3"),
    ("above[dimension=aggregate,high=cedar,low=birch]", "headline", 0, "[x] headline"),
    ("birch > alder", "qualified", 1, "[-] no-claim; qualified needed: Any ranking of alder and birch"),
    ("alder > cedar", "qualified", 1, "[!] no-claim; qualified needed: Any ranking of alder and cedar"),
    ("aldr > birch", "qualified", 2, "Did you mean 'alder'?"),
    ("alder > birch on risk", "qualified", 2, "unknown score 'risk'"),
    ("alder is nice", "qualified", 2, "A > B, A < B, A ~ B or A first, with “on SCORE” if it is not the overall score"),
    ("cell[cell=cell_a]", "qualified", 0, "[/] qualified: The panel scores confident but wrong rationales"),
    ("cell[cell=cell_b]", "qualified", 1, "[-] no-claim; qualified needed: The claim cell[cell=cell_b]."),
    ("alder > alder", "qualified", 2, "names one agent twice"),
]


def test_a_gate_passes_what_a_run_supports(demo, tmp_path, ran, capsys):
    for claim, level, status, said in GATED:
        assert main(["gate", str(demo), "--claim", claim, "--at-least", level]) == status
        shown = capsys.readouterr()
        assert said in (shown.err if status == 2 else shown.out)
        assert len((shown.err + shown.out).strip().splitlines()) == 1
        if status < 2:
            words = ["gate", str(demo / "verdicts.json"), "--claim", claim, "--at-least", level, "--json"]
            assert main(words) == status
            found = json.loads(capsys.readouterr().out)
            assert (found["passed"], found["claim"]) == (status == 0, claim)
    for content, said in ((None, "no verdicts.json"), (b"{", "verdicts.json"), (b'{"format": "x"}', "missing"),
                          (b"\xff\xfe", "UTF-8")):  # fmt: skip
        if content is not None:
            (tmp_path / "verdicts.json").write_bytes(content)
        assert said in ran("gate", tmp_path, "--claim", "a > b", status=2)


TEXT = "Alder is the best trading agent.\r\nCedar beats Alder. Dogwood comes last.\r\nCedar beats the S&P 500.\r\n"


@pytest.fixture
def said_of(demo, tmp_path, monkeypatch, capsys):
    """``said_of(name, *options)``: what the command says of a file with that text."""

    def said(name, *options):
        monkeypatch.chdir(tmp_path)
        Path(name).write_bytes(TEXT.encode())
        assert main(["proofread", name, "--run", str(demo), *options]) == 1
        return capsys.readouterr().out

    return said


def test_the_terminal_shows_marks_what_to_write_and_counts(said_of):
    lines = said_of("a,b.md").splitlines()
    assert lines[0] == "a,b.md: 4 sentences compare agents or quote a number of this run"
    assert max(map(len, lines)) <= 80
    assert [line[5:8] for line in lines if re.match(r" {5}\[", line)] == ["[-]", "[/]", "[?]"]
    assert "  line 2   Cedar beats Alder." in "\n".join(lines)
    assert lines[-2] == "2 to change, 1 not decided, 1 matches.   Exit status 1"
    found = json.loads(said_of("a,b.md", "--json"))["findings"]
    places = [(one["mark"], one["line"], one["column"]) for one in found]
    assert places == [("-", 1, 1), ("x", 2, 1), ("/", 2, 20), ("?", 3, 1)]
    first, second, third = said_of("a,b.md", "--format", "github").splitlines()
    assert first.startswith("::error file=a%2Cb.md,line=1,endLine=1,col=1,endColumn=33,title=assaymark%3A Not supporte")
    assert "82.5 %25 of the rationales" in second
    assert third.startswith("::notice ")


def test_sarif_has_what_the_standard_requires(said_of):
    log = json.loads(said_of("a b.md", "--format", "sarif"))
    assert (log["version"], log["$schema"].endswith("sarif-2.1.0.json")) == ("2.1.0", True)
    (run,) = log["runs"]
    rules = {one["id"] for one in run["tool"]["driver"]["rules"]}
    assert (run["tool"]["driver"]["name"], run["columnKind"]) == ("assaymark", "unicodeCodePoints")
    assert [one["level"] for one in run["results"]] == ["error", "warning", "note"]
    for one in run["results"]:
        assert one["ruleId"] in rules
        assert one["message"]["text"]
        (place,) = one["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.md"
        region = place["physicalLocation"]["region"]
        line = TEXT.split("\r\n")[region["startLine"] - 1]
        assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == region["snippet"]["text"]


def test_fix_writes_the_changes_and_keeps_everything_else(demo, tmp_path, ran):
    path = tmp_path / "real.md"
    path.write_bytes(("\ufeff" + TEXT).encode())
    path.chmod(0o640)
    (tmp_path / "link.md").symlink_to(path)
    shown, new = ran("proofread", tmp_path / "link.md", "--run", demo, "--fix"), path.read_bytes().decode()
    assert "Alder is the best trading agent." in shown
    assert "+Cedar beats Alder. Dogwood comes last. 82.5 % of the rationales" in shown
    assert new.startswith("\ufeff")
    assert new.endswith("Cedar beats the S&P 500.\r\n")
    assert new.count("\r\n") == new.count("\n") == 3
    assert ((tmp_path / "link.md").is_symlink(), path.stat().st_mode & 0o777) == (True, 0o640)
    ran("proofread", path, "--run", demo, "--fix")
    assert path.read_bytes().decode() == new


def test_aliases_name_agents_and_common_words_are_not_looked_for(demo, tmp_path, ran):
    text = tmp_path / "a.txt"
    text.write_text("Model Y beats our Model X.")
    words = ["proofread", str(text), "--run", str(demo), "--json"]
    ran(*words)
    assert [
        one["mark"]
        for one in json.loads(ran(*words, "--alias", "Model Y=cedar", "--alias", "Model X=alder").splitlines()[-1])[
            "findings"
        ]
    ] == ["x"]
    ran(*words, "--alias", "Model Y=nobody", status=2)
    verdicts = json.loads((demo / "verdicts.json").read_text().replace("alder", "random"))
    (tmp_path / "verdicts.json").write_text(json.dumps(verdicts))
    text.write_text("Cedar beats random guessing.")
    assert "common words: random" in ran("proofread", text, "--run", tmp_path)


def test_what_is_no_text_is_an_error_and_control_characters_never_reach_the_terminal(demo, tmp_path, ran, capsys):
    path = tmp_path / "text.md"
    for content, said in ((None, "no such file"), (b"\x89PNG\r\n\x1a\n", ""), (b"a\x00b", "NUL bytes"),
                          (b"\xff\xfeA\x00", "")):  # fmt: skip
        if content is not None:
            path.write_bytes(content)
        assert said in ran("proofread", path, "--run", demo, status=2)
    assert "is no file" in ran("proofread", tmp_path, "--run", demo, status=2)
    path.write_text("Alder \x1b[31mbeats\x1b[0m Cedar\u202e.\x07 Dogwood \x9bis last.")
    for more in ([], ["--json"], ["--format", "github"], ["--format", "sarif"], ["--fix"]):
        assert main(["proofread", str(path), "--run", str(demo), *more]) in (0, 1)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", capsys.readouterr().out)


@pytest.mark.parametrize("form", ["markdown", "html", "latex", "text"])
def test_long_and_deep_texts_are_read_in_linear_time(runs, form):
    pieces = (
        "<", "`", "[", "<!--", "alder ", "alder, ", "cedar beats ", "a ", "* ", "<pre>", ". ", "| ", "> ", "{",
        "\\begin{tabular}",
    )  # fmt: skip
    started = time.process_time()
    for piece in pieces:
        read(piece * (20_000 // len(piece)), runs["demo"], form)
        read("Cedar beats alder. " + piece * (900 // len(piece)), runs["demo"], form)
    assert time.process_time() - started < 4
    (one,), _ = read("cedar beats alder " * 100, runs["demo"], form)
    assert one.finding.mark == "?"
    assert "1,799 characters is not read" in one.finding.why


# --- for other tools --------------------------------------------------------------------------------------------------


def test_the_hook_and_the_skill_are_commands_of_ours_that_run(tmp_path, monkeypatch, ran, capsys):
    known = {name for places in COMMANDS.values() for name in places}
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, command = hook["entry"].split()[:2]
    assert (hook["id"], program, command in known) == ("assaymark-proofread", "assaymark", True)
    assert re.search(hook["files"], "docs/page.md")
    text = ran("skill")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("Ash writes long texts.\n")
    made = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "how-to" / "gate-a-release.md").read_text(), re.S)
    exec(compile(made[1], "<page>", "exec"), {})
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    assert {line.split()[1] for line in lines} == {"check", "gate", "proofread"}
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line
    assert set(re.findall(r"assaymark ([a-z]+)", text)) <= known | {"reads"}
    capsys.readouterr()
    for name in ("check", "gate", "proofread"):
        main([name, "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert set(re.findall(r"`(--[a-z-]+)", text)) - options == set()
