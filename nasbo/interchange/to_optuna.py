"""Python function that suggests configs of a space to Optuna, parameter by parameter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nasbo.interchange.listing import Translation, listing_of, short_name
from nasbo.space import Parameter, Space
from nasbo.space.kinds import Number, Ordinal
from nasbo.space.walk import ROOT, Key, child_keys, names

_INDENT = "    "


def suggest_code(space: Space) -> tuple[str, tuple[str, ...]]:
    """The text of a module with ``suggest(trial)``, and what it does not say, in words."""
    _, translation = listing_of(space)
    lines = [
        f'"""Search space {short_name(space)}, for Optuna."""',
        "",
        "",
        "def suggest(trial):",
        '    """A config, suggested parameter by parameter; all in it is plain values."""',
        "    config = {}",
        *_Writer(translation).group(space.parameters, ROOT, 1),
        "    return config",
        "",
    ]
    return "\n".join(lines), order_losses(space)


def order_losses(space: Space) -> tuple[str, ...]:
    """Parameters whose order Optuna does not know, and defaults."""
    found: dict[str, None] = {}
    for node in space.nodes:
        one = node.parameter
        if one.is_ordered and not isinstance(one, Number):
            what = "powers of two" if not isinstance(one, Ordinal) else "values in an order"
            found[f"{one.name!r} is {what}: Optuna has categories, without order"] = None
        if one.has_default:
            found[f"{one.name!r} has the default {one.default!r}: Optuna has none"] = None
    return tuple(found)


@dataclass(frozen=True)
class _Writer:
    """Lines of code of groups of parameters."""

    translation: Translation

    def group(self, group: Sequence[Parameter], key: Key, depth: int) -> Iterator[str]:
        for parameter in group:
            yield from self._one(parameter, key, depth)

    def _one(self, parameter: Parameter, key: Key, depth: int) -> Iterator[str]:
        indent = _INDENT * depth
        target = f"config[{parameter.name!r}]" + ("[at - 1]" if key[1] else "")
        yield f"{indent}{target} = {self._suggestion(parameter, key)}"
        if parameter.repeated:
            yield from self._lists(parameter, key, depth, target)
        word = "if"
        for below in parameter.branches:
            if not below.parameters:
                continue
            (child,) = child_keys(parameter, parameter.level_of(below.value), key)
            yield f"{indent}{word} {target} {_equals(below.value)}:"
            yield from self.group(below.parameters, child, depth + 1)
            word = "elif"

    def _lists(self, parameter: Parameter, key: Key, depth: int, target: str) -> Iterator[str]:
        indent = _INDENT * depth
        for name in names(parameter.repeated):
            yield f"{indent}config[{name!r}] = [None] * {target}"
        yield f"{indent}for at in range(1, {target} + 1):"
        last = child_keys(parameter, parameter.n_levels - 1, key)[-1]
        yield from self.group(parameter.repeated, last, depth + 1)

    def _suggestion(self, parameter: Parameter, key: Key) -> str:
        name = repr(self.translation.names[key, parameter.name])
        if key[1]:  # the last place of a list stands for all of them
            stem, _, rest = name.rpartition(f"[{key[1]}]")
            name = f"f{_braced(stem)}[{{at}}]{_braced(rest)}"
        if not isinstance(parameter, Number):
            values = [*map(parameter.value_at, range(parameter.n_levels))]
            return f"trial.suggest_categorical({name}, {values!r})"
        low, high, log = parameter.flat_range
        word, kind = ("float", float) if parameter.is_continuous else ("int", int)
        ends = f"{kind(low)!r}, {kind(high)!r}" + (", log=True" if log else "")
        return f"trial.suggest_{word}({name}, {ends})"


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _equals(value: object) -> str:
    return f"is {value}" if value is None or isinstance(value, bool) else f"== {value!r}"
