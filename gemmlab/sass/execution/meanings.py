"""Which function of this folder says what an opcode does."""

from __future__ import annotations

from gemmlab.sass.execution import (
    accesses,
    bits,
    conversions,
    doubles,
    floats,
    integers,
    lanes,
    logic,
)

MEANINGS = {
    **dict.fromkeys(("MOV", "UMOV"), integers.mov),
    **dict.fromkeys(("LDC", "ULDC"), integers.ldc),
    **dict.fromkeys(("IMAD", "UIMAD"), integers.imad),
    **dict.fromkeys(("IADD3", "UIADD3", "VIADD"), integers.add3),
    **dict.fromkeys(("LEA", "ULEA"), integers.lea),
    **dict.fromkeys(("SHF", "USHF"), bits.shf),
    **dict.fromkeys(("LOP3", "ULOP3"), bits.lop3),
    **dict.fromkeys(("PRMT", "UPRMT"), bits.prmt),
    **dict.fromkeys(("POPC", "UPOPC"), bits.popc),
    **dict.fromkeys(("FLO", "UFLO"), bits.flo),
    **dict.fromkeys(("BREV", "UBREV"), bits.brev),
    **dict.fromkeys(("SGXT", "USGXT"), bits.sgxt),
    **dict.fromkeys(("BMSK", "UBMSK"), bits.bmsk),
    **dict.fromkeys(("ISETP", "UISETP"), logic.isetp),
    **dict.fromkeys(("PLOP3", "UPLOP3"), logic.plop3),
    **dict.fromkeys(("SEL", "USEL"), logic.sel),
    **dict.fromkeys(("VOTE", "VOTEU"), lanes.vote),
    "VIMNMX": integers.vimnmx,
    "VIADDMNMX": integers.viaddmnmx,
    "IABS": integers.iabs,
    "IDP": integers.idp,
    "CS2R": integers.cs2r,
    "R2UR": lanes.r2ur,
    "FSETP": logic.fsetp,
    "DSETP": logic.dsetp,
    "FSEL": logic.fsel,
    "P2R": logic.p2r,
    "R2P": logic.r2p,
    "FFMA": floats.ffma,
    "FADD": floats.fadd,
    "FMUL": floats.fmul,
    "FMNMX": floats.fmnmx,
    "HFMA2": floats.hfma2,
    "DFMA": doubles.dfma,
    "DADD": doubles.dadd,
    "DMUL": doubles.dmul,
    "MUFU": floats.mufu,
    "FCHK": floats.fchk,
    "I2F": conversions.i2f,
    "I2FP": conversions.i2f,
    "F2I": conversions.f2i,
    "F2F": conversions.f2f,
    "FRND": conversions.frnd,
    "SHFL": lanes.shfl,
    "REDUX": lanes.redux,
    "MATCH": lanes.match,
}
ACCESSES = {
    **dict.fromkeys(("LDG", "LDS", "LDL", "LD"), accesses.load),
    **dict.fromkeys(("STG", "STS", "STL", "ST"), accesses.store),
    **dict.fromkeys(("ATOM", "ATOMG", "ATOMS", "RED", "REDG"), accesses.atomic),
    "LDGSTS": accesses.copy,
}
# Their order with other threads is that in which lanes are executed here; there is nothing to do.
NOTHING = {
    *("NOP", "NANOSLEEP", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "FENCE"),
    *("DEPBAR", "LDGDEPBAR"),
}
