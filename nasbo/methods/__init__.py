"""Search methods, built by name with ``make_method``."""

from nasbo.methods.base import Method, Suggestion, Task, design_size
from nasbo.methods.registry import METHODS, make_method

__all__ = ["METHODS", "Method", "Suggestion", "Task", "design_size", "make_method"]
