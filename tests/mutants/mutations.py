"""Small faults in Python source, one at a time: a comparison off by one, a branch never taken."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_CALLS = {
    "any": "all",
    "all": "any",
    "min": "max",
    "max": "min",
    "startswith": "endswith",
    "endswith": "startswith",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: the text from ``start`` to ``end`` of a file, in characters, made another one.

    Attributes:
        path: of the file, from the root.
        line: where the fault is, from 1.
        lines: the statement it is in, first and last: a test that runs none of these cannot see it.
        in_function: whether that statement runs when a function is called; else on import.
        new: the text in its place.
        source: the whole file.
    """

    path: str
    line: int
    lines: tuple[int, int]
    in_function: bool
    start: int
    end: int
    new: str
    source: str

    @property
    def old(self) -> str:
        return self.source[self.start : self.end]

    @property
    def applied(self) -> str:
        """The whole file with the fault."""
        return self.source[: self.start] + self.new + self.source[self.end :]

    @property
    def difference(self) -> str:
        """Its lines as they are, and as they are with the fault."""
        first = self.source.rfind("\n", 0, self.start) + 1
        last = self.source.find("\n", self.end)
        was = self.source[first:last]
        made = self.source[first : self.start] + self.new + self.source[self.end : last]
        return "\n".join(
            f"{sign} {line}"
            for sign, lines in (("-", was), ("+", made))
            for line in lines.splitlines()
        )


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Every fault that is put into a file, by place."""
    walk = _Walk(path, source)
    walk.statements(ast.parse(source).body, in_function=False)
    return sorted(set(walk.found), key=lambda mutant: (mutant.start, -mutant.end, mutant.new))


class _Walk:
    def __init__(self, path: str, source: str) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._texts = source.splitlines()

    def _place(self, line: int, byte_column: int) -> int:
        column = len(self._texts[line - 1].encode()[:byte_column].decode())
        return self._starts[line - 1] + column

    def statements(self, body: list[ast.stmt], in_function: bool) -> None:
        for statement in body:
            self._statement(statement, in_function)

    def _statement(self, statement: ast.stmt, in_function: bool) -> None:
        match statement:
            case ast.FunctionDef():
                self.statements(statement.body, in_function=True)
                return
            case ast.ClassDef():
                self.statements(statement.body, in_function=False)
                return
            case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass():
                return
            case ast.Expr(value=ast.Constant()):
                return  # a docstring
            case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):
                return  # mypy has proved that nothing comes there
            case ast.If(test=test) if _for_other_readers(test):
                return
            case ast.AnnAssign(value=None):
                return
            case ast.Assign(value=ast.Call(func=ast.Name(id="TypeVar"))):
                return  # of use to mypy alone
        head, bodies = _parts(statement)
        lines = (statement.lineno, _last_line(statement, bodies))
        here = _Statement(self, lines, in_function)
        if in_function:
            here.as_a_whole(statement)
        for node in head:
            here.expression(node)
        for body in bodies:
            self.statements(body, in_function)

    def add(self, node: ast.AST, new: str, lines: tuple[int, int], in_function: bool) -> None:
        assert isinstance(node, ast.expr | ast.stmt | ast.pattern)
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._place(node.lineno, node.col_offset)
        end = self._place(node.end_lineno, node.end_col_offset)
        self.found.append(
            Mutant(self._path, node.lineno, lines, in_function, start, end, new, self._source)
        )


@dataclass(frozen=True, slots=True)
class _Statement:
    """The faults of one statement, but for those in statements inside of it."""

    walk: _Walk
    lines: tuple[int, int]
    in_function: bool

    def _add(self, node: ast.AST, new: str) -> None:
        self.walk.add(node, new, self.lines, self.in_function)

    def as_a_whole(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign():
                self._add(statement, "pass")
            case ast.Raise():
                self._add(statement, "pass")
            case ast.Return(value=value) if value is not None and not _is_none(value):
                self._add(statement, "return None")
            case ast.Continue():
                self._add(statement, "break")
            case ast.Break():
                self._add(statement, "continue")
            case ast.If(test=test) | ast.While(test=test):
                self._add(test, "False")
                if isinstance(statement, ast.If):
                    self._add(test, "True")
            case ast.Match(cases=cases):
                for case in cases:
                    if case.guard is not None:
                        self._add(case.guard, "True")
                        self._add(case.guard, "False")

    def expression(self, node: ast.AST) -> None:
        match node:
            case ast.JoinedStr():
                return  # the words of a message
            case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
                self._add(
                    node,
                    _text(ast.Compare(node.left, [_COMPARISONS[type(op)]()], node.comparators)),
                )
            case ast.Compare(ops=[first, *rest]):
                changed = [_COMPARISONS[type(first)](), *rest]
                self._add(node, _text(ast.Compare(node.left, changed, node.comparators)))
                changed = [first, *rest[:-1], _COMPARISONS[type(rest[-1])]()]
                self._add(node, _text(ast.Compare(node.left, changed, node.comparators)))
            case ast.BoolOp(op=op, values=values):
                other = ast.Or() if isinstance(op, ast.And) else ast.And()
                self._add(node, _text(ast.BoolOp(other, values)))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._add(node, _text(operand))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                if not (_is_text(left) or _is_text(right)):
                    self._add(node, _text(ast.BinOp(left, _OPERATORS[type(op)](), right)))
            case ast.IfExp(test=test):
                self._add(test, "True")
                self._add(test, "False")
            case ast.Constant(value=bool() as value):
                self._add(node, str(not value))
            case ast.Constant(value=int() as value):
                self._add(node, str(value + 1))
            case ast.Constant(value=str() as value) if value.isidentifier():
                self._add(node, repr(f"{value}x"))
            case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
                self._add(node.func, _CALLS[name])
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _CALLS:
                self._add(node.func, _text(ast.Attribute(value, _CALLS[name])).strip("()"))
            case ast.comprehension(ifs=conditions):
                for condition in conditions:
                    self._add(condition, "True")
        for child in _children(node):
            self.expression(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated, so no annotations."""
    for name, value in ast.iter_fields(node):
        if name == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr | ast.comprehension | ast.keyword):
                yield child


def _parts(statement: ast.stmt) -> tuple[list[ast.AST], list[list[ast.stmt]]]:
    """What a statement evaluates itself, and the blocks of statements inside of it."""
    match statement:
        case ast.Try():
            handlers = [handler.body for handler in statement.handlers]
            return [], [statement.body, *handlers, statement.orelse, statement.finalbody]
        case ast.Match():
            guards = [case.guard for case in statement.cases if case.guard is not None]
            return [statement.subject, *guards], [case.body for case in statement.cases]
        case ast.With():
            return [item.context_expr for item in statement.items], [statement.body]
        case ast.For():
            return [statement.iter], [statement.body, statement.orelse]
        case ast.If() | ast.While():
            return [statement.test], [statement.body, statement.orelse]
        case _:
            return list(_children(statement)), []


def _last_line(statement: ast.stmt, bodies: list[list[ast.stmt]]) -> int:
    """The last line of what it evaluates itself; of a match, the whole: its guards are inside."""
    inside = [body[0].lineno for body in bodies if body]
    if inside and not isinstance(statement, ast.Match):
        return max(statement.lineno, min(inside) - 1)
    return statement.end_lineno or statement.lineno


def _for_other_readers(test: ast.expr) -> bool:
    """``if TYPE_CHECKING`` and ``if __name__ == "__main__"``."""
    return ast.unparse(test) in ("TYPE_CHECKING", "__name__ == '__main__'")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.expr) -> bool:
    """Messages are put together of text and f-strings."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
