"""book/inside.md: the parts, modules and names that it tells of are there."""

import ast
import re

import numpy as np
import pytest

from gemmlab.simt import cuda
from gemmlab.simt.launch import Launch
from gemmlab.simt.machine.machine import Machine
from gemmlab.simt.report.report import Report
from gemmlab.simt.syntax.source import read_source
from tests.project.test_architecture import ORDER
from tests.support.paths import ROOT

TEXT = (ROOT / "book" / "inside.md").read_text("utf-8")
SIMT = ROOT / "gemmlab" / "simt"
PARTS = [*(p.name for p in SIMT.iterdir() if (p / "__init__.py").is_file()), "launch"]
METHODS = ("operations", "branches", "variables", "loops")  # parts of a machine, by their methods
DOTTED = sorted(set(re.findall(rf"`(?:simt\.)?((?:{'|'.join([*PARTS, *METHODS])})\.\w+)`", TEXT)))


def test_it_lists_every_part_in_the_order_of_imports():
    parts = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| .* \|$", TEXT.split("## A problem")[0], re.M)
    listed = [name for row in parts for name in re.findall(r"`(\w+)`", row)]
    assert sorted([*listed, "__main__"]) == sorted(ORDER)


def test_it_lists_every_folder_of_the_simulator():
    [cell] = re.findall(r"^PARTS = (\[.*\])$", TEXT, re.M)
    assert sorted(ast.literal_eval(cell)) == sorted(PARTS)


def kernel(x):
    x[0] = 1


@pytest.fixture(scope="module")
def machine():
    launch = Launch((1, 1, 1), (1, 1, 1), 0, 1, True, None)
    report = Report(read_source(kernel), launch.grid, launch.block, "raise")
    return Machine(launch, report, {}, [], np.arange(1))


@pytest.mark.parametrize("dotted", DOTTED)
def test_what_it_names_is_there(dotted, machine):
    """A module of a folder of `simt`, a name of `cuda`, or a method of a part of the machine."""
    first, second = dotted.split(".")
    is_module = (SIMT / first / f"{second}.py").is_file()
    owner = cuda if first == "cuda" else getattr(machine, first, None)
    assert is_module or hasattr(owner, second)


def test_its_table_of_the_machine_names_the_parts(machine):
    names = re.search(r"a list of parts:\n\n(.*?)\n\n", TEXT, re.S)[1]
    cells = "".join(row.split("|")[1] for row in names.splitlines()[2:])
    assert set(re.findall(r"`(\w+)`", cells)) == set(vars(machine)) - {"launch", "report"}
