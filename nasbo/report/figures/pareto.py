"""Figure of values against costs of networks or further objectives, with the Pareto front."""

from __future__ import annotations

from nasbo.history import Trial
from nasbo.report.axes import Frame, Scale, is_finite, limits, log_limits, number_text
from nasbo.report.drawing import Dot, Drawing, Line, Shape, legend
from nasbo.report.study import Figure, NoDataError, Study, key_of, summarise, value_of

COSTS = {"flops": "FLOPs", "params": "parameters"}
PANEL, HEIGHT = 580.0, 400.0


def draw_pareto(study: Study, is_stacked: bool = False) -> Figure:
    """One panel per further objective or, of one objective, per cost that is known from the trials
    or the trainer's summary.
    """
    study.require_values()
    names = [one.metric for one in study.history.objectives.further] or list(COSTS)
    found = {name: costs for name in names if (costs := costs_of(study, name))}
    if not found:
        raise NoDataError("neither the trials nor the trainer's summary tell FLOPs or parameters")
    across, down = (0.0, HEIGHT) if is_stacked else (PANEL, 0.0)
    n_more = len(found) - 1
    drawing = Drawing(PANEL + across * n_more, HEIGHT + down * n_more)
    sizes = []
    for index, (name, costs) in enumerate(found.items()):
        front = front_by(study, costs)
        trials = "1 trial" if len(front) == 1 else f"{len(front)} trials"
        sizes.append(f"{trials} for {COSTS.get(name, name)}")
        drawing.extend(_panel(study, name, front, across * index, down * index))
    entries = [("on the Pareto front", "c6"), ("other trials", "c1")]
    drawing.extend(legend(entries, 64, 14, PANEL))
    caption = f"On the front no other trial is both cheaper and better: {', '.join(sizes)}. "
    caption += "Costs are on a logarithmic scale."
    if len(study.history.objectives) > 1:
        volume = study.history.hypervolume
        caption = (
            f"No other trial is better in all objectives than one of the {trials} on the front"
        )
        caption += "." if volume is None else f", whose hypervolume is {number_text(volume)}."
    title = f"{study.metric} against cost"
    is_wide = drawing.width > PANEL
    caption += study.thinned + study.in_full
    return Figure("pareto", title, caption, drawing, is_wide=is_wide)


def costs_of(study: Study, name: str) -> dict[int, float]:
    """A cost by trial number, if known and positive, or a further objective."""
    goal = study.history.objectives
    named = [one.metric for one in goal]
    if len(goal) > 1 and name in named:
        values = {trial.id: goal.values(trial) for trial in study.valued}
        return {id_: one[named.index(name)] for id_, one in values.items() if one is not None}
    found = {}
    for trial in study.valued:
        cost = trial.metrics.get(name)
        if cost is None and trial.id in study.drawn:
            cost = summarise(study, trial).get(name)
        if is_finite(cost) and cost > 0:
            found[trial.id] = float(cost)
    return found


def front_by(study: Study, costs: dict[int, float]) -> list[Trial]:
    """The trials of the front, cheapest first: that of all objectives, if there are several."""
    if len(study.history.objectives) == 1:
        return pareto_front(study, costs)
    front = [trial for trial in study.history.front if trial.id in costs]
    return sorted(front, key=lambda trial: (costs[trial.id], trial.id))


def pareto_front(study: Study, costs: dict[int, float]) -> list[Trial]:
    """Trials that no other trial dominates in value and cost, cheapest first."""
    score = study.history.score
    known = [trial for trial in study.valued if trial.id in costs]
    known.sort(key=lambda trial: (costs[trial.id], -score(value_of(trial)), trial.id))
    front: list[Trial] = []
    for trial in known:
        if not front or score(value_of(trial)) > score(value_of(front[-1])):
            front.append(trial)
    return front


def _panel(study: Study, name: str, front: list[Trial], left: float, top: float) -> list[Shape]:
    costs = costs_of(study, name)
    known = [cost for one in study.together for cost in costs_of(one, name).values()]
    is_log = min(known) > 0
    ends = log_limits(known) if is_log else limits(known)
    x = Scale(*ends, left + 64, left + PANEL - 24, is_log=is_log)
    y = Scale(*study.value_limits, top + HEIGHT - 56, top + 56)
    shapes = Frame(x, y, COSTS.get(name, name), study.metric).shapes()
    on_front = {trial.id for trial in front}
    for trial in study.valued:
        if trial.id in costs and trial.id in study.drawn and trial.id not in on_front:
            shapes.append(_dot(study, trial, costs[trial.id], x, y, "c1"))
    if len(study.history.objectives) <= 2:  # three have a surface
        shapes.append(Line([(x(costs[t.id]), y(value_of(t))) for t in front], "c6", 1.5))
    shapes += [_dot(study, trial, costs[trial.id], x, y, "c6") for trial in front]
    return shapes


def _dot(study: Study, trial: Trial, cost: float, x: Scale, y: Scale, color: str) -> Dot:
    words = f"{study.words(trial)}\n{number_text(cost)}"
    radius, opacity = (5.0, 1.0) if color == "c6" else (4.0, 0.7)
    return Dot(x(cost), y(value_of(trial)), radius, color, opacity, words, key_of(trial))
