"""The machine code of a kernel inside a compiled ELF file, as ptxas writes them."""

from __future__ import annotations

import struct

from gemmlab.microbenchmarks.loop import ENTRY


def machine_code(cubin: bytes, entry: str = ENTRY) -> bytes:
    """The instructions of the kernel `entry`. Raises ValueError for a file without them.

    Source: Tool Interface Standard, Executable and Linking Format, 64-bit headers.
    """
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError(f"not a 64-bit ELF file: it begins with {cubin[:5]!r}")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + k * size) for k in range(count)]
    names = headers[names_at][4]
    for name, _, _, _, start, length in headers:
        at = names + name
        if cubin[at : cubin.index(b"\0", at)].decode() == f".text.{entry}":
            return cubin[start : start + length]
    raise ValueError(f"no kernel {entry} is in this ELF file of {len(cubin)} B")
