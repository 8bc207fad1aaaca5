"""Formulas over the columns of a table: `weight / (height / 100) ** 2`, `sex == "f"`.

A formula is read as Python reads an expression, but only numbers, texts, names of columns, a few
functions and operators are let in, and nothing is executed but what stands in the tables below.
A column whose name is no word is written between backticks: `` `Height (cm)` / 100 ``.
"""

from __future__ import annotations

import ast
import operator
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm_cli.arrays import Array

Gaps = tuple[Mapping[str, NDArray[np.bool_]], Mapping[str, NDArray[np.bool_]]]

LONGEST = 1000
DEEPEST = 300  # levels, each two calls when it is evaluated; a sum has one for every term
_QUOTED = re.compile(r"`([^`]*)`")
_EQUAL = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_ARITHMETIC: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: np.power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_COMPARED: dict[type, Callable[..., Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "exp": np.exp,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "min": lambda *x: np.minimum.reduce(np.broadcast_arrays(*x)),
    "max": lambda *x: np.maximum.reduce(np.broadcast_arrays(*x)),
}
_INVERSE = {
    "log": "exp(y)",
    "log10": "10.0 ** y",
    "log1p": "expm1(y)",
    "exp": "log(y)",
    "expm1": "log1p(y)",
    "sqrt": "y ** 2",
}
# The one side of l + r = y and its like, by the operator: l, then r.
_UNDONE = {
    ast.Add: ("y - r", "y - l"),
    ast.Sub: ("y + r", "l - y"),
    ast.Mult: ("y / r", "y / l"),
    ast.Div: ("y * r", "l / y"),
    ast.Pow: ("y ** (1.0 / r)", "log(y) / log(l)"),
}
RESULT = "the result"
# How the left side of a comparison is limited by the right one, and the right one by the left.
_SYMBOL = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!="}
_MIRRORED = {ast.Gt: "<", ast.GtE: "<=", ast.Lt: ">", ast.LtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


@dataclass(frozen=True)
class Formula:
    """An expression over columns.

    text : as it was written;  names : of the columns that it names, in order of appearance
    """

    text: str
    names: tuple[str, ...]
    _tree: ast.expr
    _column: Mapping[str, str]  # by the word that stands for it

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that it compares with."""
        found = (n.value for n in ast.walk(self._tree) if isinstance(n, ast.Constant))
        return tuple(value for value in found if isinstance(value, str))

    @cached_property
    def counted(self) -> frozenset[str]:
        """The columns that it takes for numbers: not compared with texts alone, by ==, != or in."""
        compared = [sides for sides in _equal_sides(self._tree) if not any(map(_is_number, sides))]
        levels = {id(side) for sides in compared for side in sides}
        return frozenset(self._column[n.id] for n in _names(self._tree) if id(n) not in levels)

    @property
    def is_condition(self) -> bool:
        """Whether it is true or false of a row."""
        tree = self._tree
        negated = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
        return isinstance(tree, ast.Compare | ast.BoolOp) or negated

    @cached_property
    def limits(self) -> tuple[tuple[str, str, float], ...]:
        """What a condition that is true says of columns of numbers: (column, `>=`, number)."""
        return tuple(
            (self._column[side.id], how, _number(other))
            for node in _joined_by_and(self._tree)
            for left, op, right in zip(
                (node.left, *node.comparators), node.ops, node.comparators, strict=False
            )
            for side, how, other in (
                (left, _SYMBOL.get(type(op), ""), right),
                (right, _MIRRORED.get(type(op), ""), left),
            )
            if isinstance(side, ast.Name) and how and _is_constant(other)
        )

    def truth(self, columns: Mapping[str, Array], gaps: Gaps) -> Array:
        """Return 1 where a condition is true (n,), 0 where it is false, NaN where nothing tells.

        `and` of what is false is false whatever the rest is, `or` of what is true is true. Of a
        column that has no value in a row no comparison is true.

        gaps : by column the rows (n,) where its value is not known, and those where it has none
        """
        with np.errstate(all="ignore"):
            return self._truth(self._tree, columns, gaps, negated=False)

    def evaluate(self, columns: Mapping[str, Array]) -> Array:
        """Return its value (n,) given the columns that it names: float64, or texts of levels."""
        with np.errstate(all="ignore"):
            return np.asarray(self._value(self._tree, columns))

    def solve(self, name: str, value: Array, columns: Mapping[str, Array]) -> Array | None:
        """Return what a column must be (n,) for the formula to have a value, the others given.

        None where the column stands in it more than once, or in a way that is not undone. Of two
        roots the one above 0.
        """
        inverse = self.solved_for(name, RESULT)
        if inverse is None:
            return None
        return inverse.evaluate({**columns, RESULT: np.asarray(value)})

    def solved_for(self, name: str, result: str) -> Formula | None:
        """Return what a column must be, as a formula over the others and the one of the result."""
        text = _solved(self.text, name, result)
        return None if text is None else _parse(text)

    def _value(self, node: ast.expr, columns: Mapping[str, Array]) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return np.float64(number)
            case ast.Constant():
                return node.value
            case ast.Name():
                return columns[self._column[node.id]]
            case ast.UnaryOp(op=ast.Not()):
                return np.logical_not(self._value(node.operand, columns))
            case ast.UnaryOp():
                return _ARITHMETIC[type(node.op)](self._as_number(node.operand, columns))
            case ast.BinOp():
                left = self._as_number(node.left, columns)
                return _ARITHMETIC[type(node.op)](left, self._as_number(node.right, columns))
            case ast.Call():
                found = [self._as_number(one, columns) for one in node.args]
                return _FUNCTIONS[_called(node)](*found)
            case ast.BoolOp():
                parts = np.broadcast_arrays(*(self._value(one, columns) for one in node.values))
                both = isinstance(node.op, ast.And)
                return (np.logical_and if both else np.logical_or).reduce(parts)
            case ast.Compare():
                return self._compared(node, columns)
        raise AssertionError(ast.dump(node))

    def _as_number(self, node: ast.expr, columns: Mapping[str, Array]) -> Array:
        """Return the value of a part as float64: 1 where it is true, and 1 / 0 is infinite."""
        return np.asarray(self._value(node, columns), dtype=np.float64)

    def _truth(
        self,
        node: ast.expr,
        columns: Mapping[str, Array],
        gaps: Gaps,
        *,
        negated: bool,
    ) -> Array:
        """Return `truth` of a part of the condition, or of its contrary."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._truth(node.operand, columns, gaps, negated=not negated)
        if isinstance(node, ast.BoolOp):
            truths = (self._truth(one, columns, gaps, negated=negated) for one in node.values)
            parts = np.broadcast_arrays(*truths)
            decides = 0.0 if isinstance(node.op, ast.And) != negated else 1.0
            decided = np.any([part == decides for part in parts], axis=0)
            return np.where(decided, decides, np.sum(parts, axis=0) * 0.0 + 1.0 - decides)
        names = {self._column[name.id] for name in _names(node)}
        value = np.asarray(self._value(node, columns)).astype(bool) != negated
        unknown, absent = (np.any([one[name] for name in names], axis=0) for one in gaps)
        return np.where(absent, 0.0, np.where(unknown, np.nan, value.astype(np.float64)))

    def _compared(self, node: ast.Compare, columns: Mapping[str, Array]) -> Array:
        left = self._value(node.left, columns)
        found: Array = np.array(True)
        for op, side in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                assert isinstance(side, ast.List | ast.Tuple)
                among = [np.asarray(left == self._value(one, columns)) for one in side.elts]
                is_in = np.logical_or.reduce(np.broadcast_arrays(*among))
                found = found & (is_in if isinstance(op, ast.In) else ~is_in)
                continue
            right = self._value(side, columns)
            found = found & np.asarray(_COMPARED[type(op)](left, right))
            left = right
        return np.asarray(found)


def parse_formula(text: str) -> Formula:
    """Return the formula that a text is; ValueError says in a phrase why it is none."""
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters")
    return _parse(text)


@lru_cache(maxsize=256)
def _parse(text: str) -> Formula:
    column: dict[str, str] = {}
    stem = "column"
    while stem in text:  # a word of the text would be taken for a column between backticks
        stem += "_"

    def stand_in(match: re.Match[str]) -> str:
        word = f"{stem}{len(column)}__"
        column[word] = match[1]
        return f" {word} "

    try:
        tree = ast.parse(_QUOTED.sub(stand_in, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("it is not an expression") from None
    _check(tree)
    if _misplaced_text(tree):
        raise ValueError("texts are only compared, by ==, != and in")
    for name in _names(tree):
        column.setdefault(name.id, name.id)
    names = tuple(dict.fromkeys(column[name.id] for name in _names(tree)))
    if not names:
        raise ValueError("it names no column")
    return Formula(text, names, tree, column)


@lru_cache(maxsize=256)
def _solved(text: str, name: str, result: str) -> str | None:
    """Return `Formula.solved_for` as text."""
    formula = _parse(text)
    words = [word for word, column in formula._column.items() if column == name]
    if sum(node.id in words for node in _names(formula._tree)) != 1:
        return None
    node: ast.expr = formula._tree
    tree: ast.expr = ast.Name("result__")
    while not isinstance(node, ast.Name):
        match node:
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                tree, node = ast.UnaryOp(node.op, tree), node.operand
            case ast.Call() if _called(node) in _INVERSE:
                tree, node = _with(_INVERSE[_called(node)], y=tree), node.args[0]
            case ast.BinOp():
                on_left = any(one.id in words for one in _names(node.left))
                undone = _UNDONE[type(node.op)][0 if on_left else 1]
                tree = _with(undone, y=tree, l=node.left, r=node.right)
                node = node.left if on_left else node.right
            case _:
                return None
    column = {**formula._column, "result__": result}
    words_in = re.compile("|".join(rf"\b{re.escape(word)}\b(?!\()" for word in column))
    return words_in.sub(lambda match: f"`{column[match[0]]}`", ast.unparse(tree))


def _with(text: str, **parts: ast.expr) -> ast.expr:
    """Return an expression with others in the place of its names."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    found: ast.expr = Put().visit(ast.parse(text, mode="eval").body)
    return found


def _names(tree: ast.AST) -> list[ast.Name]:
    """Return the names of columns in a tree, from left to right."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called]
    return sorted(found, key=lambda n: n.col_offset)


def _equal_sides(tree: ast.expr) -> Iterator[list[ast.expr]]:
    """Yield what is compared by ==, != and in, each time, lists item by item."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and all(isinstance(op, _EQUAL) for op in node.ops):
            sides = [node.left, *node.comparators]
            lists = [side.elts for side in sides if isinstance(side, ast.List | ast.Tuple)]
            yield [*sides, *(one for part in lists for one in part)]


def _joined_by_and(tree: ast.expr) -> Iterator[ast.Compare]:
    """Yield the comparisons all of which must hold for a condition to be true."""
    if isinstance(tree, ast.Compare):
        yield tree
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        for part in tree.values:
            yield from _joined_by_and(part)


def _is_constant(node: ast.expr) -> bool:
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    return _is_number(node.operand if negative else node)  # type: ignore[attr-defined]


def _number(node: ast.expr) -> float:
    if isinstance(node, ast.UnaryOp):
        return -_number(node.operand)
    assert isinstance(node, ast.Constant)
    return float(node.value)  # type: ignore[arg-type]


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)


def _misplaced_text(tree: ast.expr) -> bool:
    """Return whether a text stands elsewhere than beside ==, != or in a list."""
    allowed = {id(side) for sides in _equal_sides(tree) for side in sides}
    texts = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return any(id(text) not in allowed for text in texts)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _check(node: ast.AST, depth: int = 0) -> None:
    """Raise ValueError unless a tree holds nothing but what formulas may have."""
    if depth > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    match node:
        case ast.Constant(value=bool()):
            raise ValueError("True and False are not values of columns")
        case ast.Constant(value=int() | float() as value) if not abs(value) <= sys.float_info.max:
            raise ValueError("a number in it is not below 1.8e308")
        case ast.Constant(value=int() | float() | str()) | ast.Name():
            return
        case ast.Call():
            if _called(node) not in _FUNCTIONS or node.keywords or not node.args:
                known = ", ".join(_FUNCTIONS)
                raise ValueError(f"of functions it may have {known}")
            several = _called(node) in ("min", "max")
            if several != (len(node.args) > 1):
                many = "two or more numbers" if several else "one number"
                raise ValueError(f"{_called(node)} takes {many}")
            parts: list[ast.expr] = node.args
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.UAdd()):
            parts = [node.operand]
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() | ast.Pow()):
            parts = [node.left, node.right]
        case ast.BoolOp():
            parts = node.values
        case ast.Compare():
            parts = [node.left]
            for op, side in zip(node.ops, node.comparators, strict=True):
                listed = isinstance(side, ast.List | ast.Tuple)
                if listed != isinstance(op, ast.In | ast.NotIn):
                    raise ValueError("`in` goes with a list, and a list with `in`")
                if not listed and type(op) not in _COMPARED:
                    raise ValueError("of comparisons it may have ==, !=, <, <=, >, >= and in")
                parts = [*parts, *(side.elts if isinstance(side, ast.List | ast.Tuple) else [side])]
        case _:
            raise ValueError("it may have numbers, columns, + - * / **, functions and comparisons")
    for part in parts:
        _check(part, depth + 1)
