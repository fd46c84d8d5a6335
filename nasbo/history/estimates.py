"""Estimates of noise-free values, from the last decision and updated by later results.

A method whose surrogate has found noise journals its posterior of the best tried configs with each
decision. Readers fit no model: they take these numbers and the exact normal update by later values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np

from nasbo.errors import JournalError
from nasbo.history.records import PREDICTION, Estimate

ESTIMATES = "estimates"
"""Key of a suggestion's info for the estimates of its decision; parsed by ``Estimates.of_json``."""
N_STEPS, TAIL = 1_601, 8.0
"""Number of quadrature points, and their range in standard deviations."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of one decision, in units of the metric.

    Attributes:
        noise_sd: standard deviation of the noise of one training.
        trials: estimates of the best trials by their number; empty if no noise was found.
        n_runs: number of runs when the decision was recorded.
        unseen: those of them whose values the decision did not see, and paused ones that continue.
    """

    noise_sd: float = 0.0
    trials: Mapping[int, Estimate] = field(default_factory=dict)
    n_runs: int = 0
    unseen: set[int] = field(default_factory=set)

    @staticmethod
    def of_json(plain: Mapping[str, Any], n_runs: int, unseen: set[int]) -> Estimates:
        """Parse estimates: a ``noise_sd``, and ``trials`` with (mean, sd).

        Raises:
            JournalError: they cannot be parsed.
        """
        try:
            trials = {
                int(number): Estimate(float(mean), float(sd))
                for number, (mean, sd) in plain.get("trials", {}).items()
            }
            return Estimates(float(plain.get("noise_sd", 0.0)), trials, n_runs, unseen)
        except (TypeError, ValueError, AttributeError) as error:
            raise JournalError(f"the estimates of a round cannot be read: {error}") from error

    def of(
        self, trial: int, info: Mapping[str, Any], values: Mapping[int, float]
    ) -> Estimate | None:
        """The present estimate of a trial.

        A trial that the decision knew and did not list is worse than the listed
        ones and has no estimate.

        Args:
            trial: its number.
            info: the method's info about it when it was suggested.
            values: values of its runs, by their numbers.
        """
        if not self.trials or not values or not info.get("is_comparable", True):
            return None
        known = self.trials.get(trial)
        new = [value for run, value in values.items() if self._is_new(run)]
        if known is None and len(new) < len(values):
            return None
        return updated(known or _predicted(info), new, self.noise_sd)

    def _is_new(self, run: int) -> bool:
        return run >= self.n_runs or run in self.unseen


def updated(prior: Estimate | None, values: Sequence[float], noise_sd: float) -> Estimate | None:
    """Normal posterior of a noise-free value after noisy values of it.

    Args:
        prior: estimate before them; ``None`` if nothing is known.
        values: the new values.
        noise_sd: noise standard deviation of each.
    """
    if not values:
        return prior
    mean, variance = fmean(values), noise_sd**2 / len(values)
    if prior is None:
        return Estimate(mean, math.sqrt(variance))
    total = prior.sd**2 + variance
    gain = prior.sd**2 / total if total > 0 else 1.0
    return Estimate(prior.mean + gain * (mean - prior.mean), math.sqrt(gain * variance))


def _predicted(info: Mapping[str, Any]) -> Estimate | None:
    """Prediction of a trial before it ran; its interval is one standard deviation to both sides."""
    known = [info.get(key) for key in PREDICTION]
    if None in known:
        return None
    mean, low, high = (float(value or 0.0) for value in known)
    return Estimate(mean, abs(high - low) / 2)


def take_estimates(
    infos: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """The estimates in the infos of a decision's suggestions, and the infos without them.

    Raises:
        JournalError: they could not be parsed again.
    """
    found = next((info[ESTIMATES] for info in infos if ESTIMATES in info), None)
    if found is not None:
        Estimates.of_json(found, 0, set())
    return found, [{k: v for k, v in info.items() if k != ESTIMATES} for info in infos]


def probability_of_best(means: Sequence[float], sds: Sequence[float]) -> float:
    """Probability that the first of several independent normal variables is the largest.

    The integral of its density times the distribution functions of the
    others, by the trapezoid rule.

    Args:
        means: at least one.
        sds: same length.
    """
    mean, sd = np.asarray(means, dtype=np.float64), np.asarray(sds, dtype=np.float64)
    sd = np.maximum(sd, 1e-9 * (float(np.ptp(mean)) + float(sd.max())) or 1.0)
    t = np.linspace(-TAIL, TAIL, N_STEPS)
    away = (mean[0] + sd[0] * t[:, None] - mean[1:]) / (math.sqrt(2.0) * sd[1:])
    below = np.array([0.5 * math.erfc(-one) for one in away.ravel().tolist()]).reshape(away.shape)
    density = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
    return float(np.trapezoid(density * below.prod(1), t))
