"""`make check` prints how large the house is, and fails where a room outgrows what a reader can hold."""

from __future__ import annotations

import ast
import statistics
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "penstock"
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


def functions(tree: ast.AST) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def length(function: ast.FunctionDef) -> int:
    """Lines of the body without its docstring."""
    documented = isinstance(function.body[0], ast.Expr) and isinstance(function.body[0].value, ast.Constant)
    start = function.body[1] if documented and len(function.body) > 1 else function.body[0]
    return (function.end_lineno or 0) - start.lineno + 1


def main() -> int:
    rooms: dict[str, int] = {}
    lengths: list[int] = []
    too_long: list[str] = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(SOURCE)
        room = name.parts[0] if len(name.parts) > 1 else "(package)"
        lines = text.count("\n")
        rooms[room] = rooms.get(room, 0) + lines
        if lines > MAX_FILE_LINES:
            too_long.append(f"{name}: {lines} lines, more than {MAX_FILE_LINES}")
        for function in functions(ast.parse(text)):
            lengths.append(length(function))
            if lengths[-1] > MAX_FUNCTION_LINES:
                too_long.append(
                    f"{name}:{function.lineno} {function.name}: {lengths[-1]} lines, more than {MAX_FUNCTION_LINES}"
                )
    for room, lines in sorted(rooms.items(), key=lambda item: -item[1]):
        print(f"{lines:6d}  {room}")
    print(f"{sum(rooms.values()):6d}  in all; {len(lengths)} functions, median {statistics.median(lengths):.0f} lines")
    print(*too_long, sep="\n", file=sys.stderr)
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
