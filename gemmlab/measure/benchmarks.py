"""The records that programs of `benchmarks` made on a device: a file and its dataclasses each.

`fragment_uses`, `tcec_errors`, `networks` and `matmul_times` read what the programs of these names
wrote to gemmlab/recorded/<device>. Each raises LookupError for a device without such a file, and
RecordError for a file that was edited.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemmlab import Gemm, Tiling
from gemmlab.device import RECORDED
from gemmlab.kernels.fragments import WHERE
from gemmlab.measure import store
from gemmlab.model.layers import Batched

REQUIRED = ("device_title", "date")


@dataclass(frozen=True)
class Recorded:
    """One run of a program, with its provenance."""

    provenance: Mapping[str, Any]

    @property
    def source(self) -> str:
        """Where and when it ran, as figures say it."""
        told = self.provenance
        return f"recorded on {told['device_title']}, {told['date'][:10]}"


def read_tables(
    kind: type, device: str, file: str, root: str | Path, tables: Mapping[str, Callable]
) -> Any:
    """Read the tables of a device's file into a `Recorded` of their own kind."""
    found = store.read(store.path_of(device, file, root), tables, REQUIRED)
    return kind(found.provenance, **found.tables)


# --------------------------------------------------------------------- three uses of fragments


PERCENTILES = (10, 50, 90)  # that are kept of a kernel's samples


@dataclass(frozen=True)
class FragmentUse:
    """The times of a batch of products Y = X·M, for each place where M is made."""

    name: str  # prefix sum | householder | givens, arguments | givens, embedded
    m: int  # X and M are m×m
    batch: int
    bytes: int  # that a launch has to read and write at least
    seconds: Mapping[str, tuple[float, float, float]]  # by WHERE: 10th, 50th, 90th percentile

    def speedup(self, over: str) -> float:
        """Count how often the version in registers runs while the version `over` runs once."""
        return self.seconds[over][1] / self.seconds[WHERE[0]][1]


@dataclass(frozen=True)
class FragmentUses(Recorded):
    """One run of `benchmarks/fragment_uses.py`."""

    rows: tuple[FragmentUse, ...]


def fragment_uses(device: str = RECORDED, root: str | Path = store.ROOT) -> FragmentUses:
    """Read the timings of the three uses of fragments on `device`."""
    return read_tables(FragmentUses, device, "fragment_uses.json", root, {"rows": _use})


def _use(use: str, m: int, batch: int, bytes: int, ns: dict, **checked: object) -> FragmentUse:
    """Make a row without the error and the resources, which were checked before it was kept."""
    seconds = {where: tuple(each * 1e-9 for each in ns[where]) for where in WHERE}
    return FragmentUse(use, m, batch, bytes, seconds)


# ------------------------------------------------------------------------- errors of TCEC


@dataclass(frozen=True)
class Errors:
    """The errors of one way to a product, against the exact result."""

    way: str  # a kernel's name, or a library's way
    data: str
    side: int  # rows and columns of C
    k: int
    by_norm: float  # in the Frobenius norm, relative
    largest: float  # of an element, relative to |A||B|


@dataclass(frozen=True)
class Flush:
    """The cost and the gain of adding main products in FP32 every so many of k."""

    interval: int
    by_norm: float
    largest: float
    predicted: float  # error in the norm, of a part of C, by the emulator of the Tensor Core
    measured: float  # the same, of what the GPU computed
    same_bits: bool  # of that part
    seconds: float


@dataclass(frozen=True)
class Way:
    """A way to a float32 product; without times where the library does not have it here."""

    way: str
    n: int
    seconds: float | None
    by_norm: float | None
    largest: float | None
    least_magnitude: float  # of elements, from which on they are represented as well as they can be
    largest_magnitude: float
    workspace_bytes: int
    note: str  # why there are no times, or whose bits it has
    shared_bytes: int | None = None  # of a block; libraries do not say


@dataclass(frozen=True)
class TcecErrors(Recorded):
    """One run of `benchmarks/tcec_errors.py`: errors of float32 products, by TCEC and by others."""

    errors: tuple[Errors, ...]
    flush: tuple[Flush, ...]
    ways: tuple[Way, ...]


TCEC_TABLES = {"errors": Errors, "flush": Flush, "ways": Way}


def tcec_errors(device: str = RECORDED, root: str | Path = store.ROOT) -> TcecErrors:
    """Read the errors of float32 products on `device`."""
    return read_tables(TcecErrors, device, "tcec_errors.json", root, TCEC_TABLES)


# -------------------------------------------------------------------- products of neural networks


@dataclass(frozen=True)
class Timed:
    """The median time of a kernel with a tiling [s]."""

    kernel: str
    tiling: Tiling | None  # None for a library's own
    seconds: float


@dataclass(frozen=True)
class Layer:
    """A product that a network has to compute, and the times that it takes.

    library : by cuBLAS
    ours : in the order of what was expected of them before, the fastest first
    """

    name: str
    problem: Gemm
    library: Timed
    ours: tuple[Timed, ...]

    @property
    def picked(self) -> Timed:
        """The run of ours that was expected to be the fastest."""
        return self.ours[0]

    @property
    def best(self) -> Timed:
        """The run of ours that was the fastest."""
        return min(self.ours, key=lambda run: run.seconds)

    def of_library(self, run: Timed) -> float:
        """Return the speed of a run as a part of the library's."""
        return self.library.seconds / run.seconds


@dataclass(frozen=True)
class Networks(Recorded):
    """One run of `benchmarks/networks.py`: products by our kernels and by cuBLAS."""

    layers: tuple[Layer, ...]


def networks(device: str = RECORDED, root: str | Path = store.ROOT) -> Networks:
    """Read the products of neural networks on `device`."""
    return read_tables(Networks, device, "networks.json", root, {"layers": _layer})


def _layer(name: str, problem: dict, library: dict, ours: list[dict]) -> Layer:
    return Layer(name, Gemm(**problem), _timed(**library), tuple(_timed(**run) for run in ours))


def _timed(kernel: str, tiling: dict | None, seconds: float) -> Timed:
    return Timed(kernel, None if tiling is None else Tiling(**tiling), seconds)


# ---------------------------------------------------------------------------- matmul beside cuBLAS


class Multiplied:
    """A product, one or many, that has sizes: batch, m, n and k."""

    batch: int
    m: int
    n: int
    k: int

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k

    @property
    def name(self) -> str:
        one = f"{self.m}×{self.n}×{self.k}"
        return f"{self.batch} of {one}" if self.batch > 1 else one


@dataclass(frozen=True)
class Product(Multiplied):
    """A product by `matmul` and by the library, one or many: medians of one run, in seconds.

    gpu : from the first to the last that a call queues; host : of Python for a call; loop : of one
    of many calls in a row; the same of cuBLAS, called by CuPy; errors relative to |A||B|
    """

    batch: int
    m: int
    n: int
    k: int
    kernel: str
    gpu: float
    host: float
    loop: float
    cublas_gpu: float
    cublas_host: float
    cublas_loop: float
    error: float
    cublas_error: float


@dataclass(frozen=True)
class Part:
    """The time of one of the things that `matmul` queues for a product."""

    product: str
    what: str
    seconds: float


@dataclass(frozen=True)
class MatmulTimes(Recorded):
    """One run beside cuBLAS, which CuPy called; how it ran is in the history of this project."""

    products: tuple[Product, ...]
    parts: tuple[Part, ...]


def matmul_times(device: str = RECORDED, root: str | Path = store.ROOT) -> MatmulTimes:
    """Read the times of `gemmlab.matmul` beside those of cuBLAS on `device`."""
    tables = {"products": Product, "parts": Part}
    return read_tables(MatmulTimes, device, "matmul.json", root, tables)


def drawn_matmul_times(device: str = RECORDED, root: str | Path = store.ROOT) -> MatmulTimes:
    """Read the same of products whose sizes were drawn, which nobody chose."""
    tables = {"products": Product, "parts": Part}
    return read_tables(MatmulTimes, device, "matmul_drawn.json", root, tables)


# ------------------------------------------------------------------------ a network that learns


@dataclass(frozen=True)
class Way:
    """A way to multiply in a training: the kernel, and the scale of the loss on its way back."""

    name: str
    kernel: str
    scale: float


@dataclass(frozen=True)
class Curve:
    """One training: the loss of each step, and after each epoch the part of the test it knows."""

    way: Way
    losses: tuple[float, ...]
    accuracies: tuple[float, ...]


@dataclass(frozen=True)
class StepLaunch:
    """A launch of a training step: its time in a row of the same, and what was predicted [s]."""

    name: str
    problem: Gemm | None
    blocks: int
    seconds: float
    predicted: float


@dataclass(frozen=True)
class Step:
    """A training step: its time in a row of steps [s]; fused : epilogues are no launches."""

    sizes: tuple[int, ...]
    batch: int
    fused: bool
    seconds: float
    launches: tuple[StepLaunch, ...]

    @property
    def predicted(self) -> float:
        """The sum of what was predicted of the launches [s]."""
        return sum(one.predicted for one in self.launches)


@dataclass(frozen=True)
class SplitProduct:
    """A product of a step with k whole, with k in parts, and by cuBLAS, from a cold L2.

    predicted : of the first two [s]
    """

    name: str
    batch: int
    problem: Gemm
    whole: Timed
    parts: Timed
    library: Timed
    predicted: tuple[float, float]


@dataclass(frozen=True)
class Eager:
    """A step of a wide network in PyTorch; error : of the weights' gradients, by their norm."""

    way: str
    sizes: tuple[int, ...]
    batch: int
    seconds: float
    error: float
    loss: float  # of the last step


@dataclass(frozen=True)
class Training(Recorded):
    """One run of `benchmarks/training.py`."""

    curves: tuple[Curve, ...]
    steps: tuple[Step, ...]
    splits: tuple[SplitProduct, ...]
    eager: tuple[Eager, ...]


def training(device: str = "h100_sxm", root: str | Path = store.ROOT) -> Training:
    """Read how a network learned digits on `device`."""
    tables = {"curves": _curve, "steps": _step, "splits": _split, "eager": _eager}
    return read_tables(Training, device, "training.json", root, tables)


def _curve(way: dict, losses: list, accuracies: list) -> Curve:
    return Curve(Way(**way), tuple(losses), tuple(accuracies))


def _step(sizes: list, launches: list[dict], **told: Any) -> Step:
    return Step(sizes=tuple(sizes), launches=tuple(map(_launched, launches)), **told)


def _launched(launch: dict) -> StepLaunch:
    problem = launch["problem"] and Gemm(**launch["problem"])
    return StepLaunch(**{**launch, "problem": problem})


def _split(
    problem: dict, whole: dict, parts: dict, library: dict, predicted: list, **told: Any
) -> SplitProduct:
    timed = {"whole": whole, "parts": parts, "library": library}
    return SplitProduct(
        problem=Gemm(**problem),
        predicted=tuple(predicted),
        **{name: _timed(**run) for name, run in timed.items()},
        **told,
    )


def _eager(sizes: list, **told: Any) -> Eager:
    return Eager(sizes=tuple(sizes), **told)


# ------------------------------------------------------------------ one block of a transformer


@dataclass(frozen=True)
class BlockProduct:
    """A product of a step, or a batch of them, and its time in a row of the same [s]."""

    name: str
    direction: str  # forward | backward
    product: Batched
    seconds: float


@dataclass(frozen=True)
class BlockKernel:
    """What a kernel took of a step, all its launches together [s], as PyTorch's profiler says."""

    name: str
    launches: int
    seconds: float


@dataclass(frozen=True)
class BlockStep:
    """A step of a block: its sizes, its time [s], the losses of a training, and what it wrote.

    looked_up : whether characters become vectors by a table, or by a product
    """

    looked_up: bool
    sizes: Mapping[str, int]
    seconds: float
    losses: tuple[float, ...]
    sample: str
    kernels: tuple[BlockKernel, ...]


@dataclass(frozen=True)
class BlockTimes(Recorded):
    """One run of `benchmarks/block.py`."""

    steps: tuple[BlockStep, ...]
    products: tuple[BlockProduct, ...]


def block_times(device: str = "h100_sxm", root: str | Path = store.ROOT) -> BlockTimes:
    """Read how long a transformer's block took to train on `device`."""
    tables = {"steps": _block_step, "products": _block_product}
    return read_tables(BlockTimes, device, "block.json", root, tables)


def _block_product(name: str, direction: str, product: dict, seconds: float) -> BlockProduct:
    batched = Batched(product["count"], Gemm(**product["gemm"]))
    return BlockProduct(name, direction, batched, seconds)


def _block_step(losses: list, kernels: list[dict], **told: Any) -> BlockStep:
    found = tuple(BlockKernel(**one) for one in kernels)
    return BlockStep(losses=tuple(losses), kernels=found, **told)
