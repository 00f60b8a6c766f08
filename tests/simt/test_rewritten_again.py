"""A kernel that is built again keeps its lock-step form, wherever that cannot be another one."""

import linecache
import types

import numpy as np
import pytest
from numpy import float32

from gemmlab import cuda, simulate
from gemmlab.simt.syntax.rewrite import rewrite
from gemmlab.simt.syntax.source import read_source


def form(function):
    return rewrite(function, read_source(function), translate=lambda value: value)


TWO = float32(2)


def build(T, scale=TWO):
    def doubled(x):
        return x * scale

    def kernel(x):
        tile = cuda.shared.array(T, float32)
        i = cuda.threadIdx.x
        tile[i] = doubled(x[i])
        cuda.syncthreads()
        x[i] = tile[T - 1 - i]

    return kernel


def test_the_same_values_give_the_same_form_with_constants_of_its_own():
    one, two = form(build(8)), form(build(8))
    assert two.code is one.code
    helpers = [
        next(v for v in f.constants.values() if getattr(v, "__name__", "") == "doubled")
        for f in (one, two)
    ]
    assert helpers[0] is not helpers[1]


@pytest.mark.parametrize("other", [9, 8.0, np.int64(8), True])
def test_another_size_or_type_is_rewritten(other):
    assert form(build(other)).code is not form(build(8)).code


def test_each_launch_has_the_values_of_its_own_scopes():
    for scale in (2, 3, 2):
        x = np.arange(8, dtype=np.float32)
        simulate(build(8, float32(scale)), 1, 8, x)
        assert x.tolist() == [scale * i for i in range(7, -1, -1)]


def with_table(table):
    def kernel(x):
        i = cuda.grid(1)
        x[i] = table[i]

    return kernel


def test_an_array_is_copied_each_time():
    table = np.arange(4, dtype=np.float32)
    for _ in range(2):
        x = np.zeros(4, np.float32)
        simulate(with_table(table), 1, 4, x)
        assert x.tolist() == table.tolist()
        table += 1


def test_an_attribute_of_a_module_that_was_replaced_is_another_value(monkeypatch):
    module = types.ModuleType("constants")
    module.count = 3

    def kernel(x):
        x[0] = module.count

    found = []
    for count in (3, 4):
        monkeypatch.setattr(module, "count", count)
        x = np.zeros(1, np.int32)
        simulate(kernel, 1, 1, x)
        found += x.tolist()
    assert found == [3, 4]


def test_functions_of_one_line_are_told_apart():
    for kernel, expected in zip([lambda x: x.fill(1), lambda x: x.fill(2)], (1, 2), strict=True):
        x = np.zeros(2, np.float32)
        simulate(kernel, 1, 1, x)
        assert x.tolist() == [expected] * 2


def test_defaults_are_those_of_the_function_that_is_called():
    def made(value):
        def added(x, add=value):
            return x + add

        def kernel(x):
            x[0] = added(x[0])

        return kernel

    for value in (1, 5):
        x = np.zeros(1, np.int32)
        simulate(made(value), 1, 1, x)
        assert x[0] == value


def test_the_text_of_a_function_is_read_anew_where_its_file_has_changed():
    def lines(name, comment):
        text = f"def kernel(x):\n    x[0] = 1  # {comment}\n"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        scope = {"__name__": __name__}
        exec(compile(text, name, "exec"), scope)
        return read_source(scope["kernel"]).lines

    assert lines("<cell one>", "before")[1].endswith("# before")
    assert lines("<cell one>", "after")[1].endswith("# after")
    assert lines("<cell two>", "before")[1].endswith("# before")
