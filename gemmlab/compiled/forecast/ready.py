"""Rungs are ready to be simulated: what their warps did is recorded, for those that are looked at.

To execute compiled code takes seconds, while the SM is simulated in a fraction of one. What is
executed does not depend on the reader's choices, so that it comes with gemmlab, in a few kB a rung.
`python -m benchmarks.ready` writes the file. A rung whose source or listing has changed since has
no record, and is executed.
"""

import hashlib
import lzma
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gemmlab import Gemm
from gemmlab.compiled.forecast.executed import Executed
from gemmlab.compiled.forecast.rung_listings import rung_listing
from gemmlab.compiled.forecast.rungs import execute_rung, forecast_rung
from gemmlab.compiled.forecast.whole_gpu import sm_facts
from gemmlab.compiled.sass.listing import Listing
from gemmlab.compiled.sm.facts import Facts, facts
from gemmlab.compiled.sm.streams import Block, Stream
from gemmlab.device import RECORDED
from gemmlab.kernels.hashing import source_hash
from gemmlab.kernels.kernel import Kernel
from gemmlab.measure import store

REQUIRED = "date", "gemmlab"
COLUMNS = {field.name: np.int8 if field.name == "levels" else np.int32 for field in fields(Stream)}


@dataclass(frozen=True, eq=False)
class Ready:
    """The blocks of an SM with all that their simulation takes, L2 being warm.

    blocks : in the order in which they start; resident : how many at once
    """

    code: Listing
    blocks: Sequence[Block]
    resident: int
    facts: Facts

    @property
    def warps(self) -> int:
        """Warps that the SM holds at once."""
        return self.resident * len(self.blocks[0])


class Shown(NamedTuple):
    """A rung whose code is simulated: k -> a run of it, and the predicted time of the product [s].

    The two runs are those of `execute_rung`.
    """

    runs: Mapping[int, Ready]
    seconds: float


def ready(executed: Executed) -> Ready:
    """Return what was executed, as it is simulated."""
    return Ready(
        executed.code, executed.blocks(cold=False), executed.share.resident, sm_facts(executed)
    )


def executed_rung(kernel: Kernel, problem: Gemm) -> Shown:
    """Execute a rung in its own tiling, and predict its time; seconds."""
    executed = execute_rung(problem, RECORDED, kernel)
    runs = {k: ready(one) for k, one in executed.items()}
    return Shown(runs, forecast_rung(problem, executed).seconds)


def shown_rung(kernel: Kernel, problem: Gemm, root: str | Path = store.ROOT) -> Shown:
    """Return a rung as it is recorded, and execute it where there is no record of this code."""
    return recorded_rung(kernel, problem, root) or executed_rung(kernel, problem)


def recorded_rung(kernel: Kernel, problem: Gemm, root: str | Path = store.ROOT) -> Shown | None:
    """Read what is recorded of a rung; None where that is not of this source and this listing."""
    try:
        stored = store.read(path_of(root), {"rungs": dict, "runs": dict}, REQUIRED)
    except FileNotFoundError:
        return None
    code = rung_listing(kernel, problem, device=RECORDED)
    wanted = _key(kernel, problem, code)
    found = next((row for row in stored.tables["rungs"] if wanted.items() <= row.items()), None)
    if found is None:
        return None
    runs = {
        row["k"]: Ready(
            code,
            _unpacked(row["streams"], row["warps"]),
            row["resident"],
            replace(facts(RECORDED), **row["facts"]),
        )
        for row in stored.tables["runs"]
        if row["kernel"] == kernel.name
    }
    return Shown(runs, found["seconds"])


def path_of(root: str | Path = store.ROOT) -> Path:
    """Return the file of all rungs."""
    return Path(root) / RECORDED / "ready.json"


def write(
    shown: Mapping[tuple[Kernel, Gemm], Shown], told: Mapping[str, str], root: str | Path
) -> None:
    """Write the file of all rungs; `told` is their provenance."""
    rungs, runs = [], []
    for (kernel, problem), one in shown.items():
        code = next(iter(one.runs.values())).code
        rungs.append({**_key(kernel, problem, code), "seconds": one.seconds})
        usual = vars(facts(RECORDED))
        for k, run in one.runs.items():
            own = {name: x for name, x in vars(run.facts).items() if x != usual[name]}
            runs.append({
                "kernel": kernel.name, "k": k, "resident": run.resident, "facts": own,
                "warps": len(run.blocks[0]), "streams": _packed(run.blocks),
            })  # fmt: skip
    store.write(path_of(root), told, {"rungs": rungs, "runs": runs}, REQUIRED)


def _key(kernel: Kernel, problem: Gemm, code: Listing) -> dict[str, Any]:
    """Return what a record holds for: the rung, the product, and the code to the bit."""
    return {
        "kernel": kernel.name,
        "problem": str(problem),
        "tiling": str(kernel.choose(None, problem)),
        "source_sha256": source_hash(kernel),
        "code_sha256": hashlib.sha256(str(code).encode()).hexdigest(),
    }


def _packed(blocks: Sequence[Block]) -> str:
    """Write streams as text: differences, because loops repeat, which compresses well."""
    streams = [stream for block in blocks for stream in block]
    parts = [np.array([len(stream) for stream in streams], np.int32)]
    parts += [
        np.diff(getattr(stream, name).astype(np.int32), prepend=np.int32(0))
        for stream in streams
        for name in COLUMNS
    ]
    whole = np.concatenate([[len(streams)], *parts]).astype("<i4")
    return b64encode(lzma.compress(whole.tobytes(), preset=9)).decode()


def _unpacked(text: str, warps: int) -> list[Block]:
    whole = np.frombuffer(lzma.decompress(b64decode(text)), "<i4").astype(np.int32)
    count = int(whole[0])
    sizes, at, streams = whole[1 : 1 + count].tolist(), 1 + count, []
    for size in sizes:
        columns = whole[at : at + size * len(COLUMNS)].reshape(len(COLUMNS), size)
        made = zip(COLUMNS.items(), columns.cumsum(axis=1, dtype=np.int32), strict=True)
        streams.append(Stream(**{name: column.astype(kind) for (name, kind), column in made}))
        at += size * len(COLUMNS)
    return [streams[i : i + warps] for i in range(0, count, warps)]
