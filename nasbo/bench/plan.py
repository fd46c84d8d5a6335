"""Plan of a benchmark: problems, methods and seeds, checked and listed as cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nasbo.bench.cell import TOLD, Cell, Protocol, features_of
from nasbo.bench.curves.cell import CurveCell, CurveProtocol, check_curve_method, check_package
from nasbo.bench.curves.ledger import curve_of
from nasbo.bench.lookup import find_problem
from nasbo.bench.problem import Problem
from nasbo.bench.spec import parse_method
from nasbo.errors import NasboError


@dataclass(frozen=True)
class Part:
    """Methods × problems × seeds under one protocol."""

    problems: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: int
    protocol: Protocol | CurveProtocol = field(default_factory=Protocol)


@dataclass(frozen=True)
class Plan:
    """A checked benchmark.

    Attributes:
        parts: what is run; the first method of the first part is compared with the others.
        left_out: methods that cannot run here, with the reason.
        problems: the problems by name, made once.
    """

    parts: tuple[Part, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, Problem] = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """Labels in the order of their first occurrence."""
        return list(dict.fromkeys(label for part in self.parts for label in part.methods))

    @property
    def cells(self) -> list[Cell | CurveCell]:
        """Cells ordered by seed, so that a stopped run has compared all methods on some seeds."""
        found: dict[Cell | CurveCell, None] = {}
        for seed in range(max(part.seeds for part in self.parts)):
            for part in self.parts:
                for problem in part.problems if seed < part.seeds else ():
                    for method in part.methods:
                        found[_cell(problem, method, seed, part.protocol)] = None
        return list(found)


def _cell(
    problem: str, method: str, seed: int, protocol: Protocol | CurveProtocol
) -> Cell | CurveCell:
    if isinstance(protocol, CurveProtocol):
        return CurveCell(problem, method, seed, protocol)
    return Cell(problem, method, seed, protocol)


def make_plan(parts: Sequence[Part], skip_missing: bool = False) -> Plan:
    """Check a benchmark before its first search runs.

    Args:
        parts: what to run; methods in any notation.
        skip_missing: leave out methods whose packages are missing, instead of raising.

    Raises:
        NasboError: an unknown name, a problem that cannot be made, or a missing package.
    """
    if not parts or not all(part.problems and part.methods for part in parts):
        raise NasboError("a benchmark needs at least one problem and one method")
    if any(part.seeds < 1 for part in parts):
        raise NasboError("seeds >= 1 must hold")
    named = [_plain(part) for part in parts]
    problems = {name: _make(name) for part in named for name in part.problems}
    for part in named:
        _check_protocol(part, problems)
    missing = _missing([label for part in named for label in part.methods], problems)
    if missing and not skip_missing:
        reasons = "; ".join(missing.values())
        raise NasboError(f"{reasons} (--skip-missing runs the others and says so in the table)")
    kept = [
        Part(part.problems, tuple(m for m in part.methods if m not in missing), part.seeds,
             part.protocol)
        for part in named
    ]  # fmt: skip
    if not all(part.methods for part in kept):
        raise NasboError("no method is left: " + "; ".join(missing.values()))
    return Plan(tuple(kept), missing, problems)


def _plain(part: Part) -> Part:
    labels = tuple(dict.fromkeys(parse_method(method).label for method in part.methods))
    return Part(tuple(dict.fromkeys(part.problems)), labels, part.seeds, part.protocol)


def _make(name: str) -> Problem:
    try:
        return find_problem(name)
    except NasboError as error:
        raise NasboError(f"problem {name!r}: {error}") from error


def _check_protocol(part: Part, problems: Mapping[str, Problem]) -> None:
    """Raise if a method or a problem does not fit the part's protocol."""
    specs, protocol = [parse_method(label) for label in part.methods], part.protocol
    if isinstance(protocol, CurveProtocol):
        for spec in specs:
            check_curve_method(spec, protocol)
        for name in part.problems:
            curve_of(problems[name])
        return
    for spec in specs:
        for name in part.problems:
            features_of(spec, problems[name])
    if ruled := [spec.label for spec in specs if set(spec.rules) - {TOLD}]:
        raise NasboError(f"only trials of the suite 'curves' are trained in part, got {ruled[0]!r}")


def _missing(labels: Sequence[str], problems: Mapping[str, Problem]) -> dict[str, str]:
    """Methods whose packages are not installed, with the error; other errors are raised."""
    space = next(iter(problems.values())).space
    missing = {}
    for label in dict.fromkeys(labels):
        spec = parse_method(label)
        try:
            check_package(spec, space)
        except NasboError as error:
            if not is_missing_package(error):
                raise
            missing[label] = str(error)
    return missing


def is_missing_package(error: NasboError) -> bool:
    """Whether a method cannot be made because a package is not installed."""
    return isinstance(error.__cause__, ImportError) and "needs the package" in str(error)
