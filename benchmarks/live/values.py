"""Numbers of the library for problems, addresses and integers beyond 2³¹, each told exactly.

    python -m benchmarks.live.values OUT [SEED]

In Pyodide C's `long` and NumPy's own integers have 32 bits, and NumPy's wrap without a word. What
this program writes there and here has to be the same (`python -m benchmarks.live` compares).
"""

# ruff: noqa: B023 (`note` calls what it is given at once)

import random
import sys
from itertools import product

import numpy as np

from benchmarks.live.told import Results
from gemmlab import (
    Gemm,
    Gemms,
    Tiling,
    device,
    formats as number_formats,
    kernels,
    numerics,
    predict,
    predict_all,
)
from gemmlab.device import Device, names
from gemmlab.kernels import GPU, Kernel
from gemmlab.measure import records
from gemmlab.model import (
    alignment,
    in_tiles,
    layers,
    limiter,
    occupancy,
    quantization as tiles,
    register_blocking,
    traffic,
    transactions,
)
from gemmlab.multiplication import choosing

LARGE = 65536
SIDES = (1, 7, 31, 32, 33, 1000, 4095, 4096, 16384, 46341, 65535, LARGE, 92682)
HUGE = (*SIDES, 1 << 20, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1)
WORDS = "float64", "float32", "tf32", "float16", "bfloat16"
OF_A_GEMM = ("flops", "bytes", "array_bytes", "dram_bytes", "intensity", "scaling_flops", "shapes",
             "tolerance")  # fmt: skip
WITH_A_MODEL = [kernel for kernel in (*GPU, *kernels.POLICIES) if kernel.work]


def drawn(rng: random.Random, sides: tuple[int, ...] = SIDES) -> tuple[int, int, int]:
    """Draw three sides: known ones, or any number up to the largest."""
    return tuple(rng.choice((rng.choice(sides), rng.randint(1, max(sides)))) for _ in range(3))


def problems(rng: random.Random, out: Results, times: int = 40) -> None:
    """Sizes, one by one and many at once."""
    for i in range(4 * times):
        size, dtype = drawn(rng, HUGE), rng.choice(WORDS)
        layout = rng.choice(("nn", "nt", "tn", "tt"))
        beta = rng.choice((0.0, 0.5))
        for name in OF_A_GEMM:
            out.note(f"gemm {i} {name}", lambda: getattr(Gemm(
                *size, beta=beta, dtype=dtype, layout=layout), name))  # fmt: skip
    for i in range(times):
        dtype, target = rng.choice(WORDS), rng.choice(names())
        m, n, k = ([drawn(rng, SIDES)[0] for _ in range(5)] for _ in "mnk")
        for name in OF_A_GEMM[:6]:
            out.note(f"gemms {i} {name}", lambda: getattr(Gemms(m, n, k, dtype=dtype), name))
        out.note(f"predict_all {i}", lambda: _all(Gemms(m, n, k, dtype=dtype), target))
        out.note(f"gemms in tiles {i}", lambda: in_tiles.in_tiles(
            Gemms(m, n, k, dtype=dtype), device(target), (128, 128)).times)  # fmt: skip


def _all(many: Gemms, target: str) -> tuple:
    found = predict_all(many, target)
    return found.seconds, found.flops_per_second, found.intensity, list(found.limiter)


def predictions(rng: random.Random, out: Results) -> None:
    """What rungs ask of a GPU for products whose counts need 64 bits."""
    for kernel in WITH_A_MODEL:
        sizes = [(LARGE, LARGE, LARGE), (46344, 46344, 46344), (LARGE, 64, 1 << 20)]
        sizes += [tuple(-(-side // 64) * 64 for side in drawn(rng))]
        for i, size in enumerate(sizes):
            target = device("h200" if i < 2 else rng.choice(("a100_80gb", "rtx4090", "h200")))
            problem = Gemm(*size, **kernel.arithmetic[0]._asdict(),
                           layout=rng.choice(kernel.layouts))  # fmt: skip
            try:
                tiling = kernel.choose(None, problem, target)
            except ValueError:  # on this GPU it takes no product of these formats
                continue
            name = f"{kernel.name} {i}"
            out.note(f"tiling {name}", lambda: str(tiling))
            out.note(f"predict {name}", lambda: predict(problem, target, kernel, tiling))
            out.note(f"asked {name}", lambda: _asked(kernel, problem, target, tiling))
            out.note(f"clocks {name}", lambda: limiter.clocks(
                predict(problem, target, kernel, tiling), target))  # fmt: skip


def _asked(kernel: Kernel, problem: Gemm, target: Device, tiling: Tiling) -> dict:
    # Beyond 2³¹ shares times steps NumPy refuses Stream-K's second grid in Pyodide: `shares`, which
    # cannot change without the records that are known by its text.
    stream_k = kernel in (kernels.stream_k, kernels.mma_stream_k)
    others = (*kernel.before, *kernel.after)
    return {
        "launch": kernel.launch(problem, tiling, target),
        "grids": [one.configure(problem, tiling) for one in others if not stream_k],
        "workspace": kernel.workspace(problem, tiling),
        "shared": kernel.shared_bytes(problem, tiling),
        "padded": tiling.padded_flops(problem),
        "steps": tiling.steps(problem),
    }


def models(rng: random.Random, out: Results, times: int = 80) -> None:
    """Tiles, waves, layers, occupancy, alignment."""
    for i in range(times):
        size, target = drawn(rng), device(rng.choice(("v100", "a100_80gb", "h200", "rtx2060")))
        problem = Gemm(*size, dtype="float16")
        tile, split = rng.choice(in_tiles.TILES), rng.choice((1, 1, 3, 64))
        out.note(f"tiles {i}", lambda: _properties(tiles.quantization(problem, target, tile)))
        out.note(f"in tiles {i}", lambda: _properties(
            in_tiles.in_tiles(problem, target, tile, split)))  # fmt: skip
        out.note(f"chosen {i}", lambda: _properties(in_tiles.choose(problem, target)))
        out.note(f"rows {i}", lambda: alignment.row_alignment(problem))
        batch, layout = rng.choice((1, 1, 3, 1000)), rng.choice(("nn", "nt", "tn", "tt"))
        library = rng.choice((None, "PyTorch"))
        out.note(f"matmul {i}", lambda: _choice(target, (batch, *size), layout, library))
        blocks, resident = rng.randint(1, 1 << 40), rng.randint(1, 32)
        out.note(f"waves {i}", lambda: occupancy.waves(target, blocks, resident))
        out.note(f"registers {i}", lambda: vars(register_blocking.warp_product(
            16 * (1 + size[0] % 4), 8 * (1 + size[1] % 4), 16)))  # fmt: skip
        out.note(f"layers {i}", lambda: [
            layers.relu(math_of(size)), layers.softmax(size[0], size[1]),
            layers.layer_norm(size[1], size[2]), layers.max_pooling(math_of(size)),
            *_passes(layers.Linear(*size))])  # fmt: skip


def math_of(size: tuple[int, int, int]) -> int:
    """Count the elements of three sides."""
    return size[0] * size[1] * size[2]


def _passes(layer: layers.Linear) -> list[int]:
    each = layer.forward, layer.activation_gradient, layer.weight_gradient
    return [n for one in each for n in (one.flops, one.bytes)]


def _choice(target: object, sizes: tuple, layout: str, library: str | None) -> tuple:
    name, tiling, why = choosing.fastest(target, sizes, layout, library)
    return name, str(tiling), why


def _properties(x: object) -> dict:
    """Return what the properties of a class give."""
    own = [name for name in dir(type(x)) if isinstance(getattr(type(x), name), property)]
    return {name: getattr(x, name) for name in own if name != "q"}


def accesses(rng: random.Random, out: Results, times: int = 40) -> None:
    """Transactions of warps whose addresses lie anywhere in 2⁴⁰ bytes; matrices with far rows."""
    for i in range(5 * times):
        width = rng.choice((1, 2, 4, 8, 16))
        base, stride = rng.randrange(1 << 40), rng.choice((1, 3, 32, 1 << 20, 1 << 31, 5 << 30))
        lanes = [base // width * width + width * stride * lane for lane in range(32)]
        given = np.array(lanes, np.int64), np.array([rng.random() < 0.8 for _ in range(32)])
        out.note(f"sectors {i}", lambda: transactions.sectors(*given))
        out.note(f"lines {i}", lambda: transactions.lines(*given))
        for name in ("wavefronts", "load_wavefronts", "least_wavefronts", "l1_cycles"):
            out.note(f"{name} {i}", lambda: getattr(transactions, name)(*given, width))
    for i in range(times):
        wide = rng.choice((1, 2, 4))
        lanes = rng.choice((traffic.plane(32, 8), traffic.in_turn(128, 32, 32, wide)))
        count, tile, stride = drawn(rng)[0], rng.choice((16, 32, 128)), 4 * drawn(rng)[1]
        out.note(f"axis {i}", lambda: [tuple(x) for x in traffic.axis(count, tile, stride, 4)])
        size, given = drawn(rng), rng.choice((Tiling.square(16), Tiling((128, 128, 8), (8, 8))))
        out.note(f"stored {i}", lambda: traffic.update_c(Gemm(*size), given, lanes))
        out.note(f"unstaged {i}", lambda: vars(traffic.unstaged(Gemm(*size), given, lanes)))


def formats(rng: random.Random, out: Results, times: int = 12) -> None:
    """Numbers of every format, words of it, products of Tensor Cores."""
    drawn_by = np.random.default_rng(rng.randrange(1 << 30))
    for name, i in product(WORDS, range(times)):
        bits = number_formats.FORMATS[name].bytes * 8 if name != "tf32" else 32
        words = drawn_by.integers(0, 1 << (bits - 1), 64).astype(np.uint64)
        some = drawn_by.standard_normal(64) * 2.0 ** drawn_by.integers(-40, 40, 64)
        out.note(f"decode {name} {i}", lambda: number_formats.decode(words, name))
        held = number_formats.round_to(some, name)
        for of in ("encode", "ulp", "fields", "to_memory", "round_to"):
            out.note(f"{of} {name} {i}", lambda: getattr(number_formats, of)(held, name))
        for rounding in ("RN", "RZ", "RNA"):
            out.note(f"{rounding} {name} {i}", lambda: number_formats.round_to(
                some, name, rounding))  # fmt: skip
    for i, arch in product(range(times // 2), ("sm_70", "sm_80", "sm_90")):
        a, b = (drawn_by.standard_normal((16, 16)).astype(np.float16) for _ in "ab")
        a, b = (np.ldexp(x, drawn_by.integers(-8, 8, x.shape)) for x in (a, b))
        out.note(f"mma {arch} {i}", lambda: numerics.mma(
            a, b[:, :8], np.zeros((16, 8), np.float32), "m16n8k16.f32.f16", arch))  # fmt: skip
    for i in range(times):
        a, b = (drawn_by.standard_normal((16, 16)).astype(np.float32) for _ in "ab")
        out.note(f"split {i}", lambda: tuple(numerics.split(a)))
        out.note(f"tcec {i}", lambda: numerics.emulated_matmul(a, b, numerics.Policy()))
        out.note(f"chain {i}", lambda: numerics.fma_chain(a, b))
    for kernel in GPU:
        out.note(f"records {kernel.name}", lambda: [
            (str(m.problem), m.seconds, m.flops_per_second) for m in records.load("h200", kernel)
        ])  # fmt: skip


PARTS = problems, predictions, models, accesses, formats


def main() -> None:
    """Compute all of it and write it."""
    out, seed = Results(), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for part in PARTS:
        part(random.Random(f"{part.__name__} {seed}"), out)
    out.write(sys.argv[1])


if __name__ == "__main__":
    main()
