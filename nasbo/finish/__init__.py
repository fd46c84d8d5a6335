"""Finalisation of a sweep: its best configs are trained in full, exported and described.

Public are these modules: ``finalists`` (options and choice) and ``finalize`` (the whole process).
"""

__all__ = ["finalists", "finalize"]
