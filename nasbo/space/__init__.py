"""Search spaces: an immutable tree of parameters, its subspaces, and the files that define it."""

from nasbo.space.load import find_space_file, load_space
from nasbo.space.parameter import Branch, Config, Parameter, Value
from nasbo.space.subspace import Coordinate, Subspace
from nasbo.space.tree import MAX_LISTED_SUBSPACES, Space

__all__ = [
    "MAX_LISTED_SUBSPACES",
    "Branch",
    "Config",
    "Coordinate",
    "Parameter",
    "Space",
    "Subspace",
    "Value",
    "find_space_file",
    "load_space",
]
