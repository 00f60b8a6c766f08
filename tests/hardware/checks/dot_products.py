"""Compare the emulated Tensor Core with the one of this machine's GPU, bit for bit.

On a machine with a GPU of compute capability 9.0:

    python benchmarks/hardware_numerics.py OUTPUT_FOLDER [TILES]

Each instruction multiplies TILES random tiles of every family below; every element of every result
is compared. Prints the mismatches and writes numerics.tar.gz: the counts (summary.json), a sample
of operands and answers for the tests (h200_numerics.npz), and the vectors that differ.

    python benchmarks/hardware_numerics.py compile

compiles the kernels without a GPU.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tests" / "hardware"))

from instruction_probes import WARP, Probe, probe

from gemmlab import instructions
from gemmlab.instructions.fragments import Layout, layout
from gemmlab.instructions.words import halves, packed
from gemmlab.numerics import (
    MMAS,
    Mma,
    decode,
    encode,
    mma,
    number_format,
    round_to,
)

ARCH = "sm_90"
TILES = 2048  # of each family
SAMPLE = 20  # vectors of each family that are written for the tests
KEPT = 400  # vectors that differ, of each family, that are written to be looked into
SHORT = {"float16": "f16", "bfloat16": "bf16", "tf32": "tf32", "float32": "f32"}
CASES = [i for i in MMAS.values() if i.family == "mma"]


# ------------------------------------------------------------------------------------ instructions


def probe_of(case: Mma) -> Probe:
    """A kernel d = mma(a, b, c) on arrays of registers (warps, 32, count)."""
    return probe(getattr(instructions, f"mma_{case.name.replace('.', '_')}"))


def layout_of(case: Mma, operand: str) -> Layout:
    form = SHORT[case.out_dtype if operand == "C" else case.dtype]
    return layout(f"m{case.m}n{case.n}k{case.k}", operand, form, arch=ARCH)


def to_registers(case: Mma, operand: str, words: np.ndarray) -> np.ndarray:
    """Tiles of words (tiles, rows, columns) as registers (warps, 32, count)."""
    place = layout_of(case, operand)
    lanes = place.scatter(words.reshape(-1, place.matrices, *words.shape[1:]))
    return packed(lanes) if lanes.itemsize == 2 else np.ascontiguousarray(lanes).view(np.float32)


def from_registers(case: Mma, registers: np.ndarray) -> np.ndarray:
    """The words of D, (tiles, m, n), in registers (warps, 32, count)."""
    lanes = halves(registers) if case.out_dtype == "float16" else registers.view(np.uint32)
    return layout_of(case, "C").gather(lanes).reshape(-1, case.m, case.n)


# ---------------------------------------------------------------------------------------- families


class Draw:
    """Random tiles A (T, m, k), B (T, k, n), C (T, m, n) as float64, for one case and seed."""

    def __init__(self, case: Mma, tiles: int, seed: list[int]):
        self.case, self.rng = case, np.random.default_rng(seed)
        self.a = (tiles, case.m, case.k)
        self.b = (tiles, case.k, case.n)
        self.c = (tiles, case.m, case.n)
        self.source, self.target = number_format(case.dtype), number_format(case.out_dtype)

    def numbers(self, shape: tuple, form, low, high) -> np.ndarray:
        """±(1 + fraction)·2^e, e uniform in [low, high], to be rounded where e is below emin."""
        e = self.rng.integers(low, high, shape, endpoint=True)
        fraction = self.rng.integers(0, 2**form.fraction_bits, shape)
        plain = self.rng.random(shape) < 0.15  # powers of two, and ones that are nearly so
        fraction = np.where(
            plain, self.rng.choice([0, 1, 2**form.fraction_bits - 1], shape), fraction
        )
        sign = self.rng.choice([-1.0, 1.0], shape)
        return sign * np.ldexp(1 + fraction / 2.0**form.fraction_bits, e)

    def some(self, values: np.ndarray, share: float, replacements: object) -> np.ndarray:
        """`values`, a share of them replaced."""
        picks = self.rng.choice(np.asarray(replacements, np.float64), values.shape)
        return np.where(self.rng.random(values.shape) < share, picks, values)

    def products(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """A·B of the rounded operands, in float64."""
        a, b = (round_to(x, self.case.dtype).astype(np.float64) for x in (a, b))
        with np.errstate(all="ignore"):
            return a @ b

    # Each family gives A, B and C.

    def normal(self):
        c = self.rng.standard_normal(self.c) * self.case.k**0.5
        return self.rng.standard_normal(self.a), self.rng.standard_normal(self.b), c

    def near(self):
        return (
            self.numbers(self.a, self.source, -3, 3),
            self.numbers(self.b, self.source, -3, 3),
            self.numbers(self.c, self.target, -6, 9),
        )

    def finite(self):
        """Any exponent."""
        s, t = self.source, self.target
        return (
            self.numbers(self.a, s, s.emin - s.fraction_bits, s.emax),
            self.numbers(self.b, s, s.emin - s.fraction_bits, s.emax),
            self.numbers(self.c, t, t.emin - t.fraction_bits, t.emax),
        )

    def gaps(self):
        """Terms as far apart as the bits that alignment keeps, a few more or less."""
        top = self.rng.integers(-2, 3, (self.a[0], 1, 1))
        far = self.rng.integers(0, 33, (self.a[0], 1, self.a[2]))
        far[self.rng.random(far.shape) < 0.3] = 0
        one = far // 2
        a = self.numbers(self.a, self.source, 0, 1) * 2.0 ** (top - one)
        b = self.numbers(self.b, self.source, 0, 1) * 2.0 ** (one - far).transpose(0, 2, 1)
        c = self.numbers(self.c, self.target, -33, 6) * 2.0**top
        return a, b, c

    def cancellation(self):
        """Products that cancel in pairs but for a few bits, and C that cancels the rest."""
        a, b = self.near()[:2]
        a[:, :, 1::2] = -a[:, :, 0::2]
        b[:, 1::2, :] = b[:, 0::2, :]
        step = self.rng.choice([0, 0, 1, -1], b[:, 1::2, :].shape) * 2.0**-self.source.fraction_bits
        b[:, 1::2, :] *= 1 + step
        a, b = (round_to(x, self.case.dtype).astype(np.float64) for x in (a, b))
        c = self.some(-self.products(a, b), 0.6, [0.0, -0.0, 1.0, -1.0, 64.0, -0.125])
        return a, b, c

    def subnormal(self):
        s, t = self.source, self.target
        a = self.numbers(self.a, s, s.emin - s.fraction_bits - 1, s.emin + 1)
        reach = 30 if s.emax > 15 else 15
        b = self.numbers(self.b, s, -4, reach)
        low = max(t.emin - t.fraction_bits, s.emin - 30)
        return a, self.some(b, 0.1, [0.0, s.smallest]), self.numbers(self.c, t, low, s.emin + reach)

    def underflow(self):
        """Results about the smallest numbers of the output."""
        s, t = self.source, self.target
        bottom = t.emin - t.fraction_bits
        least = max(bottom - 14, 2 * (s.emin - s.fraction_bits))
        goal = self.rng.integers(least, max(least, bottom + 4) + 1, (self.a[0], 1, 1))
        half = goal // 2
        a = self.numbers(self.a, s, -1, 1) * 2.0**half
        b = self.numbers(self.b, s, -1, 1) * 2.0 ** (goal - half)
        a, b = self.some(a, 0.4, [0.0, -0.0]), self.some(b, 0.2, [0.0, -0.0])
        c = self.numbers(self.c, t, bottom - 1, bottom + 3)
        return a, b, self.some(c, 0.5, [0.0, -0.0, t.smallest, -t.smallest])

    def overflow(self):
        """Sums about the largest number of the output, from C or from the products."""
        s, t = self.source, self.target
        goal = min(t.emax, 2 * s.emax)
        half = goal // 2
        a = self.numbers(self.a, s, -3, 0) * 2.0**half
        b = self.numbers(self.b, s, -3, 0) * 2.0 ** (goal - half)
        same = self.rng.random((self.a[0], 1, 1)) < 0.3
        a, b = np.where(same, np.abs(a), a), np.where(same, np.abs(b), b)
        c = self.numbers(self.c, t, t.emax - 2, t.emax)
        return self.some(a, 0.3, [0.0]), b, self.some(c, 0.5, [t.largest, -t.largest, 0.0])

    def special(self):
        s, t = self.source, self.target
        a, b, c = self.near()
        odd = [0.0, -0.0, np.inf, -np.inf, np.nan, s.largest, -s.smallest, s.smallest_normal]
        share = self.rng.choice([0.01, 0.05, 0.2], (self.a[0], 1, 1))
        c = self.some(c, 0.15, [0.0, -0.0, np.inf, -np.inf, np.nan, t.largest, t.smallest])
        return self.some(a, share, odd), self.some(b, share, odd), c

    def zeros(self):
        """Zeros against the largest numbers: does the exponent of a zero product count?"""
        s, t = self.source, self.target
        column = self.rng.random((self.a[0], 1, self.a[2]))
        huge, tiny = self.numbers(self.a, s, s.emax - 3, s.emax), self.numbers(self.a, s, -9, 0)
        zero = self.some(np.zeros(self.a), 0.5, [-0.0])
        a = np.where(column < 0.3, huge, np.where(column < 0.6, zero, tiny))
        column = column.transpose(0, 2, 1)
        huge, tiny = self.numbers(self.b, s, s.emax - 3, s.emax), self.numbers(self.b, s, -9, 0)
        zero = self.some(np.zeros(self.b), 0.5, [-0.0])
        b = np.where(column < 0.3, zero, np.where(column < 0.6, huge, tiny))
        c = self.some(self.numbers(self.c, t, -12, 0), 0.5, [0.0, -0.0, t.smallest])
        return a, b, c

    def signed_zeros(self):
        """Nothing but zeros, of either sign, and C as small as it can be."""
        t = self.target
        a = self.some(np.zeros(self.a), 0.5, [-0.0])
        b = self.some(self.numbers(self.b, self.source, -2, 2), 0.5, [0.0, -0.0])
        same = self.rng.random((self.a[0], 1, 1)) < 0.5
        a, b = np.where(same, -np.abs(a), a), np.where(same, np.abs(b), b)
        return a, b, self.some(np.zeros(self.c), 0.6, [-0.0, t.smallest, -t.smallest])

    def ties(self):
        """Sums halfway between two numbers of the output, and next to it."""
        t = self.target
        a = self.rng.integers(-8, 9, self.a) / 4.0
        b = self.rng.integers(-8, 9, self.b) / 4.0
        c = self.rng.integers(-(2**t.precision), 2**t.precision, self.c)
        return a, b, c * 2.0 ** self.rng.integers(-4, 2, self.c)

    def words(self, family: str) -> list[np.ndarray]:
        """A, B and C as bits."""
        case = self.case
        if family == "bits":  # any pattern; of TF32 with low bits that are not read
            out = []
            for shape, form in (
                (self.a, self.source),
                (self.b, self.source),
                (self.c, self.target),
            ):
                top = 2 ** (8 * form.words.itemsize)
                out.append(self.rng.integers(0, top, shape).astype(form.words))
            return out
        a, b, c = getattr(self, family)()
        dtypes = case.dtype, case.dtype, case.out_dtype
        out = [encode(round_to(x, t), t) for x, t in zip((a, b, c), dtypes, strict=True)]
        if case.dtype == "tf32" and family == "near":  # low bits that are not read
            for words in out[:2]:
                words |= self.rng.integers(0, 2**13, words.shape, np.uint32)
        return out


FAMILIES = [
    "normal",
    "near",
    "finite",
    "gaps",
    "cancellation",
    "subnormal",
    "underflow",
    "overflow",
    "special",
    "zeros",
    "signed_zeros",
    "ties",
    "bits",
]


def draw(number: int, family: str, tiles: int) -> list[np.ndarray]:
    return Draw(CASES[number], tiles, [number, FAMILIES.index(family)]).words(family)


# --------------------------------------------------------------------------------------- comparing


def values(words: np.ndarray, dtype: str) -> np.ndarray:
    return words.view(np.float32) if dtype == "tf32" else decode(words, dtype)


def emulate(case: Mma, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The words that the model gives for tiles of words."""
    a, b = (values(x, case.dtype) for x in (a, b))
    out = mma(a, b, decode(c, case.out_dtype), case.name, ARCH)
    return out.view(number_format(case.out_dtype).words)


def nature(case: Mma, answer: int, model: int) -> str:
    """In which way two words differ."""
    form = number_format(case.out_dtype)
    x, y = (float(decode(w, case.out_dtype)) for w in (answer, model))
    if np.isnan(x) and np.isnan(y):
        return "NaN bits"
    if x == y == 0:
        return "sign of zero"
    if not (np.isfinite(x) and np.isfinite(y)):
        return "infinity or NaN"
    sign = 1 << (form.exponent_bits + form.fraction_bits)
    places = abs((answer & (sign - 1)) - (model & (sign - 1))) if (answer ^ model) < sign else -1
    return "other sign" if places < 0 else f"{places} ulp" if places < 4 else "4 ulp or more"


def compare(number: int, family: str, words: list, answers: np.ndarray) -> dict:
    """Mismatches of one family, what they are, the first of them, and a sample of vectors."""
    case = CASES[number]
    a, b, c = words
    model = emulate(case, a, b, c)
    wrong = np.argwhere(model != answers)

    def vectors(places: np.ndarray) -> dict:
        t, i, j = places.T
        return {
            "a": a[t, i],
            "b": b[t, :, j],
            "c": c[t, i, j],
            "d": answers[t, i, j],
            "model": model[t, i, j],
        }

    some = np.random.default_rng(number).integers(0, answers.shape, (SAMPLE, 3))
    tally = Counter(
        nature(case, int(answers[tuple(p)]), int(model[tuple(p)])) for p in wrong[:5000]
    )
    return {
        "count": int(answers.size),
        "wrong": len(wrong),
        "tally": dict(tally.most_common()),
        "bad": vectors(wrong[:KEPT]),
        "sample": vectors(some),
    }


def show(case: Mma, vectors: dict, index: int) -> str:
    def line(name: str) -> str:
        return " ".join(format(int(w), "x") for w in np.atleast_1d(vectors[name][index]))

    model, answer = (float(decode(vectors[name][index], case.out_dtype)) for name in ("model", "d"))
    return (
        f"      a {line('a')}\n      b {line('b')}\n      c {line('c')}"
        f"   hardware {line('d')} ({answer:.9g})   model {line('model')} ({model:.9g})"
    )


# --------------------------------------------------------------------------------------------- GPU


def answers(cuda: object, kernel: Callable, case: Mma, words: list) -> np.ndarray:
    """D as the GPU has it, in words."""
    a, b, c = (to_registers(case, x, w) for x, w in zip("ABC", words, strict=True))
    arrays = [cuda.to_device(x) for x in (a, b, c)]
    d = cuda.to_device(np.full(c.shape, np.array(0xDEADBEEF, np.uint32).view(c.dtype)))
    kernel[len(a), WARP](*arrays, d)
    return from_registers(case, d.copy_to_host())


def machine(cuda: object) -> dict:
    import numba_cuda

    from gemmlab.driver import gpu_status

    status = gpu_status()
    return {
        "device": status.name,
        "driver": status.driver,
        "compute_capability": list(status.compute_capability or ()),
        "numba_cuda": numba_cuda.__version__,
        "numpy": np.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def one_case(number: int, pool: ProcessPoolExecutor, cuda: object, tiles: int) -> dict:
    """All families of one case: {family: what `compare` gives}."""
    case = CASES[number]
    drawn = {f: pool.submit(draw, number, f, tiles) for f in FAMILIES}
    kernel = cuda.jit(probe_of(case).kernel)
    judged = {}
    for family, job in drawn.items():
        words = job.result()
        judged[family] = pool.submit(
            compare, number, family, words, answers(cuda, kernel, case, words)
        )
    return {family: job.result() for family, job in judged.items()}


def report(case: Mma, results: dict) -> dict:
    """Print one case; its summary."""
    count = sum(r["count"] for r in results.values())
    wrong = sum(r["wrong"] for r in results.values())
    print(f"{case.name}: {wrong} mismatches in {count} dot products", flush=True)
    for family, r in results.items():
        if r["wrong"]:
            print(f"   {family}: {r['wrong']} of {r['count']}; {r['tally']}")
            for index in range(min(3, r["wrong"])):
                print(show(case, r["bad"], index), flush=True)
    by_family = {f: {k: r[k] for k in ("count", "wrong", "tally")} for f, r in results.items()}
    return {"count": count, "mismatches": wrong, "families": by_family}


def main(folder: Path, tiles: int) -> int:
    from gemmlab.driver import numba_cuda

    folder.mkdir(parents=True, exist_ok=True)
    cuda = numba_cuda()
    summary: dict = {"machine": machine(cuda), "tiles": tiles, "cases": {}}
    samples, bad = {}, {}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for number, case in enumerate(CASES):
            try:
                results = one_case(number, pool, cuda, tiles)
                summary["cases"][case.name] = report(case, results)
            except Exception:
                traceback.print_exc()
                summary["cases"][case.name] = {"failed": traceback.format_exc()}
                continue
            for key in "abcd":
                samples[f"{case.name}.{key}"] = np.concatenate(
                    [r["sample"][key] for r in results.values()]
                )
            for family, r in results.items():
                if r["wrong"]:
                    bad |= {f"{case.name}.{family}.{k}": v for k, v in r["bad"].items()}
    note = {k: summary[k] for k in ("machine", "tiles")} | {
        "counts": {n: c.get("count") for n, c in summary["cases"].items()},
        "mismatches": {n: c.get("mismatches") for n, c in summary["cases"].items()},
        "families": FAMILIES,
    }
    archives = {"h200_numerics.npz": {"note": json.dumps(note), **samples}, "mismatches.npz": bad}
    with tarfile.open(folder / "numerics.tar.gz", "w:gz") as tar:
        _add(tar, "summary.json", json.dumps(summary, indent=1).encode())
        for name, arrays in archives.items():
            content = io.BytesIO()
            np.savez_compressed(content, **arrays)
            _add(tar, name, content.getvalue())
    failed = [n for n, c in summary["cases"].items() if c.get("mismatches") != 0]
    print("all equal" if not failed else f"not equal: {', '.join(failed)}")
    return bool(failed)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def compile_all() -> None:
    """Compile every kernel to PTX for compute capability 9.0; no GPU is needed."""
    from numba.cuda import types

    from gemmlab.driver import numba_cuda

    cuda = numba_cuda()
    for case in CASES:
        one = probe_of(case)
        kinds = [*(given.dtype for given in one.inputs), one.output[0]]
        arrays = tuple(types.Array(getattr(types, kind), 3, "C") for kind in kinds)
        ptx, _ = cuda.compile_ptx(one.kernel, arrays, cc=(9, 0))
        name = one.instruction.ptx.split()[0]
        assert ptx.count(name) == 1
        print(f"{case.name}: {name}")


if __name__ == "__main__":
    if sys.argv[1:] == ["compile"]:
        compile_all()
    elif len(sys.argv) in (2, 3):
        sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else TILES))
    else:
        sys.exit(__doc__)
