"""nasbo: neural architecture search by attention-based Bayesian optimisation, on Ray.

``Search`` is the ask/tell interface, without Ray; ``nasbo.tune`` has the Ray Tune searcher. Names
in the ``__all__`` of a package are public, here and below; everything else may change.
"""

import warnings

from nasbo.errors import ConfigError, JournalError, NasboError, SpaceError, SweepError
from nasbo.features import Features
from nasbo.history import History, Trial
from nasbo.loop import run_loop
from nasbo.methods import METHODS, make_method
from nasbo.search import Search
from nasbo.space import Config, Space, Subspace, load_space
from nasbo.sweeps import load_sweep
from nasbo.sweeps.callbacks import Callback

__version__ = "0.1.0"

# A warning of torch that only developers of gpytorch can act on.
warnings.filterwarnings("ignore", r".torch\.jit\.script. is deprecated", FutureWarning)

__all__ = [
    "METHODS",
    "Callback",
    "Config",
    "ConfigError",
    "Features",
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
