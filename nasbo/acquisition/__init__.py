"""Where to look next: log-EI in each subspace or in sampled ones, or Thompson sampling."""

from nasbo.acquisition.choose import ACQUISITIONS, Acquisition, Chooser, default_acquisition
from nasbo.acquisition.improvement import log_ei
from nasbo.acquisition.maximise import Found, Starts, maximise_per_subspace

__all__ = [
    "ACQUISITIONS",
    "Acquisition",
    "Chooser",
    "Found",
    "Starts",
    "default_acquisition",
    "log_ei",
    "maximise_per_subspace",
]
