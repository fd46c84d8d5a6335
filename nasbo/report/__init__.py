"""Reports, figures and tables of spaces and sweeps.

Public are these modules: ``write`` (the report of a sweep, single figures), ``compare`` (several
sweeps), ``serve`` (a live report), ``figures`` (all of them by name), ``tree`` (of a space).
"""

__all__ = ["compare", "figures", "serve", "tree", "write"]
