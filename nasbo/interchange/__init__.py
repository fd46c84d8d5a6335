"""Spaces and sweeps in the formats of other packages: ConfigSpace and Optuna.

Public: ``convert_space`` reads a space of any format and writes it in another one.
"""

from nasbo.interchange.convert import Converted, convert_space

__all__ = ["Converted", "convert_space"]
