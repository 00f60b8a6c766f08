"""A compiler leaves out some loads and stores of a kernel: these are found here.

The rules were read off the PTX that Numba-CUDA makes of small kernels, and are compared with it by
a test. An element is `known` to a thread while its value stands in a register: from a load or a
store of it until something could change it, which is a store to an array that may be the same (of
global arrays all may be, of shared ones none), a barrier, a fence, an atomic, or a call of a device
function. Dead code, and stores that a later one replaces, are counted although a compiler drops
them too: kernels that anybody means have none.

    again     a load of a known element
    once      a load in a loop whose element stays known from turn to turn: made in the first turn
    together  `if` and `else`, directly in a loop, that end by a store to one element whose index
              does not change in the loop: one store
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gemmlab.instructions import typed
from gemmlab.simt.syntax.names import intrinsic_path
from gemmlab.simt.syntax.nodes import children, names_in
from gemmlab.simt.syntax.source import UnsupportedError

ORDERING = ("syncthreads", "syncwarp", "threadfence", "cg.")  # how names of barriers begin
PURE = ("builtins", "math", "numpy", "cmath", "operator")  # modules whose functions touch no memory

Static = Callable[[ast.expr], tuple[bool, Any]]  # whether an expression is known, and its value


@dataclass(frozen=True)
class Element:
    """An element depends on the names in its text, and on the memory that it may be in.

    places : "global"; "shared" or "local" with the name of the array; "dynamic" shared memory
    """

    names: frozenset[str]
    places: frozenset[str]


Known = dict[str, Element]  # by the text of the source


def common(first: Known | None, *rest: Known | None) -> Known:
    """Return the elements that are known whichever way a thread came."""
    ways = [way for way in (first, *rest) if way is not None]
    return {t: e for t, e in ways[0].items() if all(t in way for way in ways[1:])}


def without(
    known: Known, names: frozenset[str] = frozenset(), places: frozenset[str] = frozenset()
) -> Known:
    """Return the elements still known after names are assigned, or places have changed."""
    if not names and not places:
        return known
    return {t: e for t, e in known.items() if not (e.names & names or e.places & places)}


class Arrays:
    """The arrays of a function: where each may be, and which of them a call may change.

    everywhere : all places in which an array of the function may be
    named : the places of each name
    """

    def __init__(self, tree: ast.FunctionDef, static: Static) -> None:
        self.static = static
        self.elements: dict[ast.Subscript, Element] = {}
        made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        named = [(t.id, n.value) for n in made for t in n.targets if isinstance(t, ast.Name)]
        self.everywhere = frozenset({"global"}).union(*(self._made(*name) for name in named))
        self.named = {a.arg: frozenset({"global"}) for a in tree.args.args}
        swapped = [t for n in made for t in n.targets if isinstance(t, ast.Tuple)]
        for name in {name for t in swapped for name in names_in(t)}:
            self.named[name] = self.everywhere  # the compiler loses track of them
        for name, value in named:
            place = self._made(name, value) or self.everywhere
            self.named[name] = self.named.get(name, frozenset()) | place

    def _made(self, name: str, value: ast.expr) -> frozenset[str]:
        """The memory of a shared or local array that a name is given; none for other values."""
        path = intrinsic_path(self._value(value.func)) if isinstance(value, ast.Call) else None
        space = (path or "").partition(".array")[0]
        if space not in ("shared", "local"):
            return frozenset()
        sizes = [n.value for n in ast.walk(value) if isinstance(n, ast.Constant)]
        return frozenset({"dynamic" if 0 in sizes else f"{space} {name}"})

    def _value(self, node: ast.expr) -> Any:
        try:
            return self.static(node)[1]
        except (NameError, UnsupportedError):  # the rewriter says so, when it comes there
            return None

    def places(self, node: ast.expr) -> frozenset[str]:
        """Return the places in which the array of an element, or of a view, may be."""
        while isinstance(node, ast.Subscript):
            node = node.value
        name = node.id if isinstance(node, ast.Name) else ""
        return self.named.get(name, self.everywhere)

    def element(self, node: ast.Subscript) -> Element:
        """Return the element of a subscript, with what it depends on."""
        if node not in self.elements:
            self.elements[node] = Element(frozenset(names_in(node)), self.places(node))
        return self.elements[node]

    def changed_by(self, call: ast.Call) -> frozenset[str]:
        """Return the places that a call may change, or whose changes by others it waits for."""
        function = self._value(call.func)
        path = intrinsic_path(function)
        if path is not None and path.startswith("atomic."):
            return self.places(call.args[0]) if call.args else self.everywhere
        if path is not None:
            return self.everywhere if path.startswith(ORDERING) else frozenset()
        module = (getattr(function, "__module__", None) or "").partition(".")[0]
        harmless = isinstance(function, np.ufunc) or (module in PURE and function is not print)
        numba_type = module in ("numba", typed.MLIR) and not hasattr(function, "py_func")
        return frozenset() if harmless or numba_type else self.everywhere


@dataclass(frozen=True)
class LeftOut:
    """The accesses that are left out: subscripts, and statements `if`.

    once : with the number of loops around the load of which only the first turn makes it
    """

    again: set[ast.Subscript] = field(default_factory=set)
    once: dict[ast.Subscript, int] = field(default_factory=dict)
    together: set[ast.If] = field(default_factory=set)


class LoopFacts(NamedTuple):
    """What a loop is, whatever is known before it.

    always : whether it surely makes a turn; changed : the names that it gives values
    elements : those that stand in it, by their text
    """

    always: bool
    changed: frozenset[str]
    elements: Known


@dataclass
class Loop:
    """A loop that is read: what stays known from turn to turn, and what is known where it ends.

    certain : whether it is begun in each turn of the loop around it, and makes a turn
    sure : whether each turn comes to the place that is read now
    """

    stays: set[str]
    changed: frozenset[str]
    certain: bool
    sure: bool = True
    breaks: list[Known] = field(default_factory=list)
    continues: list[Known] = field(default_factory=list)


def left_out(tree: ast.FunctionDef, static: Static) -> LeftOut:
    """The accesses of a kernel that its compiler leaves out; `static` knows names outside it."""
    flow = Flow(tree, static)
    flow.block(tree.body, {})
    return flow.found


class Flow:
    """Reads a function in the order in which it runs, and keeps what is known on the way.

    A loop in a loop is read many times: what does not depend on the way there is found once.
    """

    def __init__(self, tree: ast.FunctionDef, static: Static) -> None:
        self.static, self.arrays = static, Arrays(tree, static)
        self.found = LeftOut()
        self.loops: list[Loop] = []
        self.trials = 0  # loops that are read only to learn what stays known
        self.accessing = set(_accessing(tree))
        self.texts: dict[ast.AST, str] = {}
        self.facts: dict[ast.AST, LoopFacts] = {}

    def _text(self, node: ast.AST) -> str:
        if node not in self.texts:
            self.texts[node] = ast.unparse(node)
        return self.texts[node]

    def _facts(self, node: ast.For | ast.While) -> LoopFacts:
        if node not in self.facts:
            self.facts[node] = LoopFacts(
                _always_turns(node, self.static),
                frozenset(n for s in (*node.body, *_target(node)) for n in _assigned(s)),
                {
                    self._text(n): self.arrays.element(n)
                    for n in ast.walk(node)
                    if isinstance(n, ast.Subscript)
                },
            )
        return self.facts[node]

    # Expressions

    def read(self, node: ast.AST, known: Known) -> Known:
        """Return the elements that are known after an expression."""
        if node not in self.accessing:
            return known
        if isinstance(node, ast.BoolOp):
            first, *rest = node.values
            known = self.read(first, known)
            self._perhaps(rest, known)
            return known
        if isinstance(node, ast.IfExp):
            known = self.read(node.test, known)
            ways = [self._perhaps([way], known) for way in (node.body, node.orelse)]
            return common(*ways)
        for child in children(node):
            known = self.read(child, known)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            return self._load(node, known)
        if isinstance(node, ast.Call):
            return without(known, places=self.arrays.changed_by(node))
        return known

    def _perhaps(self, nodes: list[ast.expr], known: Known) -> Known:
        """Return the elements that are known after expressions that not every thread comes to."""
        before = self.loops[-1].sure if self.loops else True
        self._unsure()
        for node in nodes:
            known = self.read(node, known)
        if self.loops:
            self.loops[-1].sure = before
        return known

    def _unsure(self) -> None:
        if self.loops:
            self.loops[-1].sure = False

    def _load(self, node: ast.Subscript, known: Known) -> Known:
        text = self._text(node)
        if text in known:
            self._mark(self.found.again.add, node)
            return known
        depth = 0
        for loop in reversed(self.loops):
            if text not in loop.stays or not loop.sure:
                break
            depth += 1
            if not loop.certain:
                break
        if depth:
            self._mark(lambda load: self.found.once.update({load: depth}), node)
        return {**known, text: self.arrays.element(node)}

    def _mark(self, note: Callable, node: ast.AST) -> None:
        if not self.trials:
            note(node)

    # Statements

    def block(self, statements: list[ast.stmt], known: Known | None) -> Known | None:
        """Return the elements that are known after statements; None where no thread goes on."""
        for statement in statements:
            if known is None:
                return None
            known = self.statement(statement, known)
        return known

    def statement(self, node: ast.stmt, known: Known) -> Known | None:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return self._assign(node, known)
        if isinstance(node, ast.If):
            return self._if(node, known)
        if isinstance(node, (ast.For, ast.While)):
            return self._loop(node, known)
        known = self.read(node, known)
        if isinstance(node, (ast.Break, ast.Continue)) and self.loops:
            ends = self.loops[-1].breaks if isinstance(node, ast.Break) else None
            (self.loops[-1].continues if ends is None else ends).append(known)
        if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
            return None
        return known

    def _assign(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign, known: Known) -> Known:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        updates = isinstance(node, ast.AugAssign)
        if updates:
            known = self._place(node.target, known)
            if isinstance(node.target, ast.Subscript):
                known = self._load(node.target, known)
        if node.value is not None:
            known = self.read(node.value, known)
        for target in targets:
            known = self._store(target, known if updates else self._place(target, known))
        return known

    def _place(self, target: ast.expr, known: Known) -> Known:
        """Return the elements that are known after the indices of targets, each evaluated once."""
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        for part in parts:
            if isinstance(part, ast.Subscript):
                known = self.read(part.value, self.read(part.slice, known))
        return known

    def _store(self, target: ast.expr, known: Known) -> Known:
        if isinstance(target, ast.Tuple):
            for part in target.elts:
                known = self._store(part, known)
            return known
        if isinstance(target, ast.Subscript):
            known = without(known, places=self.arrays.places(target))
            return {**known, self._text(target): self.arrays.element(target)}
        return without(known, names=frozenset(names_in(target)))

    def _if(self, node: ast.If, known: Known) -> Known | None:
        both = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
        known = self.read(node.test, known)
        surely = self.loops[-1].sure if self.loops else True
        if self.loops and surely:
            self._together(node)
        self._unsure()
        then = known
        if both:  # where the branch is taken, all parts of its test have been read
            for part in node.test.values[1:]:  # type: ignore[attr-defined]
                then = self._quietly(part, then)
        ways = self.block(node.body, then), self.block(node.orelse, known)
        leaves = any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(node))
        if self.loops:
            self.loops[-1].sure = surely and not leaves
        after = [way for way in ways if way is not None]
        return common(*after) if after else None

    def _quietly(self, node: ast.expr, known: Known) -> Known:
        self.trials += 1
        known = self.read(node, known)
        self.trials -= 1
        return known

    def _together(self, node: ast.If) -> None:
        """Note an `if` whose last store, and that of its `else`, are one."""
        ends = [way[-1] for way in (node.body, node.orelse) if way]
        targets = [e.targets[0] for e in ends if isinstance(e, ast.Assign) and len(e.targets) == 1]
        one = len(targets) == 2 and len(set(map(self._text, targets))) == 1
        if one and isinstance(targets[0], ast.Subscript):
            element = self.arrays.element(targets[0])
            if not element.names & self.loops[-1].changed:
                self._mark(self.found.together.add, node)

    def _loop(self, node: ast.For | ast.While, known: Known) -> Known | None:
        always, changed, elements = self._facts(node)
        certain = always and bool(self.loops) and self.loops[-1].sure
        if isinstance(node, ast.For):
            known = self.read(node.iter, known)
        stays = known | elements
        stays = {text: e for text, e in stays.items() if not e.names & changed}
        while True:  # what stays known if all of it does
            self.trials += 1
            loop = Loop(set(stays), changed, certain)
            after, _ = self._turn(node, dict(stays), loop)
            self.trials -= 1
            kept = {text: e for text, e in stays.items() if text in after}
            if len(kept) == len(stays):
                break
            stays = kept
        loop = Loop(set(stays), changed, certain)
        after, ended = self._turn(node, {t: e for t, e in known.items() if t in stays}, loop)
        if always:
            ended = after
        out = common(ended, *loop.breaks) if ended is not None or loop.breaks else None
        return out if not node.orelse else self.block(node.orelse, ended)

    def _turn(
        self, node: ast.For | ast.While, known: Known, loop: Loop
    ) -> tuple[Known, Known | None]:
        """Give the elements that are known after a turn of a loop, and where it ends of itself."""
        self.loops.append(loop)
        ended: Known | None = known
        if isinstance(node, ast.While):
            known = ended = self.read(node.test, known)
            if isinstance(node.test, ast.Constant) and node.test.value:
                ended = None
        after = self.block(node.body, known)
        self.loops.pop()
        turns = [*loop.continues, *([] if after is None else [after])]
        return (common(*turns) if turns else {}), ended


def _accessing(node: ast.AST) -> list[ast.AST]:
    """The parts of a tree with a subscript or a call in them: all others leave what is known."""
    inside = [part for child in children(node) for part in _accessing(child)]
    return [node, *inside] if inside or isinstance(node, (ast.Subscript, ast.Call)) else []


def _target(node: ast.For | ast.While) -> list[ast.AST]:
    return [node.target] if isinstance(node, ast.For) else []


def _always_turns(node: ast.For | ast.While, static: Static) -> bool:
    """Say whether a loop is over a range of a constant length, which is not 0."""
    call = node.iter if isinstance(node, ast.For) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    values = {name: static(ast.copy_location(ast.Name(name), node))[1] for name in names_in(call)}
    if values.pop("range", None) is not range or not all(type(v) is int for v in values.values()):
        return False
    try:
        return len(eval(ast.unparse(call), {"range": range}, values)) > 0
    except (ArithmeticError, TypeError, ValueError):  # left to the kernel
        return False


def _assigned(node: ast.AST) -> set[str]:
    """Return the names that a statement, or the target of a loop, gives a value."""
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in stored if isinstance(n.ctx, ast.Store)}
