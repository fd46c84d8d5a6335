"""nasbo: neural architecture search by attention-based Bayesian optimisation, on Ray.

``Search`` is the ask/tell face and needs no Ray; ``nasbo.tune`` holds the Ray Tune searcher. What a
package lists in ``__all__`` is public, here and below; all else may change.
"""

import warnings

from nasbo.errors import ConfigError, JournalError, NasboError, SpaceError, SweepError
from nasbo.history import History, Trial
from nasbo.loop import run_loop
from nasbo.methods import METHODS, make_method
from nasbo.search import Search
from nasbo.space import Config, Space, Subspace, load_space
from nasbo.sweeps import load_sweep
from nasbo.sweeps.callbacks import Callback

__version__ = "0.1.0"

# torch tells users of gpytorch what only its developers can change.
warnings.filterwarnings("ignore", r".torch\.jit\.script. is deprecated", FutureWarning)

__all__ = [
    "METHODS",
    "Callback",
    "Config",
    "ConfigError",
    "History",
    "JournalError",
    "NasboError",
    "Search",
    "Space",
    "SpaceError",
    "Subspace",
    "SweepError",
    "Trial",
    "load_space",
    "load_sweep",
    "make_method",
    "run_loop",
]
