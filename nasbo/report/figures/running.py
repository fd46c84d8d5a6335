"""A study comes in; figures of how it ran go out: workers over time, endings, suggestion cost."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

from nasbo.history import Round, Trial
from nasbo.report.axes import Frame, Scale, is_finite, limits, number_text
from nasbo.report.drawing import Box, Dot, Drawing, Shape, Words, legend, legend_height
from nasbo.report.progress import duration
from nasbo.report.study import Figure, NoDataError, Study, key_of

WIDTH, HEIGHT = 560.0, 320.0
MAX_LANES = 64


@dataclass(frozen=True)
class Stay:
    """A trial on a slot, in seconds since the first trial started."""

    trial: Trial
    slot: int
    start: float
    end: float


def stays(trials: list[Trial], now: float) -> list[Stay]:
    """Put trials on as few slots as they need, the first free one each; running ones end now.

    A slot stands for a worker: which process ran a trial is not what matters here, but when there
    was one that did nothing.
    """
    known = sorted((t for t in trials if t.started_at), key=lambda t: (t.started_at or 0.0, t.id))
    if not known:
        return []
    origin = known[0].started_at or 0.0
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    placed = []
    for trial in known:
        start = (trial.started_at or 0.0) - origin
        end = max(start, (trial.ended_at or now) - origin)
        while busy and busy[0][0] <= start + 0.05:
            heapq.heappush(free, heapq.heappop(busy)[1])
        slot = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, slot))
        placed.append(Stay(trial, slot, start, end))
    return placed


def busy_share(placed: list[Stay]) -> float:
    """Part of the time of all slots in which a trial ran."""
    n_slots = max((stay.slot for stay in placed), default=-1) + 1
    span = max((stay.end for stay in placed), default=0.0)
    worked = sum(stay.end - stay.start for stay in placed)
    return min(worked / (span * n_slots), 1.0) if span > 0 and n_slots else 0.0


def last_time(study: Study) -> float:
    """When the last thing happened that the history tells of."""
    trials = study.history.trials
    times = [t for trial in trials for t in (trial.started_at, trial.ended_at) if t]
    return max(times, default=0.0)


def last_end(study: Study) -> float:
    """How long after the first start the last trial ended, in seconds."""
    return max((stay.end for stay in stays(study.history.ran, last_time(study))), default=0.0)


def draw_timeline(study: Study) -> Figure:
    """Which slot ran which trial when."""
    placed = stays(study.history.ran, last_time(study))
    if not placed or max(stay.end for stay in placed) <= 0:
        raise NoDataError("no trial has run for a measurable time")
    n_slots = max(stay.slot for stay in placed) + 1
    lane = max(6.0, min(26.0, 420.0 / n_slots))
    n_drawn = min(n_slots, MAX_LANES)
    width = 1180.0
    top = 26.0 + legend_height(study.group_legend(), width - 80)
    bottom = top + lane * n_drawn
    x = Scale(0, max(map(last_end, study.together)) / 60, 60, width - 20)
    drawing = Drawing(width, bottom + 52)
    y = Scale(0, 1, bottom, top)
    drawing.extend(Frame(x, y, "minutes since the first trial started").shapes(has_y_ticks=False))
    drawing.extend(_lanes(study, placed, x, top, lane))
    drawing.extend(legend(study.group_legend(), 60, 16, width - 80))
    share = busy_share(placed)
    caption = (
        "A row is a slot for one trial at a time; where it is grey, it waited for a round to end "
        f"or for the next to be decided. Of the slots' time {share:.0%} was spent training, in all "
        f"{duration(last_end(study))} on {n_slots} slots."
    )
    return Figure(
        "timeline", "Workers", caption + study.thinned + study.grouped, drawing, is_wide=True
    )


def _lanes(study: Study, placed: list[Stay], x: Scale, top: float, lane: float) -> list[Shape]:
    shapes: list[Shape] = []
    length = x(max(stay.end for stay in placed) / 60) - x.start
    for slot in range(min(max(stay.slot for stay in placed) + 1, MAX_LANES)):
        level = top + lane * slot
        shapes.append(Box(x.start, level + 1, length, lane - 2, "grid", 0.6))
        if lane >= 12:
            shapes.append(Words(x.start - 8, level + lane / 2 + 4, str(slot), 11, "muted", "end"))
    for stay in placed:
        if stay.slot < MAX_LANES and stay.trial.id in study.drawn:
            words = f"{study.words(stay.trial)}\n{duration(stay.end - stay.start)}"
            left, level = x(stay.start / 60), top + lane * stay.slot
            size = max(x(stay.end / 60) - left - 0.5, 0.8), lane - 4
            opacity = 0.9 if stay.trial.state == "finished" else 0.4
            key = key_of(stay.trial)
            color = study.color(stay.trial)
            shapes.append(Box(left, level + 2, *size, color, opacity, 2, words, key))
    return shapes


def draw_endings(study: Study) -> Figure:
    """How trials ended, by cause, and how often they were begun again."""
    ended = [trial for trial in study.ended if trial.source != "observed"]
    if not ended:
        raise NoDataError("no trial has ended so far")
    bars = _endings(study)
    most = max(n for one in study.together for _, n, _ in _endings(one))
    x = Scale(0, most or 1, 160, WIDTH - 60)
    drawing = Drawing(WIDTH, 30.0 + 30 * len(bars))
    for place, (name, n, color) in enumerate(bars):
        level = 16.0 + 30 * place
        drawing.add(Words(x.start - 10, level + 15, name, anchor="end"))
        drawing.add(Box(x.start, level, x(n) - x.start, 20, color, 0.9, 2, f"{name}: {n}"))
        drawing.add(Words(x(n) + 8, level + 15, f"{n:,}", color="ink"))
    return Figure("failures", "Endings by cause", _endings_caption(ended), drawing)


def _endings(study: Study) -> list[tuple[str, int, str]]:
    """Bars: how trials ended or were begun again, how often, and a colour."""
    ended = (trial for trial in study.ended if trial.source != "observed")
    counts = Counter(trial.cause or "finished" for trial in ended)
    bars = [("finished", counts.pop("finished", 0), "c1")]
    bars += [(cause, n, "c6") for cause, n in counts.most_common()]
    retries = study.history.retry_counts().most_common()
    return bars + [(f"begun again: {cause}", n, "c3") for cause, n in retries]


def _endings_caption(ended: list[Trial]) -> str:
    messages = Counter(t.message for t in ended if t.state == "failed" and t.message)
    if not any(trial.state == "failed" for trial in ended):
        return "No trial failed."
    common = f" The most common message: {messages.most_common(1)[0][0][:160]}" if messages else ""
    return "Each config counts once, however often it was begun again." + common


def _decisions(study: Study) -> list[tuple[int, float, Round]]:
    """Results at hand, seconds that it took, and the round, of each decision by a model."""
    n_first: dict[int, int] = {}
    for trial in study.history.trials:
        n_first.setdefault(trial.round, trial.id)
    decided = {t.round for t in study.history.trials if t.source in ("model", "probe", "fallback")}
    rounds = [r for r in study.history.rounds if r.number in decided and is_finite(r.seconds)]
    return [(n_first[r.number] - len(r.unseen), r.seconds, r) for r in rounds]


def draw_suggestion_cost(study: Study) -> Figure:
    """Seconds that each round's decision took, over the results at hand."""
    points = _decisions(study)
    if not points:
        raise NoDataError("no round beyond the initial design so far")
    every = [point for one in study.together for point in _decisions(one)]
    told = ((t.round, t.info.get("fit_s")) for t in study.history.trials)
    fits = {number: seconds for number, seconds in told if is_finite(seconds)}
    x = Scale(*limits([n for n, _, _ in every]), 64, WIDTH - 16)
    y = Scale(0, limits([0, *(seconds for _, seconds, _ in every)])[1], HEIGHT - 56, 56)
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.extend(Frame(x, y, "results at hand", "seconds").shapes())
    for n, seconds, one in points:
        words = f"round {one.number}: {one.size} configs in {number_text(seconds)} s"
        drawing.add(Dot(x(n), y(seconds), 4, "c1", 0.85, words))
        if one.number in fits:
            words = f"round {one.number}: fit {number_text(fits[one.number])} s"
            drawing.add(Dot(x(n), y(fits[one.number]), 3, "c3", 0.85, words))
    entries = [("whole decision", "c1")] + ([("fit of the surrogate", "c3")] if fits else [])
    drawing.extend(legend(entries, 64, 16, WIDTH - 80))
    total = sum(seconds for _, seconds, _ in points)
    caption = f"{duration(total)} in all for {len(points)} decisions."
    return Figure("suggestion-cost", "What suggestions cost", caption, drawing)
