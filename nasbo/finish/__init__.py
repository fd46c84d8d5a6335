"""The end of a sweep: its best configs are trained in full, exported and described.

Public are these modules: ``finalists`` (what is wished for) and ``finalize`` (all of it).
"""

__all__ = ["finalists", "finalize"]
