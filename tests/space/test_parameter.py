"""One parameter: values, levels, and positions in [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nasbo.errors import ConfigError
from nasbo.space import Parameter
from nasbo.space.kinds import KINDS, Choice, Integer, Ordinal, PowerOfTwo, Real

INT = Integer("n", 2, 9)
LOG_INT = Integer("n", 1, 1000, log=True)
FLOAT = Real("x", -2.0, 2.0)
LOG_FLOAT = Real("x", 1e-4, 1.0, log=True)
POWER = PowerOfTwo("size", 5, 7)
CHOICE = Choice("kind", ("a", 1, 2.5, True, None))
ORDINAL = Ordinal("dose", ("low", "medium", "high"))
ALL = [INT, LOG_INT, FLOAT, LOG_FLOAT, POWER, CHOICE, ORDINAL]


def test_every_kind_is_tested() -> None:
    assert {parameter.kind for parameter in ALL} == set(KINDS)


@pytest.mark.parametrize("parameter", ALL)
def test_samples_are_canonical_and_encode(parameter: Parameter) -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        value = parameter.sample(rng)
        assert parameter.canonical(value) == value
        unit = parameter.to_unit(value)
        assert 0.0 <= unit <= 1.0
        assert parameter.from_unit(unit) == pytest.approx(value)


@pytest.mark.parametrize("parameter", ALL)
def test_ends_of_the_unit_interval(parameter: Parameter) -> None:
    low, high = parameter.from_unit(0.0), parameter.from_unit(1.0)
    assert (parameter.to_unit(low), parameter.to_unit(high)) == (0.0, 1.0)
    assert (parameter.from_unit(-3), parameter.from_unit(7)) == (low, high)


def test_samples_reach_every_level() -> None:
    rng = np.random.default_rng(0)
    assert {INT.sample(rng) for _ in range(300)} == set(range(2, 10))
    assert {POWER.sample(rng) for _ in range(60)} == {32, 64, 128}
    assert len({repr(CHOICE.sample(rng)) for _ in range(200)}) == 5


def test_log_samples_are_uniform_in_the_logarithm() -> None:
    rng = np.random.default_rng(0)
    for parameter, middle in ((LOG_INT, 31.6), (LOG_FLOAT, 1e-2)):
        draws = np.array([parameter.sample(rng) for _ in range(4_000)], dtype=float)
        assert np.mean(draws < middle) == pytest.approx(0.5, abs=0.04)
        assert parameter.low <= draws.min()
        assert draws.max() <= parameter.high
        assert parameter.from_unit(0.5) == pytest.approx(middle, rel=0.03)


def test_choices_stand_at_index_over_k_minus_one() -> None:
    assert [CHOICE.to_unit(value) for value in CHOICE.values] == [0, 0.25, 0.5, 0.75, 1]
    assert [POWER.to_unit(value) for value in (32, 64, 128)] == [0, 0.5, 1]
    assert Choice("c", ("only",)).to_unit("only") == 0.0
    assert Integer("n", 3, 3).to_unit(3) == 0.0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (INT, 1),
        (INT, 10),
        (INT, 2.5),
        (INT, True),
        (INT, "3"),
        (INT, None),
        (INT, float("nan")),
        (INT, float("inf")),
        (INT, 10**400),
        pytest.param(INT, 10**5_000, id="unprintable"),
        (INT, [3]),
        (FLOAT, 2.1),
        (FLOAT, "1"),
        (FLOAT, True),
        (FLOAT, float("nan")),
        (FLOAT, 10**400),
        (POWER, 5),
        (POWER, 48),
        (POWER, 256),
        (POWER, -64),
        (POWER, 0),
        (CHOICE, "b"),
        (CHOICE, False),
        (CHOICE, 0),
        (CHOICE, "1"),
        (CHOICE, [1]),
        (CHOICE, np.array([1, 2])),
    ],
)
def test_values_outside_are_refused(parameter: Parameter, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"'{parameter.name}' must be .*, got "):
        parameter.canonical(value)


def test_equal_numbers_become_the_value_of_the_space() -> None:
    assert repr(INT.canonical(3.0)) == "3"
    assert repr(FLOAT.canonical(1)) == "1.0"
    assert repr(CHOICE.canonical(1.0)) == "1"
    assert CHOICE.canonical(True) is True
    assert repr(POWER.canonical(64.0)) == "64"


def test_ranges_in_words() -> None:
    assert INT.range_text() == "an integer in [2, 9]"
    assert LOG_INT.range_text() == "an integer in [1, 1000] (log)"
    assert LOG_FLOAT.range_text() == "a number in [0.0001, 1] (log)"
    assert POWER.range_text() == "a power of two in [32, 128]"
    assert CHOICE.range_text() == "one of 'a', 1, 2.5, True, None"
    assert ORDINAL.range_text() == "one of 'low', 'medium', 'high' (in this order)"
    assert Choice("c", tuple(range(99))).range_text().endswith("49, ...")


@pytest.mark.parametrize("parameter", ALL)
def test_snapped_rows_are_those_of_the_nearest_values(parameter: Parameter) -> None:
    x = np.random.default_rng(0).random(200)
    one_by_one = [parameter.to_unit(parameter.from_unit(unit)) for unit in x]
    assert parameter.snap(x) == pytest.approx(one_by_one, abs=1e-12)


@pytest.mark.parametrize("parameter", ALL)
def test_flat_numbers_come_back(parameter: Parameter) -> None:
    rng = np.random.default_rng(0)
    low, high, _ = parameter.flat_range
    for _ in range(50):
        value = parameter.sample(rng)
        number = parameter.to_flat(value)
        assert low <= number <= high
        assert parameter.from_flat(number) == value


def test_middle_of_an_order_is_in_the_middle() -> None:
    assert (ORDINAL.middle(), CHOICE.middle(), INT.middle()) == ("medium", "a", 6)
