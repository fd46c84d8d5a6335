"""Contract tests for user-defined methods, surrogates and acquisitions.

Public: contracts as base classes of pytest classes, cases that describe what is under
test, and small spaces for the tests of methods and surrogates. pytest is required: ``pip
install 'nasbo[testing]'``.
"""

try:
    import pytest
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nasbo.testing needs the package 'pytest': pip install 'nasbo[testing]'", name="pytest"
    ) from error

# Before they are imported, so that a failed assertion shows the values, as in a test module.
pytest.register_assert_rewrite(
    "nasbo.testing.acquisitions",
    "nasbo.testing.methods",
    "nasbo.testing.searches",
    "nasbo.testing.surrogates",
)

from nasbo.testing.acquisitions import AcquisitionContract  # noqa: E402
from nasbo.testing.methods import LongMethodContract, MethodContract  # noqa: E402
from nasbo.testing.searches import MethodCase  # noqa: E402
from nasbo.testing.spaces import SPACES  # noqa: E402
from nasbo.testing.surrogates import SurrogateCase, SurrogateContract  # noqa: E402

__all__ = [
    "SPACES",
    "AcquisitionContract",
    "LongMethodContract",
    "MethodCase",
    "MethodContract",
    "SurrogateCase",
    "SurrogateContract",
]
