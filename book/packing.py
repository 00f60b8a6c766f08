"""What `pack.mjs` runs: compile the packages in /packing/in into /packing/out.bin, a tar in gzip.

Python reads a file of bytecode in half of the time that it takes to read and compile its source.
Packages of others go without their sources; those of gemmlab stay, because the simulated GPU reads
kernels. Each file is packed with the same date and in one order, so that the same packages make the
same pack.
"""

import gzip
import io
import os
import py_compile
import tarfile
from pathlib import Path

SITE = "/lib/python3.14/site-packages"
UNCHECKED = py_compile.PycInvalidationMode.UNCHECKED_HASH
FOLDER = Path("/packing/in")


def compiled(file: Path, name: str) -> bytes:
    """Return the bytecode of a file that a page finds as `name`."""
    py_compile.compile(file, "/made.pyc", f"{SITE}/{name}", True, invalidation_mode=UNCHECKED)
    return Path("/made.pyc").read_bytes()


def add(pack: tarfile.TarFile, name: str, data: bytes) -> None:
    """Put a file into the pack."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    pack.addfile(entry, io.BytesIO(data))


with (
    gzip.GzipFile("/packing/out.bin", "wb", 9, mtime=0) as out,
    tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as pack,
):
    for file in sorted(Path(at) / name for at, _, names in os.walk(FOLDER) for name in names):
        name = file.relative_to(FOLDER).as_posix()
        own = name.startswith("gemmlab/")
        if file.suffix == ".py":
            kept = f"{Path(name).parent}/__pycache__/{file.stem}.cpython-314.pyc"
            add(pack, kept if own else f"{name}c", compiled(file, name))
        if own or file.suffix != ".py":
            add(pack, name, file.read_bytes())
