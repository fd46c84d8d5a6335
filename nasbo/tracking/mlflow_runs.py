"""MLflow: a sweep as a parent run, its trials as nested runs.

Which run of the server stands for which trial is written in the tags with which it is created, in
one request. What a server holds is read from it, at the beginning and after each error; requests
are never blindly repeated. A metric is asked for its points before the first one is sent to a run
that was there already.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A request whose answer was lost may have been carried out: the client must not repeat it.
os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
import mlflow
from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException

from nasbo.tracking.destination import Tracked, TrackingError, Wish
from nasbo.tracking.records import SWEEP, TrackedRun

OWN = "nasbo."
PARENT, RUN_NAME = "mlflow.parentRunId", "mlflow.runName"
VALUE = f"{OWN}value"
"""Metric with the mean of a trial's values, by how many there are."""
POINTS = f"{OWN}points"
"""Tag of a run that has all its points, with their number: they need not be read again."""
MAX_METRICS, MAX_PARAMS, MAX_TEXT = 1000, 100, 5000
_FORBIDDEN = re.compile(r"[^/\w.\- :]")
_PASSING = (408, 425, 429)
Spot = tuple[str, int]
"""Name and step of a point."""


@dataclass
class _Known:
    """What the server holds of a run; ``spots`` are ``None`` as long as nobody asked."""

    run_id: str
    params: set[str] = field(default_factory=set)
    metrics: set[str] = field(default_factory=set)
    tags: dict[str, str] = field(default_factory=dict)
    status: str = "RUNNING"
    end: int | None = None
    spots: set[Spot] | None = None


class MlflowRuns:
    """Shows a sweep in MLflow; see ``Destination``."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._client = mlflow.MlflowClient(wish.tracking_uri)
        self._experiment = ""
        self._identity = ""
        self._known: dict[str, _Known] | None = None
        self._n_sent = 0
        self._sent: dict[str, TrackedRun] = {}

    def send(self, tracked: Tracked) -> None:
        self._n_sent = 0
        with _errors(self):
            self._identity = tracked.identity
            if self._known is None:
                self._known = self._look_up()
            for run in tracked.runs:
                if self._sent.get(run.key) is not run:
                    self._send(run)
                    self._sent[run.key] = run

    def forget(self) -> None:
        """Look everything up again the next time."""
        self._known, self._sent = None, {}

    def where(self) -> str:
        uri = self._client.tracking_uri
        parent = (self._known or {}).get(SWEEP)
        if parent is None or not uri.startswith("http"):
            return uri
        return f"{uri.rstrip('/')}/#/experiments/{self._experiment}/runs/{parent.run_id}"

    def close(self) -> None:
        """Nothing is left to do: whatever was sent is there."""

    # Runs

    def _look_up(self) -> dict[str, _Known]:
        """The server's runs of this sweep by their keys; of two with one key the second goes."""
        self._experiment = self._find_experiment()
        found: dict[str, _Known] = {}
        runs = sorted(self._search(), key=lambda run: run.info.run_id)
        for run in runs:
            key = run.data.tags.get(f"{OWN}run", "")
            if key in found:
                # Created by a request that arrived late, or by a second tracker of this sweep.
                self._client.delete_run(run.info.run_id)
                found[key].tags.pop(POINTS, None)  # the other one may have had them
                continue
            found[key] = _Known(
                run.info.run_id,
                set(run.data.params),
                set(run.data.metrics),
                dict(run.data.tags),
                run.info.status,
                run.info.end_time,
            )
        return found

    def _search(self) -> Iterator[Any]:
        rule, token = f"tags.`{OWN}sweep` = '{self._identity}'", None
        while True:
            page = self._client.search_runs([self._experiment], rule, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    def _find_experiment(self) -> str:
        name = self._wish.project
        known = self._client.get_experiment_by_name(name)
        if known is None:
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:
                known = self._client.get_experiment_by_name(name)  # made by somebody else meanwhile
                if known is None:
                    raise
        if known.lifecycle_stage != "active":
            raise TrackingError(
                f"the experiment {name!r} was deleted: restore it, or name another --experiment",
                is_passing=False,
            )
        return str(known.experiment_id)

    def _send(self, run: TrackedRun) -> None:
        assert self._known is not None
        tags = self._tags(run)
        known = self._known.get(run.key)
        if known is None:
            known = self._known[run.key] = self._create(run, tags)
        self._send_params(known, run)
        n_spots = self._send_points(known, run)
        if not run.is_open:
            tags[POINTS] = str(n_spots)
        self._send_tags(known, tags)
        self._send_status(known, run)

    def _create(self, run: TrackedRun, tags: Mapping[str, str]) -> _Known:
        made = self._client.create_run(
            self._experiment, start_time=_ms(run.start), tags=dict(tags), run_name=tags[RUN_NAME]
        )
        self._n_sent += 1
        return _Known(made.info.run_id, tags=dict(tags), spots=set())

    def _log(self, known: _Known, **what: Sequence[Any]) -> None:
        self._client.log_batch(known.run_id, **what)
        self._n_sent += 1

    def _tags(self, run: TrackedRun) -> dict[str, str]:
        assert self._known is not None
        name = self._wish.name if run.key == SWEEP and self._wish.name else run.name
        own = {"sweep": self._identity, "run": run.key, "kind": run.kind, **run.tags}
        tags = {f"{OWN}{key}": text[:MAX_TEXT] for key, text in own.items()}
        if run.parent is not None:
            tags[PARENT] = self._known[run.parent].run_id
        return {**tags, RUN_NAME: name, "mlflow.source.name": "nasbo"}

    def _send_params(self, known: _Known, run: TrackedRun) -> None:
        params = {_name(name): _text(value) for name, value in run.params.items()}
        missing = [Param(name, text) for name, text in params.items() if name not in known.params]
        for some in _parts(missing, MAX_PARAMS):
            self._log(known, params=some)
        known.params |= params.keys()

    def _send_points(self, known: _Known, run: TrackedRun) -> int:
        """Send the points that the server lacks; how many there are in all."""
        metrics = list(_metrics(run))
        if known.spots is None:
            is_whole = known.tags.get(POINTS) == str(len(metrics))
            known.spots = {_spot(m) for m in metrics} if is_whole else self._read(known, metrics)
        missing = [metric for metric in metrics if _spot(metric) not in known.spots]
        for some in _parts(missing, MAX_METRICS):
            self._log(known, metrics=some)
            known.spots |= {_spot(metric) for metric in some}
        return len(metrics)

    def _read(self, known: _Known, metrics: Sequence[Metric]) -> set[Spot]:
        """What the server has of these metrics."""
        names = {metric.key for metric in metrics} & known.metrics
        histories = (self._client.get_metric_history(known.run_id, name) for name in names)
        return {_spot(metric) for history in histories for metric in history}

    def _send_tags(self, known: _Known, tags: Mapping[str, str]) -> None:
        changed = {name: text for name, text in tags.items() if known.tags.get(name) != text}
        if changed:
            listed = [RunTag(name, text) for name, text in changed.items()]
            self._log(known, tags=listed)
            known.tags |= changed

    def _send_status(self, known: _Known, run: TrackedRun) -> None:
        status, end = _status(run), None if run.end is None else _ms(run.end)
        if run.is_open and known.status != status:
            self._client.update_run(known.run_id, status=status)
        elif not run.is_open and (known.status, known.end) != (status, end):
            self._client.set_terminated(known.run_id, status, end)
        known.status, known.end = status, end

    # Files

    def files(self) -> Mapping[str, str]:
        assert self._known is not None
        found: dict[str, str] = json.loads(self._known[SWEEP].tags.get(f"{OWN}files", "{}"))
        return found

    def send_files(self, files: Mapping[str, Path], digests: Mapping[str, str]) -> None:
        assert self._known is not None
        known = self._known[SWEEP]
        with _errors(self):
            for name, path in files.items():
                self._store(known.run_id, name, path)
            self._send_tags(known, {f"{OWN}files": json.dumps(dict(digests))})

    def _store(self, run_id: str, name: str, path: Path) -> None:
        try:
            self._client.log_artifact(run_id, str(path), os.path.dirname(name) or None)
        except (MlflowException, OSError):
            raise
        except Exception as error:  # of the package of some artifact store
            words = f"MLflow: {name} cannot be stored: {_short(error)}"
            raise TrackingError(words, is_passing=False) from error


class _errors:  # noqa: N801
    """Translates MLflow's errors; after one, what the server holds counts as unknown."""

    def __init__(self, runs: MlflowRuns) -> None:
        self._runs = runs

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        self._runs.forget()
        n_sent = self._runs._n_sent
        if isinstance(error, MlflowException):
            code = error.get_http_status_code()
            is_passing = code >= 500 or code in _PASSING
            raise TrackingError(f"MLflow: {_short(error)}", is_passing, n_sent) from error
        if isinstance(error, OSError):
            raise TrackingError(f"MLflow: {_short(error)}", n_sent=n_sent) from error


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """The items in parts of at most ``size``."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _metrics(run: TrackedRun) -> Iterator[Metric]:
    for point in run.points:
        for name, value in point.values.items():
            yield Metric(_name(name), value, _ms(point.time), point.step)
    if run.value is not None:
        yield Metric(VALUE, run.value, _ms(run.end or time.time()), run.n_values)


def _spot(metric: Metric) -> Spot:
    return metric.key, metric.step


def _status(run: TrackedRun) -> str:
    if run.is_open:
        return "RUNNING" if run.state == "running" else "SCHEDULED"
    if run.state == "interrupted":
        return "KILLED"
    return "FAILED" if run.is_failure else "FINISHED"


def _name(name: str) -> str:
    """A name as MLflow allows it: other characters by their numbers."""
    return _FORBIDDEN.sub(lambda match: f"_x{ord(match[0]):x}_", name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _short(error: BaseException) -> str:
    """The first line of an error; of a server that does not answer the address is enough."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    address, is_silent, _ = line.partition(" failed with exception ")
    address = address.removeprefix("API request to ").partition("/api/")[0]
    return f"{address} cannot be reached" if is_silent else line[:300]
