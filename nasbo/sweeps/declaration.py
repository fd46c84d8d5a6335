"""Declaration of a setting: its kind, its flag, the commands that take it, what may change it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from nasbo.errors import SweepError
from nasbo.sweeps.kinds import Kind


class Scope(Enum):
    """What a setting belongs to, and so whether it may be another when a sweep goes on."""

    SWEEP = "another value is another sweep"
    RUN = "the machines of a run and the patience with them: each run may have its own"
    CHECKED_APART = "where a sweep is and how long: it may be another, by rules of its own"


@dataclass(frozen=True)
class Setting:
    """What is declared of a setting beside its type; a field of ``Sweep`` carries it.

    Attributes:
        kind: of its values.
        help: of its flag; ``{default}`` stands for what holds where the flag is not given.
        takers: the commands that have its flag: ``run`` (and so ``launch``), ``resume``,
            ``finalize``.
        flags: by default ``--`` and the name without its unit.
        scope: whether it may change when the sweep goes on.
        owner: the setting that says whose options these are.
        resource: Ray's name of what a trial takes so much of.
        name: of the field, filled in, as its
        default.
    """

    kind: Kind
    help: str
    takers: tuple[str, ...] = ("run",)
    flags: tuple[str, ...] = ()
    scope: Scope = Scope.SWEEP
    owner: str | None = None
    resource: str | None = None
    name: str = ""
    default: Any = None

    def help_for(self, command: str) -> str:
        """The help of the flag of a command."""
        default = f"{self.default:g}" if isinstance(self.default, float) else str(self.default)
        return self.help.replace("{default}", default if command == "run" else "as in the sweep")

    def check(self, value: Any) -> None:
        """Raise ``SweepError`` with the rule that a value breaks."""
        if value is None and self.default is None:
            return
        for rule in self.kind.rules:
            if not rule.holds(value):
                raise SweepError(rule.words.format(name=self.name, value=value))


def setting(default: Any, kind: Kind, words: str, **declared: Any) -> Any:
    """A field of ``Sweep``; the arguments are those of ``Setting``, ``dict`` stands for ``{}``."""
    described = {"setting": Setting(kind, words, **declared)}
    if default in (dict, list):
        return field(default_factory=default, metadata=described)
    return field(default=default, metadata=described)
