"""The records of a benchmark: a page for every episode, every answer to a question, and links to their calls.

Replies of models are hostile input: they pass `block`, are cut to a length, and are escaped by the template."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from assaymark.benchmark import scores as formulas
from assaymark.benchmark.market import MarketState
from assaymark.benchmark.plan import CLASS_NAMES, profile_named
from assaymark.benchmark.questions.answers import EXCERPT, FORMULA, JUDGMENT, ScoredReply
from assaymark.benchmark.questions.published import answer_text
from assaymark.benchmark.scores import STAGES, CallExcerpt, DateResult, EpisodeResult, Stage, StageState
from assaymark.portfolio.optimisers import Floats
from assaymark.records import Measurement, content_id, grouped
from assaymark.report import blocks as b
from assaymark.report.page import Frame, file_stems
from assaymark.report.portbench import index as bench
from assaymark.report.portbench.index import QUESTIONS, BenchmarkIndex, BenchRun
from assaymark.report.records.answers import Pages, answer_parts, answer_row, each_answer_page
from assaymark.report.text import block, counted, estimate, known, moment, signed
from assaymark.text import clean, count, number, span

ModelAnswer = tuple[str, ScoredReply]
"""The name of a model, and one of its answers."""


def _labels(scored: ScoredReply) -> dict[str, str]:
    """The labels that measurements of questions may have, for one answer."""
    template = scored.question.template
    kind = "formula" if template in FORMULA else "judgment" if template in JUDGMENT else ""
    return {"template": template, "condition": scored.condition, "regime": scored.question.regime, "kind": kind}


@dataclass(frozen=True, slots=True)
class BenchProvenance:
    """The addresses of a benchmark's answers and episodes; ``episodes`` have the address of each date."""

    asked: Sequence[ModelAnswer]
    pages: Mapping[str, Pages]
    places: Mapping[tuple[str, str, str], str]
    episodes: Sequence[tuple[EpisodeResult, Sequence[str]]]

    @classmethod
    def of(
        cls, answers: Mapping[str, Sequence[ScoredReply]], episodes: Sequence[tuple[EpisodeResult, Sequence[str]]]
    ) -> BenchProvenance:
        """Plan the pages of answers."""
        by_model = {
            model: sorted(items, key=lambda scored: (scored.question.template, scored.condition, scored.question.id))
            for model, items in sorted(answers.items())
            if items
        }
        pages: dict[str, Pages] = {}
        places: dict[tuple[str, str, str], str] = {}
        stems = file_stems("answers", [(model,) for model in by_model])
        for (model, items), stem in zip(by_model.items(), stems, strict=True):
            rows = []
            for scored in items:
                labels, usable = _labels(scored), scored.score.state == "ok"
                about = f"{labels['template']}, {labels['kind']}, {clean(labels['regime'], 40)}"
                score = f"{number(scored.score.score, 3)}{'' if usable else f', {clean(scored.score.state, 200)}'}"
                cells = (clean(scored.question.id, 80), about, f"{clean(scored.condition, 24)} condition", score)
                anchor = f"q{content_id([model, scored.question.id, scored.condition])[:12]}"
                rows.append(answer_row(anchor, labels["template"], cells, usable, scored.key))
            pages[model] = answer_parts(stem, rows)
            anchors = {row.id: f"{path}#{row.id}" for path, part in pages[model] for row, _ in part}
            for scored, (row, _) in zip(items, rows, strict=True):
                places[model, scored.condition, scored.question.id] = anchors[row.id]
        return cls([(model, scored) for model, items in by_model.items() for scored in items], pages, places, episodes)

    def uses(self) -> dict[str, list[b.Linked]]:
        """Links to the records of each call, by its key: stages of episodes, then answers."""
        links: defaultdict[str, list[b.Linked]] = defaultdict(list)
        for episode, dates in self.episodes:
            episode_name = f"{episode.model}, {episode.profile}, {episode.window}"
            place = dict(zip((date.day for date in episode.dates), dates, strict=True))
            for (day, stage), call in episode.excerpts.items():
                links[call.key].append(b.Linked(f"{episode_name}: {stage} on {day}", place[day]))
        for model, scored in self.asked:
            words = f"{model} on {scored.question.id}, {scored.condition}"
            links[scored.key].append(b.Linked(words, self.places[model, scored.condition, scored.question.id]))
        return links

    def lineage(self, item: Measurement) -> tuple[b.Linked, ...]:
        """Links to the records that a measurement of a benchmark was computed from."""
        model = item.labels.get("model", "")
        if item.name == "bench.question":
            wanted = {key: value for key, value in item.labels.items() if key != "model"}
            if " less " in wanted.get("condition", ""):
                del wanted["condition"]
            items = [scored for name, scored in self.asked if name == model]
            answers = [scored for scored in items if wanted.items() <= _labels(scored).items()]
            if not answers:
                return ()
            first, pages, words = answers[0].question.template, self.pages[model], counted(len(answers), "answer")
            if len(answers) == len(items):
                return (b.Linked(words, pages[0][0]),)
            if len(pages) == 1 and answers == [scored for scored in items if scored.question.template == first]:
                return (b.Linked(words, f"{pages[0][0]}#{b.filter_id(first)}"),)
            place = self.places[model, answers[0].condition, answers[0].question.id]
            return (b.Linked(f"{count(len(answers))} among the answers", place),)
        wanted = {key: item.labels[key] for key in ("model", "profile", "window") if key in item.labels}
        episodes = [
            dates
            for episode, dates in self.episodes
            if all(value in ("all", getattr(episode, key)) for key, value in wanted.items())
        ]
        if not episodes or "model" not in item.labels:
            return ()
        if len(episodes) == 1 and episodes[0]:
            return (b.Linked("1 episode", episodes[0][0].partition("#")[0]),)
        if len(episodes) == sum(episode.model == model for episode, _ in self.episodes):
            return (b.Linked(counted(len(episodes), "episode"), f"episodes.html#{b.filter_id(clean(model, 60))}"),)
        return (b.Linked(f"{count(len(episodes))} among the episodes", "episodes.html"),)

    def answer_pages(self, frame: Frame, calls: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The pages of answers, one at a time, as path and HTML."""
        lead = (
            "Every question with its score and the state of its reply. Rows are sorted by template. Means: ",
            b.Linked("measurements", "measurements.html"),
        )
        columns = ("Question", "What it is", "Asked", "Score", "Call")
        yield from each_answer_page(lead, columns, "questions", self.pages, frame, calls)


def _talk(asked: str, reply: str) -> b.Columns:
    """A prompt next to its reply."""
    texts = (("Prompt", asked), ("Reply", reply))
    return b.beside(*(b.Group(name, (b.Passage(text or "(empty)", style=""),)) for name, text in texts), style="talk")


_STATES: Final[Mapping[str, str]] = {
    "ok": "", "partial": "read in part", "invalid": "could not be read", "refused": "refused", "truncated": "cut off",
}  # fmt: skip
_TEXT, _ROWS, _CELL, _QUESTION = 4_000, 8, 120, 6_000

StageDisplay = tuple[tuple[str, ...], Sequence[tuple[str, ...]], list[str]]
"""The display of a stage: column heads, rows, and the arithmetic in words."""


def date_section(run: BenchRun, result: EpisodeResult, at: int, calls: Mapping[str, str], opened: bool) -> b.Section:
    """One decision date of an episode: its scores, and every stage with prompt, reply, truth and arithmetic."""
    day, words, groups = result.dates[at], list[str](), list[b.Block]()
    window = next(window for window in run.windows if window.window == result.window)
    for stage, (columns, rows, lines) in _stage_displays(run, result.profile, day, window.known(day.day)).items():
        state, blocks = day.answers.states.get(stage, StageState("ok")), list[b.Block]()
        if note := _STATES[state.state]:
            words.append(f"{stage} {note}")
            reason = clean(state.reason, 400)
            blocks.append(b.Prose(b.bold(f"{note[:1].upper()}{note[1:]}{f': {reason}' if reason else ''}"), "state"))
        if (call := result.excerpts.get((day.day, stage), CallExcerpt())).key:
            blocks.append(_talk(block(call.prompt, _TEXT), block(call.reply, _TEXT)))
        else:
            blocks.append(b.Prose("Computed from the weights; the model is not asked.", "cap"))
        if calls.get(call.key):
            blocks.append(b.Prose(("Excerpts. " if call.cut else "", b.Linked("Whole call", calls[call.key]))))
        elif call.cut:
            blocks.append(b.Prose(f"Excerpts. The whole call is in the call log under the key {clean(call.key, 80)}."))
        cells = tuple(tuple(clean(cell, _CELL) for cell in row) for row in rows)
        blocks += [b.Table(columns, cells, summary="", style="tall")] if cells else []
        blocks.append(b.Items(tuple(clean(line, 400) for line in lines), "sum"))
        head = (f"{stage}: {bench.STAGES[stage][1]}", b.small(f"Score {number(day.scores[stage], 3)}"))
        groups.append(b.Group(head, tuple(blocks), style="stage"))
    scores = ", ".join(f"{stage} {number(day.scores[stage])}" for stage in STAGES)
    lead: list[b.Inline] = [f"CEPS {number(day.ceps, 3)}, alignment {number(day.pas, 3)}. {scores}."]
    lead += [" ", b.bold("; ".join(words))] if words else []
    group = b.Group("The stages of this date", tuple(groups), folded="open" if opened else "closed")
    return b.Section(f"d{at + 1}", moment(str(day.day)), tuple(lead), (group,))


def _stage_displays(run: BenchRun, profile: str, date: DateResult, known: MarketState) -> dict[Stage, StageDisplay]:
    """The stages of one date: the largest stated and true values, and the arithmetic of each score."""
    part, tickers, scores, plan, alpha = known.part, known.tickers, date.scores, run.plan, run.plan.pipeline.alpha
    stated, true = date.answers.views[part], date.truths.views[part]
    error = np.abs(stated - true)
    mean, over = float(error.mean()), f"is the mean error over {part.size} instruments"
    views = [(tickers[at], f"{stated[at]:+.2f}", f"{true[at]:+.2f}", f"{error[at]:.2f}") for at in _largest(error)]
    pairs = [(date.answers.signals[at], date.truths.signals[at]) for at in part.tolist()]
    counts, words = Counter(pairs), sorted({word for pair in pairs for word in pair})
    right = sum(signal == truth for signal, truth in pairs)
    weights, best = date.executed[part], date.truths.weights[part]
    largest = _largest(np.maximum(weights, best))
    accuracy = formulas.weight_accuracy(weights, best, plan.convention)
    intra = formulas.intra_class_score(weights, known.scored_by, known.classes)
    inter = formulas.inter_class_score(weights, known.scored_by, known.classes, plan.convention)
    members = np.array(known.classes)
    shares = {name: float(weights[members == name].sum()) for name in CLASS_NAMES}
    by_class = [f"{name.replace('_', ' ')} {100 * share:.1f} %" for name, share in shares.items() if share > 0]
    turnover, oracle = date.turnover, date.truths.turnover
    traded = f"1 − |{turnover:.3f} − {oracle:.3f}| / {max(turnover, oracle):.3f} = {scores['S4']:.3f}"
    risk, truth, limits = date.risk, date.truths.risk, profile_named(profile)
    risks = [
        ("value at risk, 95 %", _percent(risk.var), _percent(truth.var)),
        ("maximum drawdown of the lookback", _percent(risk.drawdown), _percent(truth.drawdown)),
        ("largest drift of a weight", _percent(risk.drift), _percent(truth.drift)),
        ("alarm", "yes" if risk.rebalance else "no", "yes" if truth.rebalance else "no"),
    ]
    same = int(risk.rebalance == truth.rebalance)
    return {
        "S1": (
            ("instrument", "said", "true", "error"), views,
            [f"1 − {mean:.3f} / 2 = {scores['S1']:.3f}; {mean:.3f} {over}"],
        ),
        "S2": (
            ("said", *(f"true {word}" for word in words)),
            [(signal, *(str(counts[signal, truth]) for truth in words)) for signal in words],
            [f"{right} of {len(pairs)} right = {scores['S2']:.3f}"],
        ),
        "S3": (
            ("instrument", "held", "oracle"),
            [(tickers[at], f"{100 * weights[at]:.1f} %", f"{100 * best[at]:.1f} %") for at in largest],
            [
                f"accuracy {accuracy:.3f}, within classes {intra:.3f}, between classes {inter:.3f}",
                f"{alpha:g} × {accuracy:.3f} + {1 - alpha:g} × ({intra:.3f} + {inter:.3f}) / 2 = {scores['S3']:.3f}",
                f"the oracle's solver: {date.truths.weights_status}",
                f"held by class: {', '.join(by_class)}",
            ],
        ),
        "S4": (
            (), [],
            [
                f"traded {turnover:.3f} of the portfolio, the oracle {oracle:.3f}",
                traded if max(turnover, oracle) > 0 else "neither traded: 1",
            ],
        ),
        "S5": (
            ("measure", "held", "oracle"), risks,
            [
                f"limits: drift {100 * plan.pipeline.drift_limit:g} %, value at risk {_percent(limits.var_limit)}",
                f"0.5 × {same} (the same alarm) + 0.5 × (1 − mean of two relative errors) = {scores['S5']:.3f}",
                f"alignment with the {profile} profile: {date.pas:.3f}",
            ],
        ),
    }  # fmt: skip


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %".replace("-", "−")


def _largest(values: Floats) -> list[int]:
    """Indices of the largest values, largest first; ties in order."""
    return [int(at) for at in np.argsort(-values, kind="stable")[:_ROWS]]


def episodes_table(index: BenchmarkIndex, paths: Sequence[str]) -> b.Table:
    """A table of episodes, by model, profile and window in the order of the plan."""
    profiles = {profile.name: at for at, profile in enumerate(index.run.profiles)}
    windows = {window.name: at for at, window in enumerate(index.windows)}

    def place(pair: tuple[EpisodeResult, str]) -> tuple[str, int, int, str]:
        result, path = pair
        return result.model, profiles.get(result.profile, len(profiles)), windows.get(result.window, len(windows)), path

    rows, unscored = [], {name for board in bench.pipeline_boards(index.run) for name in board.unscored}
    for item, path in sorted(zip(index.run.results, paths, strict=True), key=place):
        troubled = sum(state.state != "ok" for date in item.dates for state in date.answers.states.values())
        scores = [] if item.model in unscored else [date.ceps for date in item.dates]
        model = clean(item.model, 60)
        cells = (
            b.Linked(model, f"{path}.html"), clean(item.profile, 40), index.window(item.window), count(len(item.dates)),
            span(min(scores), max(scores)) if scores else "no score" if item.dates else "no date",
            count(troubled) if troubled else "none",
        )  # fmt: skip
        rows.append(b.PageRow(cells, key=model))
    columns = ("Episode", "Profile", "Window", "Dates", "CEPS of a date", "Stages not read as asked")
    filters = b.row_filters(sorted(row.key for row in rows))
    return b.Table(columns, tuple(rows), frozenset((3, 4, 5)), "", stacked=True, id="episode-rows", filters=filters,
                   search="episodes")  # fmt: skip


TEMPLATES: Final = {
    "T1": "direction", "T2": "value at risk", "T3": "position size", "T4": "two assets", "T5": "best mix",
    "T6": "rebalance", "T7": "regime",
}  # fmt: skip
DIFFERENCE: Final = "full less restricted"
"""The condition label of the difference between full and restricted questions: the cost of removing context."""

_WORDS: Final = {
    "full": "full condition: the question holds everything that is needed",
    "restricted": "restricted condition: covariances are taken out",
    DIFFERENCE: "full less restricted: what the covariances are worth",
}


def questions_section(index: BenchmarkIndex) -> b.Section:
    """Supported claims on questions versus pipeline, the tables with their notes, and a link to the questions."""
    heading = "What does it know without a portfolio?"
    if "bench.question" not in index.by_name:
        return b.Section("questions", heading, index.missing("qa"))
    items, order = index.by_name["bench.question"], list(_WORDS)
    present = sorted({item.labels["condition"] for item in items})
    conditions = sorted(present, key=lambda name: order.index(name) if name in order else len(order))
    first, *others = (
        [_table(index, f"by-{key}-{at}", condition, key) for at, condition in enumerate(conditions, 1)]
        for key in ("template", "kind", "regime")
    )
    rest = tuple(table for tables in others for table in tables if table is not None)
    more = (b.Group("Formula against judgment, and by market regime", rest, folded="closed"),) if rest else ()
    compared = index.of_kind("dissociation")
    quotes = tuple(bench.bench_quote(index, verdict) for verdict in compared if verdict.publication_level != "no-claim")
    claims = (b.Items(quotes, f"claims {quotes[0].level}"),) if quotes else ()
    some = f"{counted(len(extreme_answers(index)), 'question')} as asked, answered and scored"
    traces = (b.Prose(b.Linked(some, "questions.html")),) if any(index.run.answers.values()) else ()
    # Denominators, methods, unreadable replies, and the comparison with the pipeline.
    notes = list[str]()
    sizes = sorted({item.n for item in items if "template" in item.labels})
    methods = sorted({clean(item.method, 120) for item in items if item.low is not None})
    if sizes:
        each = number(sizes[0], 0) if sizes[0] == sizes[-1] else f"{number(sizes[0], 0)} to {number(sizes[-1], 0)}"
        how = "; ".join(methods).replace("wilson", "Wilson") or "none can be given"
        notes.append(f"{each} question{'s' * (each != '1')} a cell. Intervals: {how}.")
    notes.append(bench.design_note(index, QUESTIONS))
    states = (scored.score.state for answers in index.run.answers.values() for scored in answers)
    notes.append(bench.replies_note(states, "an answer that could not be read scores 0"))
    if not index.has_pipeline:
        notes.append(f"Questions cannot be compared with the pipeline. {index.missing('pipeline')}")
    for verdict in compared:
        if verdict.publication_level == "no-claim":
            reason = " ".join(map(bench.unbroken, verdict.reasons))
            notes.append(f"Not supported: {bench.claim_subject(index, verdict)} {reason}")
    if index.has_pipeline and not compared:
        notes.append("Comparing the rankings of questions and pipeline needs three models or more.")
    lead = (
        "Mean scores on static questions, T1 to T7, each asked in its own call. Models of a tier are in alphabetical "
        "order."
    )
    tables = (table for table in first if table is not None)
    return b.Section("questions", heading, lead, (*claims, *tables, *more, *b.notes(tuple(notes)), *traces))


def _table(index: BenchmarkIndex, name: str, condition: str, key: str) -> b.Group | None:
    """A table for one condition, with columns for values that occur under it; None without any."""
    by = {"template": "template", "kind": "formula or judgment", "regime": "market regime"}[key]
    asked = list(index.all("bench.question", condition=condition))
    values = sorted({item.labels[key] for item in asked if key in item.labels})
    if not values:
        return None
    whole = key == "template" and any(set(item.labels) == {"model", "condition"} for item in asked)
    titled = condition in _WORDS and (key == "template" or condition == DIFFERENCE)
    title = f"By {by}, {_WORDS[condition] if titled else f'{clean(condition, 24)} condition'}"
    board, columns, rows = index.board(QUESTIONS), list[bench.TierHeading | None]([None]), list[b.PageRow]()
    if whole and condition == "full" and board is not None and {*board.models, *board.unscored} == set(index.names):
        columns = [*bench.tier_headings(index, board), *bench.unscored_headings(index, board)]
    for head in columns:
        rows += [] if head is None else [b.PageRow((head.shown,))]
        for model in index.names if head is None else head.members:
            labels, cells = {"model": model, "condition": condition}, []
            for value in values:
                item = index.get("bench.question", **labels, **{key: value})
                cell = bench.stage_cell(index, item)
                if condition == DIFFERENCE and known(item):
                    # A difference is signed and not a share of 1, so it has no tint.
                    cell = replace(cell, share=0.0, value=index.link(item, signed(item.value)))
                cells.append(cell)
            note = "" if head is None else head.ranks.get(model, "")
            item, every = index.get("bench.question", **labels), ""
            if whole:  # a point only if the rank is supported
                pointed = known(item) and item.low is not None and head and head.licensed
                every = index.link(item, estimate(item) if known(item) and pointed else bench.range_words(item))
            model_cell = clean(model, 60), b.small(note) if note else ""
            rows.append(b.PageRow((model_cell, *cells, *((every,) if whole else ()))))
    named = (((f"{clean(value, 24)} "), b.small(TEMPLATES.get(value, ""))) for value in values)
    table = b.Table(
        ("Model", *named, *(("All, interval",) if whole else ())), tuple(rows), summary="",
        style="heat q few" if len(values) < 5 else "heat q", label=title,
        styles=("", *("hc",) * len(values), *("iv",) * whole),
    )  # fmt: skip
    return b.Group(title, (table,), name)


def template_words(name: str) -> str:
    """A template with its subject."""
    name = clean(name, 12)
    return f"{name}, {TEMPLATES[name]}" if name in TEMPLATES else name


def question_cards(index: BenchmarkIndex, calls: Mapping[str, str]) -> Iterator[b.Group]:
    """Questions with prompt, reply and score, by template, condition and model."""

    def place(answer: ModelAnswer) -> tuple[str, ...]:
        model, task = answer
        return task.question.template, task.condition, model, task.question.regime, task.question.prompt(task.condition)

    for model, scored in sorted(extreme_answers(index), key=place):
        question, score = scored.question, scored.score
        about: list[b.Inline] = [f"{clean(model, 60)}, {scored.condition} condition, {clean(question.regime, 24)}"]
        state = score.state if not score.reason else f"{score.state}: {score.reason}"
        about += [] if state == "ok" else [". ", b.bold(f"Reply: {clean(state, 200)}")]
        truth: list[b.Inline] = [b.bold("True: "), block(answer_text(question.answer), 600)]
        truth += [" ", b.Linked("Whole call", calls[scored.key])] if calls.get(scored.key) else []
        asked = _talk(block(question.prompt(scored.condition)[:EXCERPT], _QUESTION), block(scored.reply, _QUESTION))
        yield b.Group(
            (template_words(question.template), b.small(f"Score {number(score.score, 3)}")),
            (b.Prose(tuple(about), "cap"), b.Group("Question and reply", (asked,), folded="closed"),
             b.Prose(tuple(truth), "sum")),
            key=question.template, style="stage", level=2,
        )  # fmt: skip


def extreme_answers(index: BenchmarkIndex) -> list[ModelAnswer]:
    """The worst and the best answered question of each model, template and condition."""
    chosen: list[ModelAnswer] = []
    for model, answers in index.run.answers.items():
        for some in grouped(answers, lambda scored: (scored.question.template, scored.condition)).values():
            ranked = sorted(some, key=lambda scored: (scored.score.score, scored.question.id))
            chosen += [(model, ranked[at]) for at in sorted({0, len(ranked) - 1})]
    return chosen
