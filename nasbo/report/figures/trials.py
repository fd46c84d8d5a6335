"""Table of all trials: its data, which the scripts of the page sort, filter and search."""

from __future__ import annotations

from nasbo.report.study import Figure, NoDataError, Study
from nasbo.report.trials import data_element

NAME = "trials"


def list_trials(study: Study) -> Figure:
    """All trials with everything that is known of each.

    Raises:
        NoDataError: there is no trial yet.
    """
    n = len(study.history.trials)
    if not n:
        raise NoDataError("there is no trial so far")
    html = (
        f'<div id="trials"></div>{data_element(study)}<noscript><p>This table needs JavaScript; '
        "nasbo export prints all trials.</p></noscript>"
    )
    caption = (
        f"All {n:,} trials; the number of a trial opens all that is known of it. The search takes "
        "words of configs, and comparisons with the name of a parameter, a metric or a column: "
        "name=value, name>value, name<=value."
    )
    return Figure(NAME, "All trials", caption, html=html, is_wide=True)
