"""The hash of a kernel's source: what changes it, and what does not."""

import linecache
import sys
from dataclasses import replace

import pytest

from gemmlab import kernels
from gemmlab.kernels.hashing import source_hash, tokens


def rung(text, **scope):
    """A kernel whose `build` is the function of a text, where names mean what `scope` says."""
    name = f"<{hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope["__name__"] = "a_rung"
    exec(compile(text, name, "exec"), scope)
    return kernels.Kernel("k", "", None, scope["build"])


def test_source_hash_ignores_layout_but_not_code():
    one = source_hash(rung('def build(t):\n    """Doc."""\n    return 1 + t\n'))
    same = source_hash(rung("def build(t):\n    # note\n\n    return 1  +  t\n"))
    other = source_hash(rung("def build(t):\n    return 2 + t\n"))
    assert one == same != other


def refusing(x, many):
    # fmt: off
    a = f"{x} and {f'{many!r:>{x}}'} {{}}" f"more"
    return rf'''{a}
\n''' + "plain"
    # fmt: on


def test_formatted_strings_are_one_token_in_every_python():
    assert tokens(refusing).split("\n")[8:] == [
        *("a", "="), """f"{x} and {f'{many!r:>{x}}'} {{}}\"""", 'f"more"',
        *("return", "rf'''{a}", r"\n'''"), *("+", '"plain"'),
    ]  # fmt: skip


def test_source_hash_has_what_the_source_calls_and_asks_for(monkeypatch):
    one = source_hash(kernels.tiled)
    asked = replace(kernels.tiled, compile=lambda tiling: {"launch_bounds": (256, 2)})
    assert source_hash(asked) != one
    assert source_hash(replace(kernels.tiled, idea="another")) == one

    module = sys.modules["gemmlab.kernels.simt.tiled"]
    for helper in (module.check, sys.modules["gemmlab.kernels.simt.naive"].configure):
        monkeypatch.setattr(module, "float32", helper)  # a name that build mentions
        assert source_hash(kernels.tiled) != one
    pads = []
    for pad in (4, 8):
        monkeypatch.setattr(module, "float32", pad)
        pads.append(source_hash(kernels.tiled))
    assert len({one, *pads}) == 3


NAMED = """
def build(tiling):
    copy = copying(tiling, PIECE)
    def kernel(C, inside):
        copy(C, inside.copying)
    return kernel
"""


def test_what_a_module_has_is_followed_as_a_name_is(monkeypatch):
    from gemmlab.kernels.tensor_core.shared import shared_layouts as layouts

    one = source_hash(rung(NAMED, copying=layouts.copying, PIECE=layouts.PIECE))
    text = NAMED.replace("= copying", "= layouts.copying").replace("PIECE", "layouts.PIECE")
    assert source_hash(rung(text, layouts=layouts)) == one
    mixed = text.replace("layouts.PIECE", "PIECE")
    assert source_hash(rung(mixed, layouts=layouts, PIECE=layouts.PIECE)) == one
    assert source_hash(rung(text.replace("layouts", "l"), l=layouts)) == one
    monkeypatch.setattr(layouts, "PIECE", 16)
    assert source_hash(rung(text, layouts=layouts)) != one
    monkeypatch.undo()
    monkeypatch.setattr(layouts, "copying", layouts.moved)
    assert source_hash(rung(text, layouts=layouts)) != one


def test_modules_that_kernels_are_not_made_of_are_names_like_others():
    from gemmlab.model import traffic

    text = "def build(tiling):\n    return traffic.staged(tiling)\n"
    other = text.replace("traffic.", "")
    assert source_hash(rung(text, traffic=traffic)) != source_hash(rung(other, staged=None))


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("layouts.copy(1)", AttributeError, "mentions layouts.copy, which layouts does not have"),
        ("layouts", TypeError, "mentions the module layouts; mention what is in it"),
        ("[layouts]", TypeError, "mentions the module layouts; mention what is in it"),
        ('f"{layouts.PIECE}"', TypeError, "the module layouts where it cannot be followed"),
    ],
)
def test_a_module_that_cannot_be_followed_is_an_error(text, error, says):
    from gemmlab.kernels.tensor_core.shared import shared_layouts as layouts

    with pytest.raises(error, match=says):
        source_hash(rung(f"def build(tiling):\n    return {text}\n", layouts=layouts))


def test_source_hash_has_device_functions_whether_numba_is_there_or_not(monkeypatch):
    from gemmlab.kernels.simt.shared import tile_copies as copies

    one = source_hash(kernels.pipelined)
    plain = getattr(copies.inside, "py_func", copies.inside)  # as the stand-in leaves it
    monkeypatch.setattr(copies, "inside", plain)
    assert source_hash(kernels.pipelined) == one
    monkeypatch.setattr(copies, "inside", copies.copyable)
    assert source_hash(kernels.pipelined) != one


def test_source_hash_has_what_the_launch_is_asked_for():
    """Shared memory that the source states is in the source; the size of a launch is not."""

    def other(*arguments):
        return {}

    for kernel in (kernels.pipelined, kernels.warp_tiled):
        one = source_hash(kernel)
        assert source_hash(replace(kernel, variant=other)) != one
        assert source_hash(replace(kernel, compile=other)) != one
        changed = source_hash(replace(kernel, shared_bytes=other)) != one
        assert changed == kernel.dynamic
