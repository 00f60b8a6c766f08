"""Three uses of fragments: rows times a matrix that follows a rule, Y = X·M, on Tensor Cores.

M is never in memory in the `registers` version of each: its fragments are made from the rule. The
`shared` version is the baseline: it writes M to shared memory and loads the fragments from there.
"""

from gemmlab.kernels.fragments.givens import givens
from gemmlab.kernels.fragments.householder import householder
from gemmlab.kernels.fragments.prefix_sum import prefix_sum
from gemmlab.kernels.fragments.product import WARPS, launch

__all__ = ["WARPS", "givens", "householder", "launch", "prefix_sum"]
