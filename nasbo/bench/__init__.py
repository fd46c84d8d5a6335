"""Measurements: what searching costs and what it brings.

Public are these modules: ``problem`` and ``problems`` (what is searched), ``suites``, ``plan`` and
``run`` (methods, problems and seeds to cells), ``results`` and ``table`` (cells to tables).
"""

__all__ = ["plan", "problem", "problems", "results", "run", "suites", "table"]
