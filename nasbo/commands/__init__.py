"""Commands of nasbo, one file per topic: parsing only, with imports inside for a quick ``--help``.

Public are the modules from which ``nasbo/cli.py`` takes its commands.
"""

__all__ = ["benches", "data", "launch", "reports", "spaces", "sweeps"]
