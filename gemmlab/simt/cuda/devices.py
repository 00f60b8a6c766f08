"""The GPU that is simulated, as a program asks for it: its limits, memory, context and streams.

Everything asked of a stream is done at once.
"""

import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, Self

from gemmlab.device import RECORDED, device as device_called
from gemmlab.simt.machine.limits import MAX_GRID, MAX_Z

__all__ = [
    "close", "current_context", "default_stream", "defer_cleanup", "detect", "event",
    "event_elapsed_time", "external_stream", "get_current_device", "gpus", "is_available",
    "is_bfloat16_supported", "is_float16_supported", "is_supported_version",
    "legacy_default_stream", "list_devices", "per_thread_default_stream", "profile_start",
    "profile_stop", "profiling", "require_context", "select_device", "stream", "synchronize",
]  # fmt: skip

# Attributes by the CUDA Driver API's names -> from the numbers of a device's file.
ATTRIBUTES = {
    "MAX_THREADS_PER_BLOCK": lambda d: d.threads_per_block,
    "MAX_BLOCK_DIM_X": lambda d: d.threads_per_block,
    "MAX_BLOCK_DIM_Y": lambda d: d.threads_per_block,
    "MAX_BLOCK_DIM_Z": lambda d: MAX_Z,
    "MAX_GRID_DIM_X": lambda d: MAX_GRID[0],
    "MAX_GRID_DIM_Y": lambda d: MAX_GRID[1],
    "MAX_GRID_DIM_Z": lambda d: MAX_GRID[2],
    "MAX_SHARED_MEMORY_PER_BLOCK": lambda d: d.shared_bytes_per_block_default,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": lambda d: d.shared_bytes_per_block,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": lambda d: d.shared_bytes_per_sm,
    "MAX_REGISTERS_PER_BLOCK": lambda d: d.registers_per_sm,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": lambda d: d.registers_per_sm,
    "MAX_THREADS_PER_MULTI_PROCESSOR": lambda d: d.threads_per_sm,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": lambda d: d.blocks_per_sm,
    "MULTIPROCESSOR_COUNT": lambda d: d.sms,
    "WARP_SIZE": lambda d: d.warp_size,
    "TOTAL_CONSTANT_MEMORY": lambda d: 65_536,
    "L2_CACHE_SIZE": lambda d: d.l2_bytes,
    "CLOCK_RATE": lambda d: round(d.clock / 1e3),  # kHz
    "COMPUTE_CAPABILITY_MAJOR": lambda d: d.compute_capability[0],
    "COMPUTE_CAPABILITY_MINOR": lambda d: d.compute_capability[1],
    "COOPERATIVE_LAUNCH": lambda d: 1,
    "UNIFIED_ADDRESSING": lambda d: 1,
    "MANAGED_MEMORY": lambda d: 1,
    "CAN_MAP_HOST_MEMORY": lambda d: 1,
    "INTEGRATED": lambda d: 0,
}


CUDA_VERSION = 13, 0


class MemoryInfo(NamedTuple):
    """Memory of a GPU [B]."""

    free: int
    total: int


class Device:
    """The simulated GPU, the only one that there is, with the attributes of CUDA's."""

    id = 0
    uuid = "GPU-simulated"
    supports_float16, supports_bfloat16, supports_fp8 = True, False, False

    def __init__(self, devnum: int = 0) -> None:
        if devnum != 0:
            raise IndexError(f"device {devnum!r} is not there; the simulated GPU is device 0")
        self.simulated = simulated = device_called(RECORDED)  # the GPU that gemmlab has recorded
        self.name = f"{simulated.title} (simulated)"
        self.compute_capability = simulated.compute_capability

    @property
    def _device(self) -> Self:
        """Itself: Numba wraps a device in `cuda.gpus`, and programs ask the wrap for it."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name in ATTRIBUTES:
            return ATTRIBUTES[name](self.simulated)
        known = ", ".join(ATTRIBUTES)
        raise AttributeError(f"the simulated GPU has no attribute {name!r}; it has {known}")

    def reset(self) -> None:
        """Forget what the GPU holds, which here is nothing."""

    def get_primary_context(self) -> "Context":
        """Return the context, of which there is one."""
        return _context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is held."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA device 0 '{self.name}'>"


class Context:
    """The context of the simulated GPU."""

    @property
    def device(self) -> Device:
        return current_device()

    def get_memory_info(self) -> MemoryInfo:
        """Return the memory of the GPU's data sheet, all of it free: arrays are in the host's."""
        total = self.device.simulated.dram_bytes
        return MemoryInfo(total, total)

    def synchronize(self) -> None:
        """Wait for the simulated GPU, which has always finished."""

    def push(self) -> None:
        """Make it the one that works, which it always is."""

    def pop(self) -> None:
        """Let another one work; there is none."""

    def create_stream(self) -> "Stream":
        """Return a new stream."""
        return Stream()

    def create_event(self, timing: bool = True) -> "Event":
        """Return a new event."""
        return Event(timing)

    def get_default_stream(self) -> "Stream":
        """Return the stream of launches that name none."""
        return Stream()

    def reset(self) -> None:
        """Forget what the GPU holds, which here is nothing."""


class Devices:
    """`cuda.gpus`: the GPUs that there are, which is one."""

    @property
    def lst(self) -> list[Device]:
        return [current_device()]

    @property
    def current(self) -> Device:
        return current_device()

    def __getitem__(self, number: int) -> Device:
        return select_device(number)

    def __iter__(self) -> Iterator[Device]:
        return iter(self.lst)

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return f"<Managed Device {self.current!r}>"


gpus = Devices()
_context = Context()


@cache
def current_device() -> Device:
    """Return the simulated GPU."""
    return Device()


get_current_device = current_device


def select_device(device_id: int) -> Device:
    """The GPU of a number; IndexError unless it is 0."""
    return current_device() if device_id == 0 else Device(device_id)


def get_context(devnum: int | None = None) -> "Context":
    """Return the context of the simulated GPU; that of another number, IndexError."""
    select_device(devnum or 0)
    return _context


def reset() -> None:
    """Forget what the GPU holds, which here is nothing."""


def driver_version() -> tuple[int, int]:
    """The newest CUDA that the driver would run."""
    return CUDA_VERSION


runtime_version = driver_version


def list_devices() -> Devices:
    """The GPUs that there are."""
    return gpus


def current_context(devnum: int | None = None) -> Context:
    """Return the context of the simulated GPU."""
    return _context


def is_available() -> bool:
    """Say whether kernels run: they do, on the simulator."""
    return True


def is_supported_version() -> bool:
    """Say whether the CUDA Toolkit is one that works; none is needed."""
    return True


def is_float16_supported() -> bool:
    """Say whether kernels can compute with float16."""
    return True


def is_bfloat16_supported() -> bool:
    """Say whether kernels can compute with bfloat16: not on the simulator."""
    return False


def detect() -> bool:
    """Print which GPU is simulated; returns True, as there is one."""
    gpu = current_device()
    major, minor = gpu.compute_capability
    print(f"Found 1 CUDA devices\nid 0    {gpu.name}\n{'Compute Capability':>40}: {major}.{minor}")
    print("Summary:\n\t1/1 devices are supported, by simulation")
    return True


def close() -> None:
    """Give back what the GPU holds, which here is nothing."""


@contextmanager
def defer_cleanup() -> Iterator[None]:
    """Memory is given back when Python does so, in the body and outside."""
    yield


def require_context(function: Any) -> Any:
    """Return a function that needs a context, which there always is."""
    return function


class SimulatedTimeWarning(UserWarning):
    """A time was asked for that is this computer's, not a GPU's."""


class Stream:
    """A queue of launches and copies, which are done at once here: there is nothing to wait for."""

    def synchronize(self) -> None:
        """Wait for what was asked of the stream."""

    @contextmanager
    def auto_synchronize(self) -> Iterator[Self]:
        """The stream, to be waited for at the end of the body."""
        yield self

    def add_callback(self, callback: Callable, arg: Any = None) -> None:
        """Call `callback(stream, status, arg)` when what was asked is done, which is now."""
        callback(self, 0, arg)

    def async_done(self) -> Awaitable[Self]:
        """Return what a coroutine can wait for: the stream, when what was asked is done."""
        import asyncio  # which takes long, and has been imported by who can wait for it

        done: asyncio.Future[Self] = asyncio.get_running_loop().create_future()
        done.set_result(self)
        return done

    def __repr__(self) -> str:
        return "<simulated CUDA stream>"


class Event:
    """A moment of a stream. What is between two of them is the time of this computer."""

    def __init__(self, timing: bool = True) -> None:
        self.timing = timing
        self.moment: float | None = None

    def record(self, stream: Any = 0) -> None:
        """Keep this moment."""
        self.moment = time.perf_counter()

    def query(self) -> bool:
        """Say whether what was asked before it is done, as it always is."""
        return True

    def synchronize(self) -> None:
        """Wait for what was asked before it."""

    def wait(self, stream: Any = 0) -> None:
        """Let a stream wait for it."""

    def elapsed_time(self, evtend: Self) -> float:
        """Time from this event to another one [ms]; see `event_elapsed_time`."""
        return event_elapsed_time(self, evtend)


def stream() -> Stream:
    """Return a new stream."""
    return Stream()


def default_stream() -> Stream:
    """Return the stream of launches that name none."""
    return Stream()


legacy_default_stream = per_thread_default_stream = default_stream


def external_stream(ptr: int) -> Stream:
    """Return a stream of another library."""
    return Stream()


def event(timing: bool = True) -> Event:
    """Return a new event."""
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Time that this computer took to simulate what lies between two events [ms].

    It says nothing about a GPU, and a SimulatedTimeWarning says so. Raises ValueError for events
    that were not recorded, or that keep no time.
    """
    for one in (evtstart, evtend):
        if not one.timing or one.moment is None:
            raise ValueError("an event has no time; make it with timing=True and record() it")
    warnings.warn(
        "this is the time that the simulation took on this computer, and not a GPU's; "
        "gemmlab.predict says how long a GPU would need",
        SimulatedTimeWarning,
        stacklevel=2,
    )
    return 1e3 * (evtend.moment - evtstart.moment)


def synchronize() -> None:
    """Wait for the simulated GPU, which has always finished."""


def profile_start() -> None:
    """Begin what a profiler is to see; none looks at a simulated GPU."""


def profile_stop() -> None:
    """End what a profiler is to see."""


@contextmanager
def profiling() -> Iterator[None]:
    """A profiler is to see the body; none looks at a simulated GPU."""
    yield
