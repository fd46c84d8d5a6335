"""Benchmarks of methods: problems, suites, results, tables, and measurements of overhead.

Public modules: ``problem`` and ``problems`` (the problems), ``suites``, ``plan`` and ``run`` (from
methods, problems and seeds to cells), ``results`` and ``table`` (from cells to tables).
"""

__all__ = ["plan", "problem", "problems", "results", "run", "suites", "table"]
