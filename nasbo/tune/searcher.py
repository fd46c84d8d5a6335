"""Ray Tune searcher; the method runs in another process."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ray.tune.search import Searcher

from nasbo.errors import JournalError, NasboError
from nasbo.features import Features, as_features
from nasbo.history import Mode, Objective, Objectives, Run, Rungs
from nasbo.history.events import Decoder, Event, Settings
from nasbo.methods import Suggestion
from nasbo.methods.random import RandomSearch
from nasbo.methods.registry import check_method_options
from nasbo.search import Driver, LocalDecider, Next, Schedule, Search
from nasbo.space import Config, Space, load_space
from nasbo.tune.remote_method import MethodRecipe, RemoteDecider
from nasbo.tune.results import finite_number, own_metrics, step_of

logger = logging.getLogger(__name__)
_DEFAULT_METRIC = "_metric"
Limits = Callable[[Config], bool] | None


class NasboSearch(Searcher):
    """A searcher for ``tune.Tuner`` over a conditional space.

    A whole round is decided in another process, so that Tune's event loop never waits for a fit;
    ``suggest`` returns ``None`` until configs are ready. A trial that a Tune scheduler stops early
    is recorded as ``stopped``, and the surrogate sees its last value.

    Args:
        space: a ``Space``, the path of a space file, the name of a shipped one, or a dict.
        metric: the result to optimise. Tune passes the one of ``TuneConfig`` only with a
            ``param_space``. Without any, it is the trainable's return value. Or a list of two or
            three results, of which the first is trained, and those that ``features`` has are known
            before a training; give none to ``TuneConfig`` then.
        mode: ``"min"`` or ``"max"``, or a list of as many.
        points_to_evaluate: configs to run first, as ``begin``, by the name that it has in Tune.
        evaluated_rewards: their values, if they are known: then none of them is run.
        method: a name from ``nasbo.METHODS``.
        method_options: options of the method.
        seed: the same seed and the same results give the same configs (``schedule="round"``).
        schedule: ``"round"`` or ``"async"``.
        batch: configs per round; default one per subspace.
        share: fraction of a round that must have ended before the next round opens.
        deadline_s: seconds after which the next round opens in any case.
        gpus: number of GPUs for the surrogate.
        threads: number of CPU threads for the surrogate.
        limits: whether a config may be suggested; also called in another process.
        features: numbers of a config that are known before its training, such as the parameters of
            a network; also called in another process.
        rungs: steps at which trials pause and are compared, the last one a full training, or
            ``Rungs``. Each config then contains ``config["nasbo"]``: the trial's number ``trial``,
            the step ``until`` at which the trainable must return (``None`` for a full training) and
            the step ``start`` from which it continues. Only with Tune's default scheduler: rungs
            stop trials themselves.
        begin: configs to run first; they count towards the design.
    """

    _metric: str | None
    _mode: Mode | None

    def __init__(
        self,
        space: Space | Mapping[str, Any] | str | os.PathLike[str],
        metric: str | list[str] | None = None,
        mode: Mode | list[Mode] | None = None,
        points_to_evaluate: list[Config] | None = None,
        evaluated_rewards: Sequence[float | Mapping[str, float]] | None = None,
        *,
        method: str = "attnbo",
        method_options: Mapping[str, Any] | None = None,
        seed: int = 0,
        schedule: str = "round",
        batch: int | None = None,
        share: float = 1.0,
        deadline_s: float | None = None,
        gpus: float = 0,
        threads: int = 1,
        limits: Callable[[Config], bool] | None = None,
        rungs: Rungs | Sequence[int] | None = None,
        features: Features | Callable[[Config], Mapping[str, float]] | None = None,
        begin: Sequence[Config] = (),
    ) -> None:
        goal = _goal(metric, mode)
        self._objectives: tuple[Mapping[str, Any], ...] | None = (
            None if goal is None else goal.to_json()
        )
        if goal is not None:
            metric, mode = goal.first.metric, goal.first.mode
        super().__init__(metric=metric, mode=mode)
        self._limits, self._rungs, self._features = limits, rungs, as_features(features)
        self.space = load_space(space)
        self.schedule = Schedule(schedule, batch, share, deadline_s)
        self._seed, self._method, self._options = seed, method, dict(method_options or {})
        self._resources = {"gpus": gpus, "threads": threads}
        self._limit: int | None = None
        self._trials: dict[str, int] = {}
        self._steps: dict[str, int] = {}
        self._lacks_metric = False
        check_method_options(method, self._options)
        points = points_to_evaluate or []
        if points and begin:
            raise NasboError("begin and points_to_evaluate mean the same: give one of them")
        self._configs = [*begin] if evaluated_rewards is not None else [*begin, *points]
        self._start(self._new_search())
        self._take_results(points, evaluated_rewards)

    def _new_search(self, past: Sequence[Event] = ()) -> Search:
        goal: dict[str, Any] = {"mode": self._mode or "min"}
        if self._objectives is not None:
            goal = {"objectives": Objectives.from_json(self._objectives)}
        return Search(
            self.space,
            self._method,
            seed=self._seed,
            **goal,
            past=past,
            limits=self._limits,
            rungs=self._rungs,
            features=self._features,
            begin=self._configs,
            **self._options,
        )

    def _start(self, search: Search) -> None:
        self.search = search
        self._decider = RemoteDecider(self._recipe, self._random)
        decider = LocalDecider() if search.is_quick else self._decider
        self.driver = Driver(search, self.schedule, decider)

    def _replay(self, events: Sequence[Event]) -> None:
        """Start again from the events of an earlier search, now that the mode is known."""
        first = events[0]
        assert isinstance(first, Settings)
        if self._objectives is None:
            (goal,) = first.objectives
            first = replace(first, objectives=({**goal, "mode": self._mode or "min"},))
        self._start(self._new_search([first, *events[1:]]))
        self.driver.running = set(self._trials.values())
        self.driver.forget(self.driver.running)  # Tune itself runs these again

    def _take_results(
        self, points: list[Config], values: Sequence[float | Mapping[str, float]] | None
    ) -> None:
        if values is not None and len(values) != len(points):
            raise NasboError(
                f"evaluated_rewards must match points_to_evaluate: "
                f"{len(values)} values for {len(points)} configs"
            )
        for config, value in zip(points, values or [], strict=False):
            self.search.observe(config, value)

    # What Tune calls

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any
    ) -> bool:
        """Take metric and mode from ``TuneConfig`` if the searcher was not given its own."""
        if metric and self._metric not in (None, metric):
            return False
        if mode and self._mode not in (None, mode):
            return False
        self._metric = self._metric or metric
        if mode and self._mode is None:
            self._mode = "max" if mode == "max" else "min"
            self._replay(self.search.events)
        return True

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """Enforce the limit here: the searcher must see the results of a round as they come."""
        self._limit = max_concurrent
        return True

    def suggest(self, trial_id: str) -> Any:
        """A config, ``None`` if there is none yet, or ``FINISHED``."""
        try:
            return self._suggest(trial_id)
        except JournalError as error:
            logger.error("%s", error)
            return None
        except Exception:
            logger.exception("no suggestion: the searcher failed")
            return None

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Record the progress of a running trial."""
        self._steps[trial_id] = step_of(result)
        self._guard(self._report, trial_id, result)

    def on_pause(self, trial_id: str) -> None:
        """Refuse ``HyperBandForBOHB``, the one scheduler that calls this."""
        raise NasboError(
            "HyperBandForBOHB works with its own searcher, TuneBOHB: use "
            "NasboSearch(rungs=[...]) without a scheduler, or AsyncHyperBandScheduler"
        )

    def on_trial_complete(
        self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False
    ) -> None:
        """Record how a trial ended, with its cause."""
        self._guard(self._complete, trial_id, result, error)

    def add_evaluated_point(
        self,
        parameters: Config,
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """Observe a result from elsewhere; failed and pruned ones are ignored."""
        if not error and not pruned:
            self.search.observe(parameters, value)

    def save(self, checkpoint_path: str) -> None:
        """Write the searcher's state, as JSON."""
        goal = {"metric": self._metric, "mode": self._mode}
        events = [item.to_json() for item in self.search.events]
        state = {**goal, "events": events, "trials": self._trials}
        partial = Path(f"{checkpoint_path}.partial")
        partial.write_text(json.dumps(state), encoding="utf-8")
        partial.replace(checkpoint_path)

    def restore(self, checkpoint_path: str) -> None:
        """Restore what ``save`` wrote, including metric and mode if they are not set.

        Raises:
            NasboError: the saved search has another metric, mode, space, method or seed.
        """
        state = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
        events = list(map(Decoder(), state["events"]))
        assert isinstance(events[0], Settings)
        if (n := len(events[0].objectives)) != len(self._objectives or "1"):
            raise NasboError(f"the saved search has {n} objectives: {events[0].goal}")
        metric = state.get("metric")
        mode = state.get("mode", events[0].goal.first.mode)
        for name, saved, own in (("metric", metric, self._metric), ("mode", mode, self._mode)):
            if own and saved and own != saved:
                raise NasboError(f"the saved search has the {name} {saved!r}, not {own!r}")
        self._metric, self._mode = self._metric or metric, self._mode or mode
        self._trials = dict(state["trials"])
        self._replay(events)

    def __getstate__(self) -> dict[str, Any]:
        events = list(self.search.events)
        left_out = ("driver", "search", "_decider")
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**state, "events": events}

    def __setstate__(self, state: dict[str, Any]) -> None:
        events = state.pop("events")
        self.__dict__.update(state)
        self._replay(events)

    def close(self) -> None:
        """End the process of the method."""
        self._decider.close()

    # How it is done

    def _suggest(self, trial_id: str) -> Any:
        if self._lacks_metric:
            return Searcher.FINISHED
        answer = self.driver.next(self._limit)
        if not isinstance(answer, Run):
            return Searcher.FINISHED if answer is Next.DONE else None
        self._trials[trial_id] = answer.number
        config = self.search.history.trial(answer.number).copy().config
        if self.search.history.rungs is None:
            return config
        stretch = {"trial": answer.number, "start": answer.resumed_from, "until": answer.until}
        return {**config, "nasbo": stretch}

    def _recipe(self) -> MethodRecipe:
        history = self.search.history
        return MethodRecipe(
            history.space,
            history.mode,
            self._method,
            self._seed,
            self._options,
            limits=self._limits,
            features=self._features,
            **self._resources,  # type: ignore[arg-type]
        )

    def _random(self, n: int, reason: str) -> list[Suggestion]:
        return random_suggestions(self.search, self._seed, self._limits, n, reason)

    def _guard(self, call: Any, *arguments: Any) -> None:
        """Call and log exceptions: an exception in Tune would end the run and kill every trial."""
        try:
            call(*arguments)
        except JournalError as error:
            logger.error("%s", error)
        except Exception:
            logger.exception("the searcher could not take in a result")

    def _report(self, trial_id: str, result: dict[str, Any]) -> None:
        if (number := self._trials.get(trial_id)) is not None:
            value = finite_number(result.get(self._metric or _DEFAULT_METRIC))
            self.driver.on_report(number, step_of(result), value, own_metrics(result))

    def _complete(self, trial_id: str, result: dict[str, Any] | None, error: bool) -> None:
        number = self._trials.pop(trial_id, None)
        last_seen = self._steps.pop(trial_id, 0)
        if number is None:
            return
        curve = self.search.history.run(number).curve
        if result is None and curve and not error:  # a scheduler stopped it while paused
            step, last = curve[-1]
            self.driver.on_end(number, last, error="stopped", step=step)
            return
        value, cause = self._ending(number, result, error, last_seen)
        result = result or {}
        self.driver.on_end(
            number, value, error=cause, metrics=own_metrics(result), step=step_of(result)
        )

    def _ending(
        self, number: int, result: dict[str, Any] | None, error: bool, last_seen: int
    ) -> tuple[float | None, str | None]:
        """Value and cause. An ending with a result not seen before comes from a scheduler."""
        if error:
            return None, "crashed"
        raw = (result or {}).get(self._metric or _DEFAULT_METRIC)
        value = finite_number(raw)
        if raw is None:
            self._check_metric(result or {})
        if value is None:
            return None, "no result" if raw is None else "diverged"
        if self.search.lacking(number, own_metrics(result or {})):
            return None, "no result"
        was_stopped = step_of(result or {}) > last_seen
        return value, "stopped" if was_stopped else None

    def _check_metric(self, result: dict[str, Any]) -> None:
        """Without a metric, results with several values are an error:
        log it and stop suggesting.
        """
        given = own_metrics(result)
        if self._metric is not None or not given or self._lacks_metric:
            return
        self._lacks_metric = True
        logger.error(
            "metric must be given: NasboSearch(space, metric=..., mode=...), one of %s; that of "
            "TuneConfig reaches a searcher only beside a param_space. No more trials are begun",
            ", ".join(given),
        )


def _goal(
    metric: str | Sequence[str] | None, mode: Mode | Sequence[Mode] | None
) -> Objectives | None:
    """Several objectives from lists as Optuna's searcher takes them; ``None`` for one metric."""
    if not isinstance(metric, list | tuple) and not isinstance(mode, list | tuple):
        return None
    is_paired = isinstance(metric, list | tuple) and isinstance(mode, list | tuple)
    if not is_paired or len(metric or ()) != len(mode or ()):
        raise NasboError(
            f"metric and mode must be lists of one length, got metric={metric!r}, mode={mode!r}"
        )
    pairs = zip(metric or (), mode or (), strict=True)
    return Objectives(tuple(Objective(str(name), way) for name, way in pairs))  # type: ignore[arg-type]


def random_suggestions(
    search: Search, seed: int, limits: Limits, n: int, reason: str
) -> list[Suggestion]:
    """Random configs in place of a lost method, with the reason."""
    method = RandomSearch(search.space, seed)
    method.limits = limits
    drawn = method.suggest(search.history, n)
    return [Suggestion(item.config, "fallback", {"reason": reason}) for item in drawn]
