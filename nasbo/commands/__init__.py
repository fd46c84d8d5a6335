"""The words of the command line, a file per topic: parsing only, imports inside (quick help).

Public are the modules that ``nasbo/cli.py`` takes its commands from.
"""

__all__ = ["benches", "data", "launch", "reports", "spaces", "sweeps"]
