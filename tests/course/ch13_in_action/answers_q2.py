"""Answers to exercise 13.2."""

from gemmlab.course.ch13_in_action.q2_epilogue import build_rectified as build
from tests.course.answers import edited, fooling, wrong

EPILOGUE = (
    "        if row < m and col < n:\n"
    "            acc += bias[row, 0]\n"
    "            C[row, col] = acc if acc > 0 else float32(0)\n"
)
GUARD = "        if row < m and col < n:\n"
ADD = "            acc += bias[row, 0]\n"
STORE = "            C[row, col] = acc if acc > 0 else float32(0)"
LOOP = "        for start in range(0, k, T):\n"
STEP = "                acc += As[y, p] * Bs[p, x]\n            cuda.syncthreads()\n"
LEAST = "float32(0)"


RIGHT = {
    "max": (edited(build, (STORE, "            C[row, col] = max(acc, float32(0))")),),
    "the sum begins with the bias": (
        edited(
            build,
            ("        acc = float32(0)\n",
             "        acc = bias[row, 0] if row < m and col < n else float32(0)\n"),
            (ADD, ""),
        ),
    ),
    "two branches": (
        edited(
            build,
            (ADD + STORE,
             "            y = acc + bias[row, 0]\n            if y < 0:\n"
             "                C[row, col] = 0\n            else:\n                C[row, col] = y"),
        ),
    ),
}  # fmt: skip

WRONG = {
    "linear": wrong(
        build, "the next layer rectifies", "rectifier-forgotten",
        (STORE, "            C[row, col] = acc"),
    ),
    "no bias": wrong(build, "a bias starts as 0", "bias-forgotten", (ADD, "")),
    "the product": wrong(
        build, "a GEMM is a GEMM", "neither", (ADD + STORE, "            C[row, col] = acc")
    ),
    "rectified first": wrong(
        build, "the order makes no difference", "rectified-too-early",
        (ADD + STORE,
         "            C[row, col] = (acc if acc > 0 else float32(0)) + bias[row, 0]"),
    ),
    "min": wrong(
        build, "max keeps what is below", "wrong-side-kept",
        (STORE, "            C[row, col] = min(acc, float32(0))"),
    ),
    "abs": wrong(
        build, "a rectifier turns signs over", "magnitude-kept",
        (STORE, "            C[row, col] = abs(acc)"),
    ),
    "bias 0": wrong(
        build, "the bias is a number", "one-bias-for-all", ("bias[row, 0]", "bias[0, 0]")
    ),
    "of the column": wrong(
        build, "biases lie along a row", "bias-of-column", ("bias[row, 0]", "bias[col % m, 0]")
    ),
    "a row of biases": wrong(
        build, "biases lie along a row", "bias-outside", ("bias[row, 0]", "bias[0, col]")
    ),
    "in the loop": wrong(
        build, "acc is the result at any time", "bias-each-step",
        (STEP, STEP + "            acc += bias[row, 0] if row < m else float32(0)\n"), (ADD, ""),
    ),
    "no guard for the bias": wrong(
        build, "only stores need guards", "bias-outside",
        (GUARD + ADD, "        acc += bias[row, 0]\n" + GUARD),
    ),
    "no guard": wrong(
        build, "grids fit", "store-outside",
        (EPILOGUE, "        acc += bias[row, 0] if row < m else float32(0)\n"
                   "        C[row, col] = acc if acc > 0 else float32(0)\n"),
    ),
    "loaded in each step": wrong(
        build, "loads are free", "bias-again",
        (LOOP, "        b = float32(0)\n" + LOOP),
        (STEP, STEP + "            if row < m and col < n:\n                b = bias[row, 0]\n"),
        (ADD, "            acc += b\n"),
    ),
    "stored twice": wrong(
        build, "C holds the sum, then the layer", "c-again",
        (ADD + STORE,
         "            C[row, col] = acc\n            y = C[row, col] + bias[row, 0]\n"
         "            C[row, col] = y if y > 0 else float32(0)"),
    ),
    "0 stays": wrong(
        build, "C is 0 before", "not-written",
        (STORE, "            if acc > 0:\n                C[row, col] = acc"),
    ),
    "whole numbers": wrong(
        build, "biases are whole", "whole-numbers-only",
        ("bias[row, 0]", "float32(int(bias[row, 0]))"),
    ),
    "20 rows at most": wrong(
        build, "layers are small", "known-cases-only",
        (STORE, STORE.replace("acc > 0", "acc > 0 and row < 16")),
    ),
}  # fmt: skip

FOOLING = {
    "from global memory": wrong(
        build, "the counter is what counts", "traffic-over-budget",
        ("                acc += As[y, p] * Bs[p, x]\n",
         "                if row < m and col < n and start + p < k:\n"
         "                    acc += A[row, start + p] * B[start + p, col] + 0 * As[y, p]\n"),
    ),
    "known sizes": wrong(
        build, "the cases are in the package", "known-cases-only",
        (STORE, STORE.replace("acc > 0", "acc > 0 and k < 18")),
    ),
    "A is scratch": wrong(
        build, "what was copied is done with", "inputs-changed",
        (ADD, ADD + "            A[row, 0] = 0\n"),
    ),
    "a generator": fooling("yield is return", "wrong-type", lambda T: (yield build(T))),
}  # fmt: skip
