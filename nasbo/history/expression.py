"""Arithmetic expressions of named numbers, parsed without ``eval``.

Numbers, names, ``+ - * / **``, parentheses and a few functions are allowed, such as in MnasNet's
``accuracy * (latency_ms / 80) ** -0.07`` (Tan et al., CVPR 2019).
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nasbo.errors import NasboError, shorten

MAX_LENGTH = 500
_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "log": math.log,
    "log10": math.log10,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "min": min,
    "max": max,
    "abs": abs,
}


@dataclass(frozen=True)
class Expression:
    """A parsed expression.

    Attributes:
        text: as it was given.
        names: of the numbers that it needs, in the order of their appearance.
    """

    text: str
    names: tuple[str, ...]
    body: ast.expr

    def __call__(self, numbers: Mapping[str, float]) -> float:
        """The value; not a number where arithmetic fails, as in a division by zero.

        Args:
            numbers: at least those of ``names``.
        """
        try:
            value = float(_value(self.body, numbers))
        except (ArithmeticError, ValueError, TypeError):  # complex roots are no floats
            return math.nan
        return value


@lru_cache(maxsize=64)
def parse_expression(text: str) -> Expression:
    """Parse an expression.

    Raises:
        NasboError: it is no expression, or has a part that is not allowed.
    """
    if len(text) > MAX_LENGTH:
        raise NasboError(f"an expression has at most {MAX_LENGTH} characters, got {len(text)}")
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NasboError(f"not an expression: {shorten(text)}") from error
    names: dict[str, None] = {}
    _check(body, names)
    return Expression(text, tuple(names), body)


def _check(node: ast.expr, names: dict[str, None]) -> None:
    """Raise for a part that is not allowed; collect the names."""
    if isinstance(node, ast.Name):
        names[node.id] = None
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        _check(node.left, names)
        _check(node.right, names)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        _check(node.operand, names)
    elif _is_call(node):
        for argument in node.args:  # type: ignore[attr-defined]
            _check(argument, names)
    elif not _is_number(node):
        known = ", ".join(_FUNCTIONS)
        raise NasboError(
            f"an expression has numbers, names, + - * / ** and {known}; got "
            f"{shorten(ast.unparse(node))}"
        )


def _is_call(node: ast.expr) -> bool:
    is_known = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return is_known and node.func.id in _FUNCTIONS and bool(node.args) and not node.keywords  # type: ignore[attr-defined]


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _value(node: ast.expr, numbers: Mapping[str, float]) -> Any:
    if isinstance(node, ast.Name):
        return float(numbers[node.id])
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, numbers), _value(node.right, numbers)
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, numbers))
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return _FUNCTIONS[node.func.id](*(_value(one, numbers) for one in node.args))
