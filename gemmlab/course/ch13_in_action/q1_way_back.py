"""Exercise 13.1: the two products that lead a gradient back through a layer."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gemmlab.course.judging import DRAWN_ANEW, FAILING, Diagnosis, Finding, Task, drawing, guard
from gemmlab.course.judging.source import short

# (outputs, inputs, images), the square ones first: there every mistake has a shape that fits.
SIZES = ((1, 1, 1), (2, 2, 2), (3, 3, 3), (2, 3, 4), (5, 2, 3), (1, 4, 6))
PRODUCTS = 2
Case = tuple[np.ndarray, np.ndarray, np.ndarray]


def backward(W, X, G, product):
    """The gradients of the loss by X and by W, in this order; G is that by Y = WX."""
    # [answer] return ...
    return product(W.T, G), product(G, X.T)
    # [end]


def drawn(outputs: int, inputs: int, images: int, rng: np.random.Generator) -> Case:
    """W, X and ∂Y, of small whole numbers of both signs and without a 0."""
    shapes = (outputs, inputs), (inputs, images), (outputs, images)
    made = (rng.integers(1, 6, s) * rng.choice([-1.0, 1.0], s) for s in shapes)
    w, x, g = (one.astype(np.float32) for one in made)
    return w, x, g


CASES = tuple(drawn(*sizes, np.random.default_rng(i)) for i, sizes in enumerate(SIZES))


class Watched:
    """An answer as a function of W, X and ∂Y, which notes what it hands to `product`."""

    def __init__(self, answer: Callable) -> None:
        self.answer = answer
        self.__code__ = getattr(answer, "__code__", None)  # by which errors are placed
        self.__signature__ = inspect.Signature(
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in "WXG"
        )

    def __call__(self, *given: np.ndarray) -> tuple[Any, int, int]:
        """What the answer returns, how many products it asked for, and how many copies."""
        asked = copies = 0

        def product(a: Any, b: Any) -> Any:
            nonlocal asked, copies
            asked += 1
            copies += sum(not any(np.shares_memory(x, one) for one in given) for x in (a, b))
            if a.shape[1] != b.shape[0]:
                raise ValueError(f"product of {a.shape} and {b.shape}: inner sizes differ")
            return a @ b

        return self.answer(*given, product), asked, copies


def judge(answer: Any) -> Finding:
    """Check both gradients on every case and on one drawn anew, and how they were multiplied."""
    rng = drawing.generator()
    fresh = drawn(*map(int, rng.integers(6, 12, 3)), rng)
    every = (*CASES, fresh)
    tried = []
    for case, outcome in zip(every, guard.attempts(Watched(answer), every), strict=False):
        anew = case is fresh
        facts = ((DRAWN_ANEW if anew else FAILING, _sizes(case)),)
        details = {"shape": _shape(case), "function": backward.__name__}
        found = outcome.fault
        if found:
            found = Finding(found.diagnosis, facts + found.facts, details | dict(found.details))
            return found.anew if anew else found
        value, asked, copies = outcome.value
        if value is Ellipsis:
            return Finding("not-attempted", ((backward.__name__, "still returns ..."),), details)
        if not _pair(value):
            told = (("Found", f"it returned {short(value)}; use two arrays, ∂X and ∂W"),)
            return Finding("wrong-type", facts + told, details)
        tried.append((case, value))
        if not _right(case, value):
            return _wrong(case, value, tried, facts, details, anew)
        if costs := _cost(asked, copies, facts, details):
            return costs
    return Finding("passed", (("Checked", f"{len(CASES)} layers and one drawn anew"),))


def _cost(asked: int, copies: int, facts: tuple, details: dict) -> Finding | None:
    """What is wrong with how a right answer multiplied."""
    told = (("Asked of product", f"{asked} products; {copies} operands were copies"),)
    if asked < PRODUCTS:
        return Finding("product-not-used", facts + told, details)
    if asked > PRODUCTS:
        return Finding("too-many-products", facts + told, details)
    return Finding("operand-copied", facts + told, details) if copies else None


def _wrong(case: Case, value: Any, tried: list, facts: tuple, details: dict, anew: bool) -> Finding:
    """The mistake that gives these gradients in all cases so far, or the first wrong of the two."""
    names = ("∂X", "∂W")
    for name, got, right in zip(names, value, gradients(*case), strict=True):
        if not _same(got, right):
            facts += ((f"Wrong, {name}", f"expected {_text(right)}, got {_text(got)}"),)
            break
    if anew:
        return Finding("known-cases-only", facts, details)
    for name, instead in INSTEAD.items():
        known = [(v, instead(*one)) for one, v in tried if instead(*one) is not None]
        if known and all(_pairs_same(v, w) for v, w in known):
            return Finding(name.partition(",")[0], facts, details)
    for i, name in enumerate(("inputs-wrong", "weights-wrong")):
        if _same(value[1 - i], gradients(*case)[1 - i]):
            return Finding(name, facts, details)
    return Finding("wrong-values", facts, details)


def gradients(w: np.ndarray, x: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """∂X and ∂W, right."""
    return w.T @ g, g @ x.T


def _square(of: Callable) -> Callable:
    """A mistake that has a result only where the shapes allow it."""

    def instead(w: np.ndarray, x: np.ndarray, g: np.ndarray) -> Any:
        try:
            return of(w, x, g)
        except ValueError:
            return None

    return instead


INSTEAD: dict[str, Callable[..., Any]] = {
    "order-exchanged": lambda w, x, g: (g @ x.T, w.T @ g),
    "weights-not-turned": _square(lambda w, x, g: (w @ g, g @ x.T)),
    "inputs-not-turned": _square(lambda w, x, g: (w.T @ g, g @ x)),
    "weights-turned-round": lambda w, x, g: (w.T @ g, x @ g.T),
    "mean-not-sum": lambda w, x, g: (w.T @ g, g @ x.T / x.shape[1]),
    "mean-not-sum, both": lambda w, x, g: tuple(one / x.shape[1] for one in gradients(w, x, g)),
    "masked": lambda w, x, g: (w.T @ g * (x > 0), g @ x.T),
    "by-the-output": _square(lambda w, x, g: (w.T @ g, g @ (w @ x).T)),
}  # fmt: skip


def _pair(value: Any) -> bool:
    of_two = isinstance(value, tuple | list) and len(value) == PRODUCTS
    return of_two and all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in value)


def _right(case: Case, value: Any) -> bool:
    return _pairs_same(value, gradients(*case))


def _pairs_same(value: Any, expected: Any) -> bool:
    return all(map(_same, value, expected))


def _same(got: np.ndarray, expected: np.ndarray) -> bool:
    return got.shape == expected.shape and bool(np.allclose(got, expected, rtol=1e-6, atol=0))


def _shape(case: Case) -> tuple[int, int, int]:
    w, x, _ = case
    return *w.shape, x.shape[1]


def _sizes(case: Case) -> str:
    outputs, inputs, images = _shape(case)
    return f"{outputs} outputs, {inputs} inputs, {images} images"


def _text(x: np.ndarray) -> str:
    """A small matrix, or its shape."""
    small = str(np.round(x, 4).tolist())
    return small if len(small) < 60 else f"{x.shape[0]}×{x.shape[1]}, [0, 0] is {x[0, 0]:g}"


TASK = Task(
    name="13.1",
    title="The way back",
    section="chapter 13, What does a step multiply?",
    asked="backward(W, X, G, product) returns the gradients by X and by W, each from one product "
    "of operands that are not copied.",
    prompt="""
    A layer computed $Y = WX$: W is outputs × inputs, X is inputs × images, and the loss is a sum
    over the images. `G` is the gradient of the loss by $Y$, as large as $Y$; if the loss is a mean
    over N images, `G` has the factor 1/N already. Return two gradients, `(of_X, of_W)`:

    - each as large as what it belongs to;
    - each by one call of `product(a, b)`, which returns $ab$ and is a kernel of your choice;
    - from W, X and G as they lie in memory: a transposed *view*, such as `W.T`, is no copy.

    The rectifier between layers is not part of this layer.
    """,
    judge=judge,
    answers=(backward,),
    diagnoses={
        "not-attempted": Diagnosis(
            "The function still returns the gap of the skeleton.",
            "X is inputs × images. Which product of W, or of its transpose, with G has this shape?",
            "```python\nof_X = product(W.T, ...)\n```",
        ),
        "order-exchanged": Diagnosis(
            "Both gradients are right, and they are returned in the other order.",
            "Which of the two is as large as X?",
            "```python\nreturn of_X, of_W\n```",
        ),
        "weights-not-turned": Diagnosis(
            "W multiplies the gradient as it multiplied X. Only where W is square does that fit.",
            "Output i took W[i, j] times input j. Which elements of G does input j get back, and "
            "with which weights?",
            "```python\nof_X = product(W.T, ...)    # its row j is W's column j\n```",
        ),
        "inputs-not-turned": Diagnosis(
            "G multiplies X as it lies. Only where images and inputs are as many does that fit.",
            "W[i, j] met input j in every image. Over what does its gradient add up?",
            "```python\nof_W = product(G, X.T)    # k is the number of ...\n```",
        ),
        "weights-turned-round": Diagnosis(
            "The gradient of W is transposed.",
            "W is outputs × inputs. Which of the two factors has the outputs as its rows?",
            "```python\nof_W = product(G, ...)\n```",
        ),
        "mean-not-sum": Diagnosis(
            "A gradient is divided by the number of images. The loss is a sum: whoever wants the "
            "mean divides the loss, and G with it, once.",
            "If G holds the division already, how often would you divide?",
            "```python\nof_W = product(G, X.T)    # nothing else\n```",
        ),
        "masked": Diagnosis(
            "The gradient is set to 0 where X is not positive. That rectifier belongs to the layer "
            "before, which made X.",
            "Does Y = WX contain a rectifier?",
            "```python\nof_X = product(W.T, G)    # and nothing is masked\n```",
        ),
        "by-the-output": Diagnosis(
            "The gradient of W is made from the layer's output. W multiplied its input.",
            "How much does Y[i, c] grow when W[i, j] grows by 1?",
            "```python\nof_W = product(G, X.T)\n```",
        ),
        "inputs-wrong": Diagnosis(
            "The gradient of W is right, and that of X is not.",
            "How much does Y[i, c] grow when X[j, c] grows by 1?",
            "```python\nof_X = product(W.T, ...)\n```",
        ),
        "weights-wrong": Diagnosis(
            "The gradient of X is right, and that of W is not.",
            "How much does Y[i, c] grow when W[i, j] grows by 1, and how many images c are there?",
            "```python\nof_W = product(..., X.T)\n```",
        ),
        "product-not-used": Diagnosis(
            "The gradients are right, but not every product was made by `product`: no kernel of "
            "yours would have run.",
            "Where do you write @ or np.dot?",
            "```python\nproduct(W.T, G)    # in place of W.T @ G\n```",
        ),
        "too-many-products": Diagnosis(
            "The gradients are right, and it took more than two products.",
            "Which result do you compute twice, or not need?",
            "One product for each gradient; the forward product is not needed again.",
        ),
        "operand-copied": Diagnosis(
            "The gradients are right, but an operand was copied first. A kernel for the layouts tn "
            "and nt reads the transposed matrix where it lies.",
            "What does np.ascontiguousarray, or .copy(), do to W.T?",
            "```python\nproduct(W.T, G)    # a view of W\n```",
        ),
    },
    praise="Two products, two layouts, no copies: a layer's way back costs twice its way forward.",
)
