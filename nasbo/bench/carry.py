"""Transfer of published cells to the present code, after replays show identical decisions.

A cell's key includes a hash of the deciding code, so a refactoring without any change of behaviour
makes all published cells stale. A sample of them is run again by the code that made them and by the
present code. Both run on this machine, because numbers differ between machines even if the code
does not. Evaluations of expensive problems come from a store that both share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from nasbo.bench.cell import Cell, Record, key_hash
from nasbo.bench.checkout import PRESENT, Checkout, last_line, machine_tag
from nasbo.bench.curves.cell import CurveCell
from nasbo.bench.lookup import find_entry
from nasbo.bench.published import cell_of, is_by_cost, read_published, write_published
from nasbo.bench.run import (
    Progress,
    cell_file,
    make_folder,
    read_record,
    without_version,
    write_record,
)
from nasbo.bench.workers import Outcome
from nasbo.errors import NasboError, shorten

State = Literal["waiting", "equal", "refused", "left out", "current"]
COLUMNS = ("configs", "sources", "subspaces", "values", "scores")
"""Lists with one entry per trial; all must be equal."""


@dataclass(frozen=True)
class Carriage:
    """Settings of a transfer.

    Attributes:
        old: checkout of the code that made the published cells.
        file: file of published cells; rewritten if any are carried.
        out: folder of the replays, from which an interrupted run continues.
        methods: labels to carry; empty means all.
        problems: names to carry; empty means all.
        sample: number of cells to replay per method, problem and batch.
        jobs: number of parallel processes.
    """

    old: Path
    file: Path
    out: Path
    methods: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    sample: int = 2
    jobs: int = 2


@dataclass
class Group:
    """Cells that differ only in their seed, with the outcome of their replays.

    Attributes:
        records: the published cells.
        sample: cells that are replayed.
        state: ``equal`` groups are carried; ``left out`` ones could not be checked here;
            ``current`` ones already belong to the present code.
        reason: explanation of the state.
        version: version of the method in the present code.
    """

    records: list[Record]
    sample: list[Record]
    state: State = "waiting"
    reason: str = ""
    version: str = ""

    @property
    def label(self) -> str:
        return str(self.records[0]["label"])

    @property
    def key(self) -> Record:
        key: Record = self.records[0]["key"]
        return key

    @property
    def unit(self) -> tuple[str, int]:
        """Method and batch: carried on all problems or on none."""
        return self.label, self.key["batch"]

    def decide(self, state: State, reason: str = "") -> None:
        """Set the outcome of the group."""
        self.state, self.reason = state, reason


class Carrying:
    """One run of ``nasbo bench carry``.

    Args:
        carriage: what to carry.

    Raises:
        NasboError: the checkout or the file of cells is missing, or a filter matches nothing.
    """

    def __init__(self, carriage: Carriage) -> None:
        self.carriage = carriage
        self._old, self._present = Checkout(carriage.old), Checkout(PRESENT)
        self._records = read_published(carriage.file)
        over_trials = [record for record in self._records if not is_by_cost(record)]
        self.groups = _grouped(_selected(over_trials, carriage), carriage.sample)
        cells = [cell_of(group.records[0]) for group in self.groups]
        keys = zip(self.groups, self._old.keys(cells), self._present.keys(cells), strict=True)
        for group, before, now in keys:
            _check(group, before, now)

    @cached_property
    def units(self) -> list[list[Group]]:
        """Groups to replay, by method and batch."""
        found: dict[tuple[str, int], list[Group]] = {}
        for group in self.groups:
            if group.state == "waiting":
                found.setdefault(group.unit, []).append(group)
        return list(found.values())

    def missing(self, group: Group) -> list[Record]:
        """Replays that are not stored yet; a record occurs twice if neither code has run it."""
        files = [(r, self._file(r, group, s)) for s in self._sides for r in group.sample]
        return [record for record, file in files if not file.is_file()]

    def replay(
        self,
        on_progress: Callable[[Progress], Any] = lambda state: None,
        on_unit: Callable[[list[Group]], Any] = lambda unit: None,
    ) -> None:
        """Run the missing replays and compare. Afterwards no group is waiting.

        Args:
            on_progress: called at the start and after each replay.
            on_unit: called with the groups of a method and batch once they are decided.
        """
        waiting = [group for unit in self.units for group in unit]
        state = Progress(2 * sum(len(group.sample) for group in waiting))
        state.n_cached = state.n_cells - sum(len(self.missing(group)) for group in waiting)
        on_progress(state)
        for unit in self.units:
            for checkout in self._sides:
                self._run(checkout, unit, state, on_progress)
            for group in unit:
                self._compare(group, state.crashes)
            _refuse_together(unit)
            on_unit(unit)

    def write(self) -> int:
        """Rewrite the file if any cells are carried; returns their number."""
        carried = {id(r): group for group in self.groups if group.state == "equal"
                   for r in group.records}  # fmt: skip
        if carried:
            cells = [_carried(r, carried[id(r)]) if id(r) in carried else r for r in self._records]
            write_published(cells, self.carriage.file)
        return len(carried)

    @property
    def _sides(self) -> tuple[Checkout, Checkout]:
        return self._old, self._present

    def _file(self, record: Record, group: Group, checkout: Checkout) -> Path:
        """Path of the replay of a cell by a checkout."""
        own = checkout is self._present
        key = record["key"] | ({"version": group.version} if own else {})
        folder = f"{self._machine}-{checkout.fingerprint}"
        return self.carriage.out / "replays" / folder / cell_file(cell_of(record), key)

    @cached_property
    def _machine(self) -> str:
        return machine_tag()

    def _run(
        self,
        checkout: Checkout,
        unit: Sequence[Group],
        state: Progress,
        on_progress: Callable[[Progress], Any],
    ) -> None:
        files = {cell_of(r): self._file(r, group, checkout) for group in unit for r in group.sample}
        left = [c for c, file in files.items() if not file.is_file() and c not in state.crashes]
        if not left:
            return
        make_folder(files[left[0]].parent)
        with closing(checkout.run(left, self.carriage.jobs)) as outcomes:
            for outcome in outcomes:
                if outcome.error:
                    state.crashes[outcome.task] = f"{checkout.root}: {last_line(outcome.error)}"
                else:
                    state.n_run += 1
                    write_record(files[outcome.task], outcome.result)
                on_progress(state)

    def _compare(self, group: Group, crashes: Mapping[Cell | CurveCell, str]) -> None:
        group.decide("equal")
        for record in group.sample:
            seed = f"{group.key['problem']} seed {record['key']['seed']}"
            if error := crashes.get(cell_of(record)):
                group.decide("refused", f"{seed}: crashed with the code of {error}")
                return
            before, now = (read_record(self._file(record, group, side)) for side in self._sides)
            if found := difference(before, now):
                group.decide("refused", f"{seed}: {found}")
                return


def difference(before: Record, now: Record) -> str:
    """First difference between two results of one cell, as text; empty
    if they are bit-identical.
    """
    different = [
        (at, column, was, is_now)
        for column in COLUMNS
        for at, (was, is_now) in enumerate(zip_longest(before[column], now[column]))
        if json.dumps(was) != json.dumps(is_now)
    ]
    if different:
        at, column, was, is_now = min(different, key=lambda one: one[0])
        return f"trial {at}: {column} were {shorten(was)}, are {shorten(is_now)}"
    sizes = [[size for _, size, _ in side["rounds"]] for side in (before, now)]
    if sizes[0] != sizes[1]:
        return f"sizes of rounds were {shorten(sizes[0])}, are {shorten(sizes[1])}"
    if before["fallbacks"] != now["fallbacks"]:
        return f"fallbacks were {before['fallbacks']}, are {now['fallbacks']}"
    returned = [side.get("returned") for side in (before, now)]
    if json.dumps(returned[0]) != json.dumps(returned[1]):
        return f"returned configs were {shorten(returned[0])}, are {shorten(returned[1])}"
    return ""


def _selected(records: Sequence[Record], carriage: Carriage) -> list[Record]:
    methods = _chosen("method", carriage.methods, (r["label"] for r in records))
    problems = _chosen("problem", carriage.problems, (r["key"]["problem"] for r in records))
    chosen = [r for r in records if r["label"] in methods and r["key"]["problem"] in problems]
    if not chosen:
        listed = f"{', '.join(sorted(methods))} on {', '.join(sorted(problems))}"
        raise NasboError(f"{carriage.file}: there are no cells of {listed}")
    return chosen


def _chosen(what: str, wanted: Sequence[str], known: Iterable[str]) -> set[str]:
    listed = set(known)
    for name in wanted:
        if name not in listed:
            raise NasboError(f"{what} must be one of {', '.join(sorted(listed))}, got {name!r}")
    return set(wanted) or listed


def _grouped(records: Iterable[Record], n: int) -> list[Group]:
    """Groups with a deterministic sample each, chosen by a hash of the key."""
    found: dict[str, list[Record]] = {}
    for record in records:
        name = json.dumps([record["label"], record["key"] | {"seed": None}], sort_keys=True)
        found.setdefault(name, []).append(record)
    return [
        Group(mine, sorted(mine, key=lambda one: key_hash(without_version(one["key"])))[:n])
        for _, mine in sorted(found.items())
    ]


def _check(group: Group, before: Outcome[Cell], now: Outcome[Cell]) -> None:
    """Decide from its keys in both checkouts whether a group is to be replayed."""
    if error := before.error or now.error:
        group.decide("left out", f"cannot be run here: {error}")
    elif group.key == now.result:
        group.decide("current")
    elif changed := _changes(group.key, before.result):
        group.decide("refused", f"the old checkout did not make it: {changed}")
    elif changed := _changes(without_version(group.key), without_version(now.result)):
        group.decide("refused", f"the present code has another cell: {changed}")
    elif reason := _too_long(group.key["problem"]):
        group.decide("left out", reason)
    else:
        group.version = now.result["version"]


def _changes(published: Record, found: Record) -> str:
    return ", ".join(
        f"{name} is {found.get(name)!r}, published {published.get(name)!r}"
        for name in sorted(published.keys() | found.keys())
        if published.get(name) != found.get(name)
    )


def _too_long(problem: str) -> str:
    """Why a problem is not replayed: its evaluations are trainings, and this machine has none.

    Values that come with nasbo are not enough: the old code may not know them.
    """
    entry = find_entry(problem)
    if entry.cost != "seconds" or entry.store is None or entry.store().path.exists():
        return ""
    return f"takes hours: its values are trainings, and none are stored in {entry.store().path}"


def _refuse_together(unit: Sequence[Group]) -> None:
    """Refuse all groups of a method and batch if one of them differs."""
    refused = [group for group in unit if group.state == "refused"]
    for group in unit if refused else ():
        if group.state == "equal":
            group.decide("refused", f"see {refused[0].key['problem']}")


def _carried(record: Record, group: Group) -> Record:
    """A cell under the present version, with a note of its origin."""
    note = {"from": record["key"]["version"], "replays": len(group.sample)}
    return record | {
        "key": record["key"] | {"version": group.version},
        "carried": [*record.get("carried", ()), note],
    }
