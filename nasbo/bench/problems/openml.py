"""OpenML data sets with two classes, by name.

A set is read from `openml/` in the data folder. If its file is missing, scikit-learn fetches it
from openml.org. Large sets are reduced to a fixed stratified subset, so that evaluations stay
cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nasbo.bench.problems.entry import Half
from nasbo.bench.problems.folders import data_folder
from nasbo.errors import NasboError

MAX_ROWS = 600


@dataclass(frozen=True)
class DataSet:
    """Origin of a data set, and the size by which a file is checked.

    Attributes:
        n_features: number of features in the file.
        n_dropped: number of features at the end that are left out.
    """

    file: str
    data_id: int
    n_rows: int
    n_features: int
    half: Half
    n_dropped: int = 0


SETS: dict[str, DataSet] = {
    "diabetes": DataSet("37_diabetes.csv", 37, 768, 8, "tuning"),
    # The last six columns are the faults themselves: they determine the label.
    "steel": DataSet("9967_steel-plates-fault.csv", 1504, 1941, 33, "held-out", n_dropped=6),
    "monks1": DataSet("extra_monks-problems-1.csv", 333, 556, 6, "tuning"),
    "monks2": DataSet("extra_monks-problems-2.csv", 334, 601, 6, "held-out"),
    "blood": DataSet("10101_blood-transfusion-service-center.csv", 1464, 748, 4, "tuning"),
    "wdbc": DataSet("9946_wdbc.csv", 1510, 569, 30, "held-out"),
    "banknote": DataSet("10093_banknote-authentication.csv", 1462, 1372, 4, "tuning"),
    "monks3": DataSet("3494_monks-problems-3.csv", 335, 554, 6, "held-out"),
}


@dataclass(frozen=True)
class Table:
    """Features (n, d) and labels (n,), 0 or 1."""

    features: NDArray[np.float64]
    labels: NDArray[np.int64]


def load_set(name: str) -> Table:
    """A data set by its name in `SETS`.

    Raises:
        NasboError: the file is missing and cannot be fetched, or it has another size.
    """
    return _load(name, data_folder())


@lru_cache(maxsize=32)
def _load(name: str, folder: Path) -> Table:
    data_set = SETS[name]
    path = folder / "openml" / data_set.file
    table = _read(path) if path.exists() else _fetch(name, data_set, path)
    n_rows, n_features = table.features.shape
    if (n_rows, n_features) != (data_set.n_rows, data_set.n_features):
        raise NasboError(
            f"{path}: {name} must have {data_set.n_rows} rows and {data_set.n_features} features, "
            f"got {n_rows} and {n_features}"
        )
    features = table.features[:, : n_features - data_set.n_dropped]
    return _part(Table(features, table.labels))


def _read(path: Path) -> Table:
    try:
        rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    except (OSError, ValueError) as error:
        raise NasboError(f"{path}: a header and rows of numbers are needed: {error}") from error
    return Table(rows[:, :-1], _labels(rows[:, -1]))


def _fetch(name: str, data_set: DataSet, path: Path) -> Table:
    from sklearn.datasets import fetch_openml

    try:
        found = fetch_openml(data_id=data_set.data_id, as_frame=True, parser="auto")
    except (OSError, ValueError) as error:  # no network, or the server's answer is not a data set
        raise NasboError(
            f"the data set {name} is needed: put {path.name} (header, features, class last) into "
            f"{path.parent}, or let this machine reach openml.org; {path} does not exist, and "
            f"fetching data set {data_set.data_id} failed: {error}"
        ) from error
    columns = [_numbers(found.data[column]) for column in found.data.columns]
    return Table(np.column_stack(columns), _labels(np.asarray(found.target, dtype=str)))


def _numbers(column: Any) -> NDArray[np.float64]:
    """A column of a data frame as numbers; categories become codes."""
    is_category = str(column.dtype) == "category"
    numbers: NDArray[np.float64] = np.asarray(
        column.cat.codes if is_category else column, dtype=np.float64
    )
    return numbers


def _labels(column: NDArray[Any]) -> NDArray[np.int64]:
    return np.unique(column, return_inverse=True)[1].astype(np.int64)


def _part(table: Table) -> Table:
    """A stratified subset of at most MAX_ROWS rows."""
    if len(table.labels) <= MAX_ROWS:
        return table
    rng, share = np.random.default_rng(0), MAX_ROWS / len(table.labels)
    of_class = [rng.permutation(np.flatnonzero(table.labels == label)) for label in (0, 1)]
    rows = np.sort(np.concatenate([rows[: round(share * len(rows))] for rows in of_class]))
    return Table(table.features[rows], table.labels[rows])
