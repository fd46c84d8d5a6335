"""Figures of a sweep's execution: workers over time, endings, and time of decisions."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass

from nasbo.history import Round, Run, Trial
from nasbo.report.axes import Frame, Scale, is_finite, limits, number_text
from nasbo.report.drawing import Box, Dot, Drawing, Shape, Words, legend, legend_height
from nasbo.report.progress import covered, duration
from nasbo.report.study import Figure, NoDataError, Study, key_of

WIDTH, HEIGHT = 560.0, 320.0
MAX_LANES = 64


@dataclass(frozen=True)
class Stay:
    """An attempt of a run on a slot, in seconds since the first start.

    ``number`` counts the run's attempts from 1.
    """

    run: Run
    number: int
    slot: int
    start: float
    end: float

    @property
    def is_whole(self) -> bool:
        """Whether the attempt led to the run's result, or to a pause."""
        if self.run.state == "finished" and self.number == len(self.run.attempts):
            return True
        return self.number in paused_attempts(self.run)


def paused_attempts(run: Run) -> set[int]:
    """Numbers of the attempts that ended with a pause, from 1."""
    steps = {pause.step for pause in run.pauses.values()}
    times = [one.time for one in run.measurements if one.step in steps]
    ends = [(n, one.start, one.end) for n, one in enumerate(run.attempts, start=1)]
    return {n for n, a, b in ends if b is not None and any(a <= time <= b for time in times)}


def stays(runs: list[Run], now: float) -> list[Stay]:
    """Assign attempts to as few slots as possible; running ones end now.

    A slot stands for a worker. Which process ran a trial does not matter here,
    only when slots were idle.
    """
    found = [(*span, r.number, r, n) for r in runs for n, span in enumerate(r.spans(now), start=1)]
    found.sort(key=lambda one: (one[0], one[2]))
    origin = first_start(runs)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    placed = []
    for start, end, _, run, number in found:
        while busy and busy[0][0] <= start + 0.05:
            heapq.heappush(free, heapq.heappop(busy)[1])
        slot = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, slot))
        placed.append(Stay(run, number, slot, start - origin, end - origin))
    return placed


def first_start(runs: list[Run]) -> float:
    """Time of the first start of any run."""
    return min((run.attempts[0].start for run in runs if run.attempts), default=0.0)


def busy_share(placed: list[Stay], down_s: float = 0.0) -> float:
    """Share of the slots' total time in which a trial ran.

    Args:
        placed: attempts on their slots.
        down_s: seconds without a driver, which do not count.
    """
    n_slots = max((stay.slot for stay in placed), default=-1) + 1
    span = max((stay.end for stay in placed), default=0.0) - down_s
    worked = sum(stay.end - stay.start for stay in placed)
    return min(worked / (span * n_slots), 1.0) if span > 0 and n_slots else 0.0


def placed_stays(study: Study) -> list[Stay]:
    """All attempts of a sweep on slots; running ones end with the last event of the journal."""
    return stays(study.history.runs, study.history.last_time)


def last_end(study: Study) -> float:
    """Seconds between the first start and the last end."""
    return max((stay.end for stay in placed_stays(study)), default=0.0)


def down_spans(study: Study) -> list[tuple[float, float]]:
    """Times without a driver, in seconds since the first start, up to the last end."""
    origin, end = first_start(study.history.runs), last_end(study)
    gaps = ((max(a - origin, 0.0), min(b - origin, end)) for a, b in study.history.gaps)
    return [(start, stop) for start, stop in gaps if stop > start]


def draw_timeline(study: Study) -> Figure:
    """Trials on slots over time."""
    placed = placed_stays(study)
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
    down_s = covered(down_spans(study))
    caption = (
        "A row is a slot for one trial at a time; where it is grey, it waited for a round to end "
        f"or for the next to be decided. Of the slots' time {busy_share(placed, down_s):.0%} was "
        f"spent training, in all {duration(last_end(study) - down_s)} on {n_slots} slots."
    )
    if down_s:
        caption += (
            f" For {duration(down_s)} the sweep was interrupted: that time is left empty and does "
            "not count; pale bars are attempts that broke off."
        )
    return Figure(
        "timeline", "Workers", caption + study.thinned + study.grouped, drawing, is_wide=True
    )


def _lanes(study: Study, placed: list[Stay], x: Scale, top: float, lane: float) -> list[Shape]:
    shapes: list[Shape] = []
    for slot in range(min(max(stay.slot for stay in placed) + 1, MAX_LANES)):
        level = top + lane * slot
        for start, end in _driven(study, max(stay.end for stay in placed)):
            left = x(start / 60)
            shapes.append(Box(left, level + 1, x(end / 60) - left, lane - 2, "grid", 0.6))
        if lane >= 12:
            shapes.append(Words(x.start - 8, level + lane / 2 + 4, str(slot), 11, "muted", "end"))
    for stay in placed:
        if stay.slot < MAX_LANES and stay.run.trial in study.drawn:
            trial = study.history.trial(stay.run.number)
            words = f"{study.words(trial)}\n{_attempt_words(stay)}"
            left, level = x(stay.start / 60), top + lane * stay.slot
            size = max(x(stay.end / 60) - left - 0.5, 0.8), lane - 4
            opacity = 0.9 if stay.is_whole else 0.4
            key, color = key_of(trial), study.color(trial)
            shapes.append(Box(left, level + 2, *size, color, opacity, 2, words, key))
    return shapes


def _driven(study: Study, end: float) -> list[tuple[float, float]]:
    """The times between interruptions, from the first start to the end."""
    downs = down_spans(study)
    return list(zip([0.0, *(d[1] for d in downs)], [*(d[0] for d in downs), end], strict=True))


def _attempt_words(stay: Stay) -> str:
    n_attempts = len(stay.run.attempts)
    which = f", attempt {stay.number} of {n_attempts}" if n_attempts > 1 else ""
    again = f", repeat {stay.run.number}" if stay.run.is_repeat else ""
    return duration(stay.end - stay.start) + again + which


def draw_endings(study: Study) -> Figure:
    """Number of endings by cause, and of retries."""
    ended = [trial for trial in study.ended if trial.source != "observed"]
    if not ended:
        raise NoDataError("no trial has ended so far")
    bars = _endings(study)
    most = max(n for one in study.together for _, n, _ in _endings(one))
    x = Scale(0, most or 1, 160, WIDTH - 60)
    drawing = Drawing(WIDTH, 30.0 + 30 * len(bars))
    for index, (name, n, color) in enumerate(bars):
        level = 16.0 + 30 * index
        drawing.add(Words(x.start - 10, level + 15, name, anchor="end"))
        drawing.add(Box(x.start, level, x(n) - x.start, 20, color, 0.9, 2, f"{name}: {n}"))
        drawing.add(Words(x(n) + 8, level + 15, f"{n:,}", color="ink"))
    return Figure("failures", "Endings by cause", _endings_caption(ended), drawing)


def _endings(study: Study) -> list[tuple[str, int, str]]:
    """Bars of endings and retries: label, number, colour."""
    ended = (trial for trial in study.ended if trial.source != "observed")
    counts = Counter(trial.cause or "finished" for trial in ended)
    bars = [("finished", counts.pop("finished", 0), "c1")]
    if n_paused := counts.pop("paused", 0):
        bars.append(("paused", n_paused, "muted"))
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
    """Decisions by a model: number of results, seconds, and round."""
    n_first: dict[int, int] = {}
    for trial in study.history.trials:
        n_first.setdefault(trial.round, trial.id)
    decided = {t.round for t in study.history.trials if t.source in ("model", "probe", "fallback")}
    rounds = [r for r in study.history.rounds if r.number in decided and is_finite(r.seconds)]
    return [(n_first[r.number] - len(r.unseen), r.seconds, r) for r in rounds]


def draw_suggestion_cost(study: Study) -> Figure:
    """Seconds of each round's decision, over the number of results."""
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
