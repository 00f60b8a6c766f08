"""Three uses of fragments: rows times a matrix that follows a rule, Y = X·M, on Tensor Cores.

M is never in memory in the version `registers` of each: its fragments are made from the rule. The
baselines write M to shared memory and load the fragments from there: `shared` writes eight elements
at a time, `shared, one by one` single elements, as one would at first.
"""

from gemmlab.kernels.fragments.givens import givens
from gemmlab.kernels.fragments.householder import householder
from gemmlab.kernels.fragments.prefix_sum import prefix_sum
from gemmlab.kernels.fragments.product import SIZES, WARPS, WHERE, launch

__all__ = ["SIZES", "WARPS", "WHERE", "givens", "householder", "launch", "prefix_sum"]
