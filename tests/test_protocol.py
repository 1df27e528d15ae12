from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assaymark import workflow
from assaymark.benchmark import parse_plan
from assaymark.errors import InputError
from assaymark.importers.aitrader import TRACKS
from assaymark.plan import toml_text, toml_value
from assaymark.protocol import parse_study, plan_hash
from assaymark.workflow import study_toml, tracks

MINIMAL = '\nname = "x"\nseed = 7\n[[judges]]\nname = "a"\nmodel = "reference/auditor"\nfamily = "fa"\n'


def test_the_defaults_are_the_sources():
    study = parse_study(MINIMAL)
    assert (study.gates.publish, study.gates.halt, study.families) == (0.4, 0.2, ("fa",))
    assert (study.stability.rho, study.gates.repetition_stability, study.inference.alpha) == (0.9, 0.90, 0.05)


TWICE = 'name = "x"\n{0}\nname = "a"\n{1}\nname = "b"\n'
ONE_TABLE = r"not TOML: line 4: judges comes twice; of a list, write \[\[judges\]\] in place of \[judges\] each time"


WRONG = [
    ("gates.publsh = 0.5\n" + MINIMAL, "gates.publsh"), ("gates.publish = nan\n" + MINIMAL, "gates.publish"),
    ("gates.publish = 0.1\n" + MINIMAL, "halt must not exceed publish"),
    ("inference.alpha = 0.0\n" + MINIMAL, "inference.alpha"), (MINIMAL.replace("seed = 7", "seed = -1"), "seed"),
    ("nonsense = true\n" + MINIMAL, "nonsense"), ("rubric.weights.a = -1.0\n" + MINIMAL, "rubric.weights.a"),
    (MINIMAL + '[[judges]]\nname = "a"\nmodel = "reference/reader"\nfamily = "fb"\n', "a unique name"),
    (MINIMAL.replace('name = "a"', 'name = "aggregate"'), "not available"),
    (MINIMAL + "[human]\npass_mark = 4\n", "pass_mark: unknown key"), ("name = ", "not TOML: Invalid value"),
    # Beside the second header, not the first, because a reader of TOML takes no offence before.
    (TWICE.format("[judges]", "[[judges]]"), ONE_TABLE), (TWICE.format("[[judges]]", "[judges]"), ONE_TABLE),
    (TWICE.format("[judges]", "[judges]"), ONE_TABLE), ("seed = " + "9" * 5000, "a number with too many digits"),
    ('name = "x"\nseed = 1\nseed = 2\n', r"not TOML: line 3: seed comes twice$"),
]  # fmt: skip


def test_what_is_wrong_with_a_study_file_is_named_and_all_problems_at_once():
    for text, told in WRONG:
        with pytest.raises(InputError, match=rf"(?s)^s\.toml: .*{told}"):
            parse_study(text, source="s.toml")
    with pytest.raises(InputError) as caught:
        parse_study('name = "x"\nseed = "7"\n[gates]\npublsh = 0.5\n[[judges]]\nname = "a"\ntrials = 0\n')
    assert len(caught.value.problems) == 4  # seed, publsh, trials, and two missing fields of the judge


def test_equal_plans_have_equal_hashes_and_changed_ones_do_not():
    texts, tables = {"rubric": "r"}, {"decisions": "d"}
    base = plan_hash(parse_study(MINIMAL), texts, tables)
    # How calls are made is no part of the plan, and grades of people may come after the lock.
    for same in ("# a comment\n" + MINIMAL.replace("7", "0x7"), "engine.concurrency = 3\n" + MINIMAL,
                 MINIMAL + '[human]\ngrades = "grades.csv"\n', f'claims.length = ["log2"]\n{MINIMAL}'):  # fmt: skip
        assert base == plan_hash(parse_study(same), texts, tables)
    for other in (MINIMAL.replace("7", "8"), MINIMAL + "[human]\nsample = 41\n"):
        assert base != plan_hash(parse_study(other), texts, tables)
    assert base != plan_hash(parse_study(MINIMAL), {"rubric": "r "}, tables)
    assert base != plan_hash(parse_study(MINIMAL), texts, {"decisions": "e"})
    chosen = (parse_study(f"claims.length = {one}\n{MINIMAL}") for one in ('["digits", "log2"]', '["log2", "digits"]'))
    assert len({plan_hash(one, {}) for one in chosen}) == 1


SEASON = """
name = "spring"
prompt = "Grow the book."
calendar = { first = 2024-03-01, last = 2024-05-31 }
agents = [{ name = "one", family = "reference", model = "reference/momentum" }]
"""
BENCHMARK = 'models = [{ name = "one", family = "maker", model = "reference/portbench-literal" }]\n'
RECORDS = 'name = "log"\n[market]\nsource = "records"\nformat = "aitrader"\n'
READERS = ((parse_study, MINIMAL), (tracks.parse_season, SEASON), (parse_plan, BENCHMARK))


def test_a_file_of_version_1_is_refused_in_one_line_and_one_without_a_version_is_of_version_2():
    for read, text in (*READERS, (tracks.read_recorded, RECORDS)):
        with pytest.raises(InputError) as caught:
            read('version = "1"\n' + text, source="plan.toml")
        assert str(caught.value) == 'plan.toml: version: "1" is read by assaymark 0.1; write version = "2"'
    for read, text in READERS:
        assert read(text, source="plan.toml").version == "2"
        with pytest.raises(InputError, match="version: must be '2'"):
            read('version = "3"\n' + text, source="plan.toml")


def test_a_file_of_version_1_is_told_what_took_the_place_of_its_fields():
    old = 'version = "1"\ninference = { gating_test = "auto", share_alpha = true }\nclaims = { rankings = true }\n'
    with pytest.raises(InputError) as caught:
        parse_study(old + MINIMAL, source="s.toml")
    assert len(caught.value.problems) == 1
    for word in ("inference.test", "inference.aggregate_share", "claims.pairs", "assaymark 0.1"):
        assert word in str(caught.value)
    for field, instead in (
        ('inference.gating_test = "auto"', 'inference.gating_test: was replaced by inference.test = "moderated-t"'),
        ("inference.share_alpha = true", "inference.share_alpha: was replaced by inference.aggregate_share"),
        ("claims.rankings = false", "claims.rankings: was replaced by tiers and rank intervals"),
    ):
        for read, text in READERS:
            with pytest.raises(InputError) as caught:
                read(f"{field}\n{text}", source="plan.toml")
            assert [str(one) for one in caught.value.problems if str(one).startswith(instead)]


def test_clusters_with_dates_and_periods_of_a_season_follow_each_other_unless_the_plan_says_otherwise():
    for clusters, order in (
        (["2026-01-05", "2026-01-12"], "consecutive"), (["2026-W01", "2026-W02"], "consecutive"),
        (["2026-01", "2026-02"], "consecutive"), (["2026-Q1", "2026-Q2"], "consecutive"),
        (["covid-2020/2020-03-31", "normal/2021-03-31"], "consecutive"), (["liquidity", "recent"], "exchangeable"),
        (["china-2015", "covid-2020"], "exchangeable"), (["2026-W01", "other"], "exchangeable"),
        (["item-12026-01", "item-12026-02"], "exchangeable"), ([], "exchangeable"),
    ):  # fmt: skip
        assert parse_study(MINIMAL).inference.order_of(clusters) == order
        for stated in ("exchangeable", "consecutive"):
            study = parse_study(f'inference.cluster_order = "{stated}"\n{MINIMAL}')
            assert study.inference.order_of(clusters) == stated
    assert tracks.parse_season(SEASON).cluster_order == "consecutive"
    assert tracks.parse_season('inference.cluster_order = "exchangeable"\n' + SEASON).cluster_order == "exchangeable"


def test_what_a_headline_is_held_against():
    for chosen, names in (
        ('"log2"', ("log2",)), ('["log2"]', ("log2",)), ('"off"', ()), ('["hedges", "log2"]', ("log2", "hedges")),
        ('["lists", "digits", "hedges"]', ("digits", "lists", "hedges")),
    ):  # fmt: skip
        assert parse_study(f"claims.length = {chosen}\n{MINIMAL}").claims.covariates == names
    for chosen in ('"words"', "[]", '["log2", "log2"]', '["log2", "digits", "lists", "hedges"]', "1"):
        with pytest.raises(InputError, match="a list of one to 3 of log2, digits, lists, hedges"):
            parse_study(f"claims.length = {chosen}\n{MINIMAL}")


def test_the_pass_mark_follows_the_scale_and_is_called_pass_in_the_file_and_back():
    for low, high, mark in ((1, 5, 3.5), (0, 100, 62.5), (1, 10, 6.625)):
        assert parse_study(MINIMAL).human.passed_from(low, high) == mark
    study = parse_study(MINIMAL + "[human]\npass = 4\nsample = 30\n")
    assert (study.human.passed_from(), study.human.sample) == (4.0, 30)
    assert parse_study(study_toml(study)) == study


def test_a_season_has_one_error_rate_in_two_tables():
    one, other = "judging.alpha = 0.01\n", "inference.alpha = 0.01\n"
    for text in (one, other, one + other):
        season = tracks.parse_season(text + SEASON)
        assert season.judging.alpha == season.inference.alpha == 0.01
    with pytest.raises(InputError, match="are one error rate"):
        tracks.parse_season(one + "inference.alpha = 0.02\n" + SEASON)
    given = tracks.parse_season(SEASON)
    with pytest.raises(ValueError, match="are one error rate"):
        tracks.Season.model_validate({**dict(given), "inference": given.inference.model_copy(update={"alpha": 0.2})})


def test_a_benchmark_tests_at_what_its_intervals_leave():
    assert parse_plan(BENCHMARK).inference.alpha == 0.05
    assert parse_plan("level = 0.9\n" + BENCHMARK).inference.alpha == 0.1
    assert parse_plan("inference.alpha = 0.01\n" + BENCHMARK).level == 0.99
    assert parse_plan("level = 0.9\ninference.margin = 0.1\n" + BENCHMARK).inference.alpha == 0.1
    with pytest.raises(InputError, match=r"inference.alpha is 1 - level"):
        parse_plan("level = 0.9\ninference.alpha = 0.05\n" + BENCHMARK)


def test_a_wrong_table_is_a_problem_and_no_defect():
    for read, rest, ones in (
        (tracks.parse_season, SEASON,
         ("inference = 3", 'judging = "x"', "inference.alpha = 0.7", "judging.alpha = []")),
        (parse_plan, BENCHMARK, ("inference = 3", "level = 2.0", 'level = "x"', 'inference.alpha = "x"')),
    ):  # fmt: skip
        for one in ones:
            with pytest.raises(InputError):
                read(f"{one}\n{rest}")


# --- what is written as TOML is read back as it was -------------------------------------------------------------------


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
SCALARS = st.one_of(TEXTS, NUMBERS, st.dates(), st.times(), st.datetimes())
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3))
TABLES = st.recursive(
    st.dictionaries(TEXTS, VALUES, max_size=3),
    lambda inner: st.dictionaries(TEXTS, st.one_of(VALUES, inner, st.lists(inner, min_size=1, max_size=2)), max_size=3),
    max_leaves=6,
)


@given(st.one_of(VALUES, TABLES))
def test_a_value_on_one_line(value):
    text = toml_value(value)
    assert text.isprintable()
    assert tomllib.loads(f"x = {text}") == {"x": value}


@given(TABLES)
def test_a_document(table):
    assert tomllib.loads(toml_text(table)) == _without_empty(table)


def test_characters_that_are_hard_to_write():
    for char in ('"', "\\", "\x00", "\n", "\x7f", "\u2028", "\uffff", "\U000e0041", "\U0010ffff", "é"):
        assert tomllib.loads(f"x = {toml_value(f'a{char}1')}") == {"x": f"a{char}1"}
    with pytest.raises(tomllib.TOMLDecodeError):  # half of a character is refused by whoever reads it
        tomllib.loads(f"x = {toml_value(chr(0xD800))}")


def _without_empty(value):
    """A table without the empty tables inside it, which a document leaves out."""
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item != {}}
    return value


# --- the study files that ship with the project -----------------------------------------------------------------------


# The demo's study is part of the package, so that it runs where only the package is installed.
FOLDERS = (Path(workflow.__file__).parent, Path(__file__).resolve().parents[1] / "studies")
SEASONS = {
    path.stem: path for path in FOLDERS[1].glob("*.toml") if tracks.is_recorded(path.read_text(), source=path.name)
}
NOT_STUDIES = {"portbench", *SEASONS}  # the plan of a benchmark; tests/benchmark/test_benchmark_from_file.py reads it
FILES = {path.stem: path for folder in FOLDERS for path in folder.glob("*.toml") if path.stem not in NOT_STUDIES}


def study(name: str):
    return parse_study(FILES[name].read_text(encoding="utf-8"), source=f"{name}.toml")


def test_study_files_are_valid_and_named_after_themselves_and_reference_panels_have_three_families():
    for name in FILES:
        assert study(name).name == name
        assert study(name).title
    for name in ("capitalbench", "demo"):
        panel = study(name).judges
        assert {judge.model for judge in panel} == {"reference/auditor", "reference/reader", "reference/allocator"}
        assert len({judge.family for judge in panel}) == 3


def test_the_demo_is_the_shipped_study_but_for_its_name_and_its_sizes():
    demo, whole = (study(name).model_dump(mode="json") for name in ("demo", "valueblind"))
    whole |= {"name": "demo", "title": "Four reference agents on an invented market"}
    sizes = {"substrate": {"cycles": 8}, "controls": {"cell_a": 10, "cell_b": 10}, "anchor_probe": {"sample": 40}}
    assert demo == whole | {name: whole[name] | size for name, size in sizes.items()}


def test_the_two_studies_of_records_and_of_cycles_have_the_same_gates():
    assert study("valueblind").gates == study("capitalbench").gates
    # An import of a few weeks orders nobody, and is measured all the same; conflicting clocks are left out.
    weekly = study("capitalbench").inference
    assert study("valueblind").inference == weekly.model_copy(update={"allow_hopeless": False})
    assert study("capitalbench").records.exclude_flags == ("clock-conflict",)


def test_there_is_a_season_for_every_track_of_the_log_which_is_valid_and_named_after_itself():
    assert set(SEASONS) == {"capitalbench-season", *(f"aitrader-{track.name}" for track in TRACKS.values())}
    for name, path in SEASONS.items():
        file = tracks.read_recorded(path.read_text(encoding="utf-8"), source=f"{name}.toml")
        assert (file.problems, file.raw["name"]) == ((), name)
        assert name in (f"aitrader-{file.market.track}", f"{file.market.format}-season")
        assert len({judge.family for judge in file.panel}) == len(file.panel) == 3
        assert all(judge.model.startswith("reference/season-") for judge in file.panel)
