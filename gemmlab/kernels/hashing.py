"""The hash of a kernel's source: what was measured or compiled is known to be of this code."""

import hashlib
import inspect
import io
import textwrap
import tokenize
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType

from gemmlab.kernels.kernel import Kernel, Launch, no_options, no_workspace

_LINE_STARTS = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
_LAYOUT = (*_LINE_STARTS, tokenize.NL, tokenize.COMMENT, tokenize.ENDMARKER)

# Since Python 3.12; no token is of type -1.
_FORMATTED = tuple(getattr(tokenize, f"FSTRING_{end}", -1) for end in ("START", "END"))

HOME = "gemmlab.kernels."  # where the functions live that are followed
MADE_OF = (HOME, "gemmlab.instructions")  # the modules of which `module.name` counts as `name`


# Sources that read otherwise than when something was recorded of them, and compile to the same code
# in all those cases: their hash, and the recorded one. `benchmarks.same_code` compares them.
CARRIED: dict[str, str] = {
    "208527d31fb078b59583ee1395c71e565121dce2d8c285d16ec285690a20bd6b": (  # tcec_fused
        "027f9989c875d0ffef839ccea69575f3933a02bee7db9effe1ddd4dd8a591d8f"
    ),
    "5eb7137306a0d7a549e43fad7c7921ce3d767e91db3e4f70513edea2f3123257": (  # tcec_mma_tma
        "b89f5047db68a468868e498a3d0b14208f7fb38757023d00a4f4a0fc3fd2670d"
    ),
    "02fdadbe10e45bfb2631e58a71cb013736f268d059f4afe9ce814084a4825d85": (  # mma_tuned
        "7e5b176994710576e583f5a6dfa02ca3355f1bc4a51dbb13bfa7d8ac6ccc130b"
    ),
    "5b3474fb36553c3de5f5a06aa5b0668134c0c2db9ba21a0ca0a20236928f10a5": (  # tcec_registers
        "361b1173a2a8d44ae03d9dbe0e548319213f951cba8f653c16d820b1a5c3dd26"
    ),
    "fe96acf06b80f563a910916341d1676b98967138e49d5cdb0d045d118dd663c2": (  # tcec_split
        "bae3a59da0eec6250b2ba8b3acf5201c637879f0a9050ecce78568d67465ab4a"
    ),
}


def source_hash(kernel: Kernel) -> str:
    """Return the hash by which records know a kernel's source: its own, or one that was carried."""
    own = functions_sha256(kernel)
    return CARRIED.get(own, own)


def functions_sha256(kernel: Kernel) -> str:
    """SHA-256 of the kernel's source, as `functions_hash` takes it.

    It covers `build`, `compile`, `variant` and, where the launch gives shared memory,
    `shared_bytes`; and the same of further launches, with their grids and what they share.
    """
    further = (*kernel.before, *kernel.after)
    shared = [f for f in (kernel.workspace,) if f is not no_workspace]
    grids = [one.configure for one in (kernel, *further)] if shared or further else []
    return functions_hash(*(f for one in (kernel, *further) for f in _asked(one)), *grids, *shared)


def _asked(one: Kernel | Launch) -> list[FunctionType]:
    """Return the functions that the compiler and the driver ask about one launch."""
    options = [f for f in (one.compile, one.variant) if f is not no_options]
    return [one.build, *options, *([one.shared_bytes] if one.dynamic else [])]


def functions_hash(*functions: FunctionType) -> str:
    """SHA-256 of functions' source: its tokens, without comments, docstrings and layout.

    It covers the functions of `gemmlab.kernels` that these call, too, and the constants that any
    of them mentions. `module.name` counts as `name`, for the modules that kernels are made of.
    Raises TypeError for a mention of such a module alone, and AttributeError for a name that it
    does not have.
    """
    to_do = list(functions)
    done: list[FunctionType] = []
    text: list[str] = []
    while to_do:
        function = to_do.pop(0)
        if function in done:
            continue
        done.append(function)
        code, mentioned = _read(function)
        text.append(code)
        for name, value in mentioned:
            value = getattr(value, "py_func", value)  # of what Numba makes of a device function
            if isinstance(value, (int, float, str, tuple)):
                text.append(f"{name} = {value!r}")
            elif isinstance(value, FunctionType) and value.__module__.startswith(HOME):
                to_do.append(value)
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


def _read(function: FunctionType) -> tuple[str, list[tuple[str, object]]]:
    """Give a function's tokens, and the globals that it mentions by name, both without modules."""
    code = list(_tokens(textwrap.dedent(inspect.getsource(function))))
    known = function.__globals__
    mentioned = {name: known[name] for name in _names(function.__code__) & known.keys()}
    modules = {name: mentioned.pop(name) for name in list(mentioned) if _is_home(mentioned[name])}
    found = list(mentioned.items())
    where, followed = f"{function.__module__}.{function.__name__}", set()
    for at in reversed(range(len(code))):
        name = code[at]
        if name not in modules or code[max(0, at - 1)] == ".":
            continue
        if code[at + 1 : at + 2] != ["."]:
            raise TypeError(f"{where} mentions the module {name}; mention what is in it")
        inner = code[at + 2]
        if not hasattr(modules[name], inner):
            raise AttributeError(f"{where} mentions {name}.{inner}, which {name} does not have")
        value = getattr(modules[name], inner)
        if not any(inner == n and value is v for n, v in found):
            found.append((inner, value))
        del code[at : at + 2]
        followed.add(name)
    for name in modules.keys() - followed:  # within a formatted string, which is one token
        raise TypeError(f"{where} mentions the module {name} where it cannot be followed")
    return "\n".join(code), sorted(found, key=lambda one: one[0])


def _is_home(value: object) -> bool:
    """Say whether a value is a module that kernels are made of."""
    return isinstance(value, ModuleType) and value.__name__.startswith(MADE_OF)


def _names(code: CodeType) -> set[str]:
    """Return every global name that a function's code, or a function inside it, mentions."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def tokens(of: FunctionType | ModuleType) -> str:
    """Return the source of a function or a module without comments, docstrings and layout.

    A formatted string is one token, as in Python 3.11; later versions' `tokenize` takes it apart.
    """
    return "\n".join(_tokens(textwrap.dedent(inspect.getsource(of))))


@lru_cache(maxsize=256)
def _tokens(source: str) -> tuple[str, ...]:
    """Return the tokens of a text, as `tokens` counts them."""
    code, previous, begun = [], tokenize.NEWLINE, []
    lines = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == _FORMATTED[0]:
            begun.append(token.start)
        elif token.type == _FORMATTED[1]:
            start = begun.pop()
            if not begun:
                code.append(_between(lines, start, token.end))
        if begun or token.type in _FORMATTED:
            previous = token.type
            continue
        docstring = token.type == tokenize.STRING and previous in _LINE_STARTS
        if token.type not in _LAYOUT and not docstring:
            code.append(token.string)
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.type
    return tuple(code)


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the text from one (line, column) to another, lines counted from 1."""
    text = lines[start[0] - 1 : end[0]]
    text[-1] = text[-1][: end[1]]
    text[0] = text[0][start[1] :]
    return "".join(text)
