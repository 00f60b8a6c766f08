"""Statements of a thread: assignments, branches, loops, and device functions in their place."""

import ast
from typing import Any

from gemmlab.simt.numbers.values import Range
from gemmlab.simt.threads.text import INT, Body, Number, UnfitError, method_of
from gemmlab.simt.threads.values import Values


class Statements(Values):
    """Writes statements.

    ways : of each `if`, its line and the blocks of its test and of its body
    limits : of each `while` in the loop, and whether it looks at memory; endless : whether a
        `while` is around
    leaves : how a thread leaves the loop, and how its turn
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ways: list[tuple[int, int, int]] = []
        self.limits: list[tuple[str, bool]] = []
        self.loops = self.functions = 0
        self.endless = False
        self.leaves = ("break", "continue")

    def statements(self, body: list[ast.stmt]) -> None:
        for node, after in zip(body, [*body[1:], None], strict=True):
            if isinstance(node, ast.Assign):
                self.assign(node.targets[0].id, node.value)  # type: ignore[attr-defined]
            elif isinstance(node, ast.If):
                self.if_(node, after)
            elif isinstance(node, ast.Expr):
                self.expression_statement(node.value)
            elif isinstance(node, (ast.For, ast.While)):
                self.inner(node)
            elif not isinstance(node, ast.Pass):
                raise UnfitError(type(node).__name__)

    def assign(self, name: str, node: ast.expr) -> None:
        method, args = method_of(node)
        if method == "variables.unassigned":
            return
        value = self.value(args[1] if method == "variables.assign" else node)
        self.bind(name, value)

    def expression_statement(self, node: ast.expr) -> None:
        method, args = method_of(node)
        if method in ("loops.begin", "loops.end", "loops.end_iteration", "branches.end_if"):
            return
        if method in ("loops.break_", "loops.continue_"):
            self.say(*self.leaves[method == "loops.continue_"].split("; "))
        elif method == "memory.store":
            array, index = self.value(args[0]), self.value(args[1])
            self.store(array, index, self.value(args[2]), args[3].value)
        else:
            self.value(node)

    def if_(self, node: ast.If, after: ast.stmt | None) -> None:
        method, args = method_of(node.test)
        if method in ("loops.rest", "branches.else_"):  # the latter with its `if`
            return
        if method == "branches.anybody":
            before = self.begin_block()
            self.statements(node.body)
            self.end_block(before)
            return
        if method != "branches.if_":
            raise UnfitError(method)
        line = args[1].value  # type: ignore[attr-defined]
        test = self.truth(self.value(args[0]))
        self.tick(line, "inst_control")
        self.ways.append((line, self.block, len(self.blocks)))
        self.way(f"if {test}:", node.body)
        if isinstance(after, ast.If) and method_of(after.test)[0] == "branches.else_":
            self.way("else:", after.body)

    def way(self, head: str, body: list[ast.stmt]) -> None:
        """Write a way of an `if`."""
        self.say(head)
        self.indent += 1
        before = self.begin_block()
        self.statements(body)
        self.end_block(before)
        self.indent -= 1

    # Loops in the loop

    def inner(self, node: ast.For | ast.While) -> None:
        """Write a loop in the loop; of many threads, whose turns are counted by warps, only one."""
        kept = self.leaves, self.now, self.endless
        self.loops, self.inside = self.loops + 1, self.inside + 1
        if not self.alone and (self.inside > 1 or self.endless):
            raise UnfitError("loops")
        self.leaves = ("break", "continue")
        if isinstance(node, ast.While):
            self.while_(node)
        else:
            self.for_(node)
        self.leaves, self.now, self.endless = kept
        self.inside -= 1

    def for_(self, node: ast.For) -> None:
        method, args = method_of(node.iter)
        bounds = self.value(args[0])
        if method != "loops.iterate" or not isinstance(bounds, Range):
            raise UnfitError(method)
        start, stop, step = map(self.index, bounds.bounds)
        self.give_up_unless(f"{step} != 0")
        self.count_turns(f"for q{self.loops} in range({start}, {stop}, {step}):")
        self.turn(node, f"q{self.loops}", args[1].value)

    def count_turns(self, head: str) -> None:
        """Write the head of a loop in the loop, whose turns are counted for many threads."""
        own = f"j{self.loops}"
        self.say(*[] if self.alone else [f"{own} = -1"], head)
        if self.alone:
            return
        self.now = own
        self.indent += 1
        self.say(f"{own} += 1")
        self.give_up_unless(f"{own} < most")
        self.say(f"deepest = max(deepest, {own})")
        self.indent -= 1

    def turn(self, node: ast.For, next_: str, line: int) -> None:
        """Write a turn of a `for` loop."""
        self.indent += 1
        before = self.begin_block()
        self.tick(line, "inst_control")
        self.body.known[".next"] = Number(f"int64({next_})", INT)
        self.statements(node.body)
        self.end_block(before)
        self.indent -= 1

    def while_(self, node: ast.While) -> None:
        own, looks, around = f"w{self.loops}", len(self.sites), self.endless
        self.endless = True
        self.say(f"{own} = 0")
        self.count_turns("while True:")
        self.indent += 1
        self.say(f"{own} += 1", "steps += 1")
        self.give_up_unless(f"steps <= limit and {own} <= limit_{own}")
        before = self.begin_block()
        self.test(node, "break")
        self.begin_block()
        self.statements(node.body)
        self.end_block(before)
        self.indent -= 1
        if not around:
            self.say("steps = 0")
        self.limits.append((f"limit_{own}", self.awaits(looks)))

    def test(self, node: ast.While, leave: str) -> None:
        """Write the test of a `while`, and how a thread leaves where it fails."""
        _, args = method_of(node.test)
        test = self.truth(self.value(args[0]))
        self.tick(args[1].value, "inst_control")
        self.say(f"if not {test}:", *("    " + line for line in leave.split("; ")))

    # Calls

    def device(self, function: Any, args: list) -> Any:
        """Write what a device function does, which returns at its end alone."""
        rewritten = self.m.scope.program.get(function)
        if rewritten is None or self.functions > 50:
            raise UnfitError("device function")
        node = rewritten.tree.body[0]
        self.functions += 1
        bound = {n: self.m.scope.translate(v) for n, v in rewritten.constants.items()}
        body = Body(rewritten.source, bound, prefix=f"f{self.functions}_")
        parameters = [a.arg for a in node.args.args[1:]]
        if len(parameters) != len(args) or node.args.defaults:
            raise UnfitError("arguments")
        outer, self.body = self.body, body
        targets = [part.targets[0] for part in ast.walk(node) if isinstance(part, ast.Assign)]
        own = {target.id for target in targets if isinstance(target, ast.Name)}
        for name, value in zip(parameters, args, strict=True):
            if name in own:
                self.bind(name, value)
            else:  # nothing changes it while the function runs
                body.known[name] = value
        *before, last = node.body
        method, given = method_of(last.value) if isinstance(last, ast.Expr) else ("", [])
        if method != "calls.return_":
            before, given = node.body, [ast.Constant(None)]
        self.statements(before)
        result = self.value(given[0])
        self.body = outer
        return result
