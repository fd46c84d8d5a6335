"""Endings of runs, and the policy of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from nasbo.errors import NasboError

Again = Literal["never", "once", "counted", "always"]
Teaches = Literal["value", "worst", "tried", "nothing"]


@dataclass(frozen=True)
class Policy:
    """Consequences of an ending.

    Attributes:
        text: name in journals, in tables and for users.
        again: whether the run is started again; ``counted``: up to ``max_failures`` times.
        teaches: what the surrogate learns: the run's value, the worst score so far, that the config
            was tried, or nothing.
        is_failure: whether the trial counts as failed.
        blames: whether the config may be the cause.
    """

    text: str
    again: Again = "never"
    teaches: Teaches = "tried"
    is_failure: bool = True
    blames: bool = True


class Ending(Enum):
    """How a run ended. A new cause is one more line here."""

    FINISHED = Policy("finished", teaches="value", is_failure=False, blames=False)
    PAUSED = Policy("paused", teaches="nothing", is_failure=False, blames=False)
    DIVERGED = Policy("diverged", teaches="worst")
    INVALID = Policy("invalid", teaches="worst")
    OOM = Policy("oom", again="once")
    CRASHED = Policy("crashed", again="counted")
    KILLED = Policy("killed", again="counted")
    LOST = Policy("lost", again="always", teaches="nothing", blames=False)
    TIMEOUT = Policy("timeout", again="counted")
    STOPPED = Policy("stopped", is_failure=False, blames=False)
    NO_RESULT = Policy("no result")

    def __str__(self) -> str:
        return self.value.text

    @property
    def is_failure(self) -> bool:
        return self.value.is_failure

    @property
    def blames(self) -> bool:
        """Whether the config may be the cause."""
        return self.value.blames

    @property
    def teaches(self) -> Teaches:
        return self.value.teaches

    @staticmethod
    def of(text: object) -> Ending:
        """The ending with that name.

        Raises:
            NasboError: there is none; the message lists the known ones.
        """
        if isinstance(text, Ending):
            return text
        try:
            return _BY_TEXT[text]  # type: ignore[index]
        except (KeyError, TypeError) as error:
            known = ", ".join(CAUSES)
            raise NasboError(f"error must be one of {known}, got {text!r}") from error

    def may_run_again(self, n_before: int, n_counted: int, max_failures: int) -> bool:
        """Whether a run with this ending is started again.

        Args:
            n_before: number of earlier endings of this kind.
            n_counted: number of earlier endings by a counted cause.
            max_failures: maximum number of restarts after counted causes.
        """
        again = self.value.again
        if again in ("never", "once"):
            return again == "once" and n_before < 1
        return again == "always" or n_counted < max_failures


_BY_TEXT = {str(ending): ending for ending in Ending}
CAUSES = tuple(str(e) for e in Ending if e not in (Ending.FINISHED, Ending.PAUSED))
"""Causes that ``Search.tell`` accepts as an error."""
