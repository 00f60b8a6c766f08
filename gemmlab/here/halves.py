"""Numba's arithmetic in float16, in PTX: for machines that have no NVRTC to compile it.

Numba-CUDA declares functions for it, which are C++: NVRTC (90 MB to download) compiles CUDA's
header `cuda_fp16.h`, and nvJitLink puts that into the kernel's code. Here each function is defined
by the PTX that the header has in its place, and libNVVM puts it into the kernel's code.
"""

import re

ONE = {  # what is one instruction, with its operands in their order behind the result
    "__hadd": "add.f16", "__hsub": "sub.f16", "__hmul": "mul.f16",
    "__hadd_rn": "add.rn.f16", "__hsub_rn": "sub.rn.f16", "__hmul_rn": "mul.rn.f16",
    "__hadd_sat": "add.sat.f16", "__hsub_sat": "sub.sat.f16", "__hmul_sat": "mul.sat.f16",
    "__hfma": "fma.rn.f16", "__hfma_sat": "fma.rn.sat.f16", "__hfma_relu": "fma.rn.relu.f16",
    "__hneg": "neg.f16", "__habs": "abs.f16",
    "__hmax": "max.f16", "__hmin": "min.f16",
    "__hmax_nan": "max.NaN.f16", "__hmin_nan": "min.NaN.f16",
    "htrunc": "cvt.rzi.f16.f16", "hceil": "cvt.rpi.f16.f16",
    "hfloor": "cvt.rmi.f16.f16", "hrint": "cvt.rni.f16.f16",
}  # fmt: skip
COMPARED = ("eq", "ne", "le", "ge", "lt", "gt")
IN_FLOAT32 = {  # what happens to x, a float32 that the half becomes and the result comes from
    "hsqrt": "sqrt.approx.ftz.f32 x, x;",
    "hrsqrt": "rsqrt.approx.ftz.f32 x, x;",
    "hrcp": "rcp.approx.ftz.f32 x, x;",
    "hexp": "fma.rn.f32 x, x, 0f3FB8AA3B, 0f80000000; ex2.approx.ftz.f32 x, x;",  # times log2 e
    "hexp2": "ex2.approx.ftz.f32 x, x; fma.rn.f32 x, x, 0f33800000, x;",  # and 2⁻²⁴ of it
    "hexp10": "fma.rn.f32 x, x, 0f40549A78, 0f80000000; ex2.approx.ftz.f32 x, x;",  # log2 10
    "hlog": "lg2.approx.ftz.f32 x, x; mul.f32 x, x, 0f3F317218;",  # ln 2
    "hlog2": "lg2.approx.ftz.f32 x, x;",
    "hlog10": "lg2.approx.ftz.f32 x, x; mul.f32 x, x, 0f3E9A209B;",  # log10 2
}
# Halves whose result would be an ulp off, and what is added to it: words. Source: cuda_fp16.hpp
# of CUDA 13.0. (In hlog2 the header asks this of the result.)
MENDED = {
    "hexp": ((0x1F79, 0x9400), (0x25CF, 0x9400), (0xC13B, 0x0400), (0xC1EF, 0x0200)),
    "hexp10": (
        (0x34DE, 0x9800), (0x9766, 0x9000), (0x9972, 0x1000), (0xA5C4, 0x1000), (0xBF0A, 0x8100),
    ),
    "hlog": ((0x160D, 0x9C00), (0x3BFE, 0x8010), (0x3C0B, 0x8080), (0x6051, 0x1C00)),
    "hlog2": ((0xA2E2, 0x8080), (0xBF46, 0x9400)),
    "hlog10": ((0x338F, 0x1000), (0x33F8, 0x9000), (0x57E1, 0x9800), (0x719D, 0x9C00)),
}  # fmt: skip
# A quotient that is as small as 143·2⁻²⁴ was rounded from too few bits: one step of Newton's.
QUOTIENT = """{.reg .f32 x, y, r, q, e; .reg .b16 h, s, t; .reg .pred p;
cvt.f32.f16 x, $1; cvt.f32.f16 y, $2; rcp.approx.ftz.f32 r, y; mul.f32 q, r, x;
cvt.rn.f16.f32 h, q; abs.f16 s, h; neg.f32 y, y; fma.rn.f32 e, y, q, x; fma.rn.f32 e, r, e, q;
mov.b16 t, 0x008F; setp.lt.f16 p, s, t; mov.b16 t, 0; setp.gt.and.f16 p, s, t, p;
@p cvt.rn.f16.f32 h, e; mov.b16 $0, h;}"""
OPERATORS = {
    "pl": "__hadd", "mi": "__hsub", "ml": "__hmul", "dv": "__hdiv", "pL": "__hadd", "mI": "__hsub",
    "mL": "__hmul", "dV": "__hdiv", "ng": "__hneg", "eq": "__heq", "ne": "__hneu", "gt": "__hgt",
    "lt": "__hlt", "ge": "__hge", "le": "__hle",
}  # fmt: skip

_DECLARED = re.compile(r'^declare i32 @"(_Z\w+_nbst)"\(([^)]*)\)', re.MULTILINE)
_EXTERN = re.compile(r"^\.extern \.func .*?(_Z\w+_nbst)", re.MULTILINE)


def defined(text: str) -> str:
    """Return LLVM's text in which the functions of float16 that it declares are defined.

    Those that have no PTX here stay declared.
    """
    return _DECLARED.sub(lambda found: _definition(*found.groups()) or found[0], text)


def undefined(ptx: str) -> list[str]:
    """Name the functions of 16-bit numbers that PTX calls and does not have.

    >>> undefined(".extern .func (.param .b32 func_retval0) _ZL4hsin6__half_nbst")
    ['hsin']
    """
    return sorted({_name(symbol) or symbol for symbol in _EXTERN.findall(ptx)})


def _name(symbol: str) -> str:
    """Return the name of a function, or that of what an operator calls; "" for others.

    >>> _name("_ZL6__hadd6__halfS__nbst"), _name("_ZmlRK6__halfS1__nbst")
    ('__hadd', '__hmul')
    """
    if found := re.match(r"_ZL(\d+)(\w+)", symbol):
        return found[2][: int(found[1])]
    return OPERATORS.get(symbol[2:4], "") if symbol[4:].startswith("R") else ""


def _definition(name: str, declared: str) -> str:
    """Define one: numbers come by their addresses, and the result goes to the first; "" if none."""
    kinds = [re.sub(r"%.*", "", part).strip() for part in declared.split(",")]
    _, *given = kinds
    # Of bfloat16 nothing is here.
    code = ptx_of(_name(name), len(given)) if "6__half" in name else ""
    if not code:
        return ""
    answer = "i8" if kinds[0].startswith("i8") else "i16"
    value = "%v" if answer == "i16" else "%b"
    numbers = ", ".join(f"i16 %x{i}" for i in range(len(given)))
    code = code.replace("\n", " ")
    return "\n".join([
        f'define linkonce_odr i32 @"{name}"({", ".join(f"{k} %p{i}" for i, k in enumerate(kinds))})'
        " alwaysinline {",
        *(f"  %x{i} = load i16, {kind} %p{i + 1}" for i, kind in enumerate(given)),
        f'  %v = call i16 asm "{code}", "=h{",h" * len(given)}"({numbers})',
        *([] if answer == "i16" else ["  %b = trunc i16 %v to i8"]),
        f"  store {answer} {value}, {kinds[0]} %p0",
        "  ret i32 0",
        "}",
    ])  # fmt: skip


def ptx_of(name: str, operands: int) -> str:
    """Return the PTX of a function of the header, whose result is $0 and operands $1, $2, $3.

    >>> ptx_of("__hfma", 3), ptx_of("hsin", 1)
    ('fma.rn.f16 $0, $1, $2, $3;', '')
    """
    if name in ONE:
        return f"{ONE[name]} {', '.join(f'${i}' for i in range(operands + 1))};"
    if name == "__hisnan":
        return "{.reg .pred p; setp.nan.f16 p, $1, $1; selp.u16 $0, 1, 0, p;}"
    if (found := re.fullmatch(r"__h(\w\w)(u?)", name)) and found[1] in COMPARED:
        how = found[1] + found[2]
        return f"{{.reg .pred p; setp.{how}.f16 p, $1, $2; selp.u16 $0, 1, 0, p;}}"
    if name in IN_FLOAT32:
        asked = "h" if name == "hlog2" else "$1"
        mended = "".join(
            f" mov.b16 s, 0x{what:04X}; set.eq.f16.f16 s, {asked}, s; mov.b16 u, 0x{more:04X};"
            " fma.rn.f16 h, s, u, h;"
            for what, more in MENDED.get(name, ())
        )
        return (
            f"{{.reg .f32 x; .reg .b16 h, s, u; cvt.f32.f16 x, $1; {IN_FLOAT32[name]} "
            f"cvt.rn.f16.f32 h, x;{mended} mov.b16 $0, h;}}"
        )
    return QUOTIENT if name == "__hdiv" else ""
