"""Declaration of a setting: its kind, flag, commands, and whether it may change later."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from nasbo.errors import SweepError
from nasbo.sweeps.kinds import Kind


class Scope(Enum):
    """What a setting affects, and so whether it may change when a sweep is resumed."""

    SWEEP = "another value is another sweep"
    RUN = "the resources and retries of a run: may differ between runs"
    CHECKED_APART = "the folder and length of a sweep: may change, with separate checks"


@dataclass(frozen=True)
class Setting:
    """Metadata of a setting, carried by a field of ``Sweep``.

    Attributes:
        kind: kind of its values.
        help: help of its flag; ``{default}`` is replaced by the value that holds without the flag.
        takers: commands that have the flag: ``run`` (and so ``launch``), ``resume``, ``finalize``.
        flags: flags; by default ``--`` and the name without its unit.
        scope: whether it may change when the sweep is resumed.
        owner: the setting that names whose options these are.
        resource: Ray's name of the resource of which this is the amount per trial.
        name: name of the field, filled in, as its default is.
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
        """Help of the flag for a command."""
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
    """A field of ``Sweep``; arguments as in ``Setting``; ``dict`` or
    ``list`` means an empty one.
    """
    described = {"setting": Setting(kind, words, **declared)}
    if default in (dict, list):
        return field(default_factory=default, metadata=described)
    return field(default=default, metadata=described)
