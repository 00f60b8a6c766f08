"""Answers to exercise 02.3."""

from numpy import float32

from gemmlab import cuda
from gemmlab.course.ch02_intensity_and_limiters.q3_shared_weights import build_layer
from tests.course.answers import Wrong, edited, fooling, wrong


def leaves_early(batch):
    def kernel(W, X, Y):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i >= Y.shape[0]:
            return
        sums = cuda.local.array(batch, float32)
        for j in range(batch):
            sums[j] = W[i, 0] * X[0, j]
        p = 1
        while p < X.shape[0]:
            for j in range(batch):
                sums[j] = sums[j] + X[p, j] * W[i, p]
            p += 1
        for j in range(batch):
            Y[i, j] = sums[j]

    return kernel


def row_in_shared_memory(batch):
    """A piece of each row waits in shared memory until all columns have had it."""

    def kernel(W, X, Y):
        piece = cuda.shared.array((32, 4), float32)
        x = cuda.threadIdx.x
        row = cuda.grid(1)
        outputs, inputs = W.shape
        acc = cuda.local.array(batch, float32)
        for j in range(batch):
            acc[j] = 0
        if row < outputs:
            for start in range(0, inputs, 4):
                for p in range(min(4, inputs - start)):
                    piece[x, p] = W[row, start + p]
                for j in range(batch):
                    for p in range(min(4, inputs - start)):
                        acc[j] += piece[x, p] * X[start + p, j]
            for j in range(batch):
                Y[row, j] = acc[j]

    return kernel


RIGHT = {
    "the first product starts the sum": (leaves_early,),
    "backwards": (edited(
        build_layer,
        ("acc = cuda.local.array(batch, float32)", "for p in range(inputs):", """
            acc = cuda.local.array(batch, float32)
            acc[:] = 0
            for step in range(inputs):
                p = inputs - 1 - step
        """),
    ),),
    "a piece in shared memory": (row_in_shared_memory,),
    "a loop over the grid": (edited(
        build_layer,
        ("row = cuda.grid(1)", "for p in range(inputs):", """
            acc = cuda.local.array(batch, float32)
            for row in range(cuda.grid(1), W.shape[0], cuda.gridsize(1)):
                for j in range(batch):
                    acc[j] = 0
                for p in range(W.shape[1]):
        """),
    ),),
}  # fmt: skip

CLEAR = "acc[j] = 0"
ADD = "acc[j] += weight * X[p, j]"
STORE = "Y[row, j] = acc[j]"


def one_thread(batch):
    def kernel(W, X, Y):
        if cuda.grid(1) == 0:
            acc = cuda.local.array(batch, float32)
            for row in range(W.shape[0]):
                for j in range(batch):
                    acc[j] = 0
                for p in range(W.shape[1]):
                    weight = W[row, p]
                    for j in range(batch):
                        acc[j] += weight * X[p, j]
                for j in range(batch):
                    Y[row, j] = acc[j]

    return kernel


WRONG = {
    "column by column": wrong(
        build_layer, "a cache will keep the weights", "weights-loaded-again",
        ("acc = cuda.local.array(batch, float32)", "Y[row, j] = acc[j]", """
            for j in range(batch):
                acc = float32(0)
                for p in range(inputs):
                    acc += W[row, p] * X[p, j]
                Y[row, j] = acc
        """),
    ),
    # Half of the way: each weight is loaded for two columns.
    "two columns at once": wrong(
        build_layer, "half the loads are good enough", "weights-loaded-again",
        ("acc = cuda.local.array(batch, float32)", "Y[row, j] = acc[j]", """
            for j in range(0, batch, 2):
                left = float32(0)
                right = float32(0)
                for p in range(inputs):
                    weight = W[row, p]
                    left += weight * X[p, j]
                    if j + 1 < batch:
                        right += weight * X[p, j + 1]
                Y[row, j] = left
                if j + 1 < batch:
                    Y[row, j + 1] = right
        """),
    ),
    "sums in Y": wrong(
        build_layer, "Y is as good a place as a register", "sums-in-memory",
        (CLEAR, "Y[row, j] = 0"), (ADD, "Y[row, j] += weight * X[p, j]"), (STORE, "pass"),
    ),
    "stored in each step": wrong(
        build_layer, "storing early does no harm", "sums-in-memory",
        (ADD, ADD + "\n                    Y[row, j] = acc[j]"),
    ),
    "X loaded for the next as well": wrong(
        build_layer, "loads of X are free", "inputs-loaded-again",
        (ADD, ADD + "\n                    acc[j] += 0 * X[(p + 1) % inputs, j]"),
    ),
    "row first": wrong(
        build_layer, "a copy is once for all", "row-first",
        ("acc = cuda.local.array(batch, float32)", "Y[row, j] = acc[j]", """
            weights = cuda.local.array(1000, float32)
            for p in range(inputs):
                weights[p] = W[row, p]
            for j in range(batch):
                acc = float32(0)
                for p in range(inputs):
                    acc += weights[p] * X[p, j]
                Y[row, j] = acc
        """),
    ),
    "row in shared memory first": wrong(
        build_layer, "shared memory is large", "row-first",
        ("acc = cuda.local.array(batch, float32)", "Y[row, j] = acc[j]", """
            weights = cuda.shared.array((32, 100), float32)
            x = cuda.threadIdx.x
            for p in range(inputs):
                weights[x, p] = W[row, p]
            for j in range(batch):
                acc = float32(0)
                for p in range(inputs):
                    acc += weights[x, p] * X[p, j]
                Y[row, j] = acc
        """),
    ),
    "eight columns at once": wrong(
        build_layer, "a batch has eight columns", "weights-loaded-again",
        ("acc = cuda.local.array(batch, float32)", "Y[row, j] = acc[j]", """
            acc = cuda.local.array(8, float32)
            for first in range(0, batch, 8):
                for j in range(8):
                    acc[j] = 0
                for p in range(inputs):
                    weight = W[row, p]
                    for j in range(min(8, batch - first)):
                        acc[j] += weight * X[p, first + j]
                for j in range(min(8, batch - first)):
                    Y[row, first + j] = acc[j]
        """),
    ),
    "sums in shared memory": wrong(
        build_layer, "shared memory is as good as a register", "sums-in-memory",
        ("acc = cuda.local.array(batch, float32)", "acc[j] = 0", """
            acc = cuda.shared.array((32, batch), float32)
            x = cuda.threadIdx.x
            for j in range(batch):
                acc[x, j] = 0
        """),
        (ADD, ADD.replace("acc[j]", "acc[x, j]")), (STORE, STORE.replace("acc[j]", "acc[x, j]")),
    ),
    "sums in float64": wrong(
        build_layer, "more bits are better", "sums-in-double",
        ("acc = cuda.local.array(batch, float32)", "acc = cuda.local.array(batch, float64)"),
        ("def build_layer(batch):", "from numpy import float64\n\n\ndef build_layer(batch):"),
    ),
    "sums in float16": wrong(
        build_layer, "fewer bits are faster", "low-precision",
        ("acc = cuda.local.array(batch, float32)", "acc = cuda.local.array(batch, float16)"),
        ("def build_layer(batch):", "from numpy import float16\n\n\ndef build_layer(batch):"),
    ),
    "whole weights": wrong(
        build_layer, "weights are whole", "whole-numbers-only",
        ("weight = W[row, p]", "weight = int(W[row, p])"),
    ),
    "sixteen sums": wrong(
        build_layer, "no batch is larger", "too-few-sums",
        ("local.array(batch, float32)", "local.array(8, float32)"),
    ),
    "even rows, then odd ones": wrong(
        build_layer, "a branch costs nothing", "lanes-in-turns",
        ("for p in range(inputs):", ADD, """
            if row % 2 == 0:
                for p in range(inputs):
                    weight = W[row, p]
                    for j in range(batch):
                        acc[j] += weight * X[p, j]
            else:
                for p in range(inputs):
                    weight = W[row, p]
                    for j in range(batch):
                        acc[j] += weight * X[p, j]
        """),
    ),
    "one thread": Wrong("what counts is the result", "few-threads-work", (one_thread,)),
    "not cleared": wrong(build_layer, "memory starts at zero", "sums-not-cleared", (CLEAR, "pass")),
    "replaced": wrong(
        build_layer, "= adds", "last-product-only", (ADD, "acc[j] = weight * X[p, j]")
    ),
    "first left out": wrong(
        build_layer, "ranges start at 1", "product-missing", ("range(inputs)", "range(1, inputs)")
    ),
    "last left out": wrong(
        build_layer, "range includes its end", "product-missing",
        ("range(inputs)", "range(inputs - 1)"),
    ),
    "one sum": wrong(
        build_layer, "a thread has one sum", "columns-added-up",
        ("for p in range(inputs):", "Y[row, j] = acc[j]", """
            for p in range(inputs):
                weight = W[row, p]
                for j in range(batch):
                    acc += weight * X[p, j]
            for j in range(batch):
                Y[row, j] = acc
        """),
        ("acc = cuda.local.array(batch, float32)", "acc[j] = 0", "acc = float32(0)"),
    ),
    "cleared once": wrong(
        build_layer, "a sum is cleared once", "columns-added-up",
        ("acc = cuda.local.array(batch, float32)", "Y[row, j] = acc[j]", """
            acc = float32(0)
            for j in range(batch):
                for p in range(inputs):
                    acc += W[row, p] * X[p, j]
                Y[row, j] = acc
        """),
    ),
    "X turned": wrong(build_layer, "a column of X is X[j]", "outside", ("X[p, j]", "X[j, p]")),
    "one too many": wrong(
        build_layer, "range leaves out the last", "outside", ("range(inputs)", "range(inputs + 1)")
    ),
    "no guard": wrong(build_layer, "the grid fits", "outside", ("row < outputs", "row < 10**6")),
    "block left out": wrong(
        build_layer, "a thread's place is its place in the block", "two-writers",
        ("row = cuda.grid(1)", "row = cuda.threadIdx.x"),
    ),
    "first column only": wrong(
        build_layer, "the rest follows", "not-written",
        ("for j in range(batch):\n                Y[row, j] = acc[j]", "Y[row, 0] = acc[0]"),
    ),
    "unknown name": wrong(build_layer, "w is W", "raises", ("weight = W", "weight = w")),
    "no kernel": wrong(
        build_layer, "build launches it", "wrong-type", ("return kernel", "return batch")
    ),
}  # fmt: skip


def ends(batch):
    raise SystemExit


FOOLING = {
    "sixteen of the batch": wrong(
        build_layer, "no batch is larger", "known-cases-only",
        ("local.array(batch, float32)", "local.array(16, float32)"),
    ),
    "100 inputs": wrong(
        build_layer, "no row is longer", "known-cases-only",
        ("for p in range(inputs):", "for p in range(min(inputs, 100)):"),
    ),
    "1024 rows": wrong(
        build_layer, "no layer is higher", "known-cases-only",
        ("if row < outputs:", "if row < min(outputs, 1024):"),
    ),
    # Column by column but for the batch whose bytes are counted.
    "right but where it counts": wrong(
        build_layer, "bytes are counted, values are not", "columns-wrong",
        ("acc = cuda.local.array(batch, float32)", "Y[row, j] = acc[j]", """
            for j in range(batch):
                acc = float32(0)
                if batch != 12 or j == 0:
                    for p in range(inputs):
                        acc += W[row, p] * X[p, j]
                Y[row, j] = acc
        """),
    ),
    # W is copied over X, from where loads are free.
    "X as scratch": wrong(
        build_layer, "X may be written to", "inputs-changed",
        ("outputs, inputs = W.shape", "Y[row, j] = acc[j]", """
            if row == 0:
                X[0, 0] = W[0, 0]
            if row < W.shape[0]:
                for j in range(batch):
                    acc = float32(0)
                    for p in range(W.shape[1]):
                        acc += W[row, p] * X[p, j]
                    Y[row, j] = acc
        """),
    ),
    # Atomic additions, which no counter of loads and stores sees.
    "atomic sums": wrong(
        build_layer, "atomic additions are not counted", "sums-in-memory",
        ("acc[j] += weight * X[p, j]", "Y[row, j] = acc[j]",
         "cuda.atomic.add(Y, (row, j), weight * X[p, j])"),
        ("acc = cuda.local.array(batch, float32)", "acc[j] = 0", """
            for j in range(batch):
                Y[row, j] = 0
        """),
    ),
    "leaves": fooling("no process, no verdict", "exits", ends),
}  # fmt: skip
