"""Events of a search, which are the lines of its journal, and their decoder.

An event is a frozen dataclass. ``to_json`` returns the plain values for the journal, and a
``Decoder`` restores the event, also from journals of earlier formats.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from nasbo.errors import JournalError, NasboError
from nasbo.history.endings import Ending
from nasbo.history.objectives import Objectives
from nasbo.history.records import PREDICTION, Source
from nasbo.space import Config

FORMAT = 2
Line = dict[str, Any]
"""An event as a line of a journal: plain values, with the kind under ``event``."""


def now() -> float:
    """The present time, in seconds since 1970."""
    return round(clock.time(), 3)


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened in a search, with its time; ``sparse`` fields are left out of lines
    where they are empty.
    """

    kind: ClassVar[str] = ""
    sparse: ClassVar[tuple[str, ...]] = ()
    time: float = field(default_factory=now)

    def to_json(self) -> Line:
        """The event as plain values."""
        line: Line = {"event": self.kind}
        for name in _NAMES[self.kind]:
            value = getattr(self, name)
            if name in self.sparse and not value:
                continue
            line[name] = str(value) if isinstance(value, Ending) else value
        return line


@dataclass(frozen=True, kw_only=True)
class Settings(Event):
    """The first event: what is searched, and how.

    Attributes:
        space: the space's fingerprint.
        tree: the space as plain values; ``None`` in journals that did not store it.
        options: options of the method.
        notes: further values of a sweep.
    """

    kind = "settings"
    format: int = FORMAT
    space: str
    tree: Mapping[str, Any] | None = None
    method: str
    objectives: tuple[Mapping[str, Any], ...]
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def goal(self) -> Objectives:
        """The objectives, parsed."""
        return Objectives.from_json(self.objectives)


@dataclass(frozen=True, kw_only=True)
class Opened(Event):
    """A new driver opened the journal; the lines that follow have its format."""

    kind = "opened"
    format: int = FORMAT


@dataclass(frozen=True, kw_only=True)
class Budget(Event):
    """A new total number of trials."""

    kind = "budget"
    trials: int


@dataclass(frozen=True, kw_only=True)
class Exhausted(Event):
    """The method had no config left to suggest."""

    kind = "exhausted"


@dataclass(frozen=True, kw_only=True)
class RepeatsChanged(Event):
    """A new setting of how often the best ``top`` configs are trained again."""

    kind = "repeating"
    repeats: int
    top: int


@dataclass(frozen=True, kw_only=True)
class RoundOpened(Event):
    """Trials were decided together; their suggestions follow.

    Attributes:
        unseen: numbers of runs whose results the decision did not see.
        seconds: duration of the decision.
        set_aside: failing regions that were left out.
        estimates: noise-free values of tried configs according to the decision, from ``ESTIMATES``
            in the info of its suggestions: empty if its model found no noise, ``None`` without a
            model.
    """

    kind = "round"
    round: int
    size: int
    unseen: tuple[int, ...] = ()
    seconds: float = 0.0
    set_aside: tuple[str, ...] = ()
    estimates: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Suggested(Event):
    """A new trial; its first run has the same number."""

    kind = "suggested"
    trial: int
    round: int
    source: Source
    subspace: int
    config: Config
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PastRead(Event):
    """Another sweep was read, and its results follow; the attributes are those of ``Past``."""

    kind = "past"
    name: str
    digest: str
    yaml: str
    objectives: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Observed(Event):
    """A result from elsewhere.

    Attributes:
        origin: name of the past sweep that it comes from; "" if none.
        is_comparable: whether its value is comparable with results of this search; if not, only the
            surrogate uses it.
        metrics: values of further objectives.
    """

    kind = "observed"
    sparse = ("metrics",)
    trial: int
    config: Config
    subspace: int
    value: float
    origin: str = ""
    is_comparable: bool = True
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReferenceSet(Event):
    """The reference point of the hypervolume, from the design; it stays as it is.

    The attributes are those of ``Reference``.
    """

    kind = "reference"
    values: tuple[float, ...]
    is_log: tuple[bool, ...]


@dataclass(frozen=True, kw_only=True)
class Repeated(Event):
    """A further run of a trial, with another seed."""

    kind = "repeated"
    trial: int
    run: int


@dataclass(frozen=True, kw_only=True)
class Targeted(Event):
    """A new target of a run: a step at which to pause, or its end. A paused run is queued again.

    Attributes:
        until: the step; ``None`` for the end.
        is_from_start: whether it trains from the start, as there is no checkpoint.
        reason: why it continues.
    """

    kind = "targeted"
    run: int
    until: int | None
    is_from_start: bool = False
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Retired(Event):
    """The checkpoint of a paused run was removed: it can only continue from the start."""

    kind = "retired"
    run: int


@dataclass(frozen=True, kw_only=True)
class RungDropped(Event):
    """No further trial pauses at a rung, as its ranks are a poor predictor of the next one's.

    Attributes:
        step: of the rung.
        agreement: rank correlation with the next rung.
    """

    kind = "rung dropped"
    step: int
    agreement: float


@dataclass(frozen=True, kw_only=True)
class Started(Event):
    """A run was started on a worker."""

    kind = "started"
    run: int


@dataclass(frozen=True, kw_only=True)
class Reported(Event):
    """A measurement of a run."""

    kind = "reported"
    run: int
    step: int
    value: float | None
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Requeued(Event):
    """A run broke off and will be started again under its own number."""

    kind = "requeued"
    run: int
    ending: Ending
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Ended(Event):
    """A run ended; ``twin`` is the trial whose result was used instead of a training."""

    kind = "ended"
    run: int
    ending: Ending
    value: float | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    step: int = 0
    message: str = ""
    twin: int | None = None


_KINDS: dict[str, type[Event]] = {
    one.kind: one
    for one in (
        Settings, Opened, Budget, Exhausted, RepeatsChanged, RoundOpened, Suggested, PastRead,
        Observed, ReferenceSet, Repeated, Targeted, Retired, RungDropped, Started, Reported,
        Requeued, Ended,
    )
}  # fmt: skip
_NAMES = {kind: [item.name for item in fields(one)] for kind, one in _KINDS.items()}
_TUPLES = ("unseen", "set_aside", "objectives", "values", "is_log")


def from_json(line: Mapping[str, Any]) -> Event:
    """The event of a line in the present format.

    Raises:
        JournalError: an unknown kind, or a field is missing.
    """
    kind = line.get("event")
    one = _KINDS.get(kind) if isinstance(kind, str) else None
    if one is None:
        raise JournalError(f"unknown event {kind!r}")
    known: dict[str, Any] = {name: line[name] for name in _NAMES[one.kind] if name in line}
    for name in _TUPLES:
        if name in known:
            known[name] = tuple(known[name])
    try:
        if "ending" in known:
            known["ending"] = Ending.of(known["ending"])
        return one(**known)
    except (TypeError, NasboError) as error:
        raise JournalError(f"the event {kind!r} cannot be read: {error}") from error


class Decoder:
    """Decodes the lines of one journal in order, in any format."""

    def __init__(self) -> None:
        self._format = FORMAT
        self._flips = False

    def __call__(self, line: Mapping[str, Any]) -> Event:
        """The event of the next line."""
        if line.get("event") == "settings":
            self._format = line.get("format", 0)
            if self._format not in (1, FORMAT):
                raise JournalError(
                    f"the journal has format {line.get('format')!r}, this version reads {FORMAT}"
                )
            is_older = line.get("predictions") != "values"
            self._flips = self._format == 1 and is_older and line.get("mode") == "min"
        elif line.get("event") == "opened":
            self._format = line.get("format", self._format)
        if self._format == 1:
            try:
                line = upgrade(line, self._flips)
            except KeyError as error:
                raise JournalError(f"the line {line.get('event')!r} lacks {error}") from error
        return from_json(line)


def upgrade(line: Mapping[str, Any], flips_predictions: bool = False) -> Line:
    """Convert a line of format 1 to format 2.

    Args:
        line: plain values.
        flips_predictions: whether predictions are scores (larger is better) of a metric to be
            minimised; later versions of the format had values.
    """
    new, kind = dict(line), line.get("event")
    if kind == "settings":
        return _upgrade_settings(new)
    if kind == "repeated":
        new["run"], new["trial"] = new["trial"], new.pop("of")
    elif kind in ("started", "reported", "requeued", "finished", "failed"):
        new["run"] = new.pop("trial")
    if kind == "requeued":
        new["ending"] = new.pop("cause")
    elif kind in ("finished", "failed"):
        new["event"] = "ended"
        new["ending"] = new.pop("cause", "finished")
        new["twin"] = new.pop("same_as", None)
    elif kind == "suggested" and flips_predictions:
        new["info"] = _flipped(new.get("info", {}))
    return new


def _upgrade_settings(line: Line) -> Line:
    own = ("event", "time", "space", "tree", "method", "seed", "options")
    dropped = (*own, "format", "mode", "predictions", "lines", "crc")
    return {
        **{name: line[name] for name in own if name in line},
        "format": FORMAT,
        "objectives": [{"metric": line.get("metric") or "value", "mode": line["mode"]}],
        "notes": {name: value for name, value in line.items() if name not in dropped},
    }


def _flipped(info: Mapping[str, Any]) -> dict[str, Any]:
    known = [info.get(key) for key in PREDICTION]
    if None in known:
        return dict(info)
    median, low, high = (-float(score or 0.0) for score in known)
    return {**info, **dict(zip(PREDICTION, (median, high, low), strict=True))}
