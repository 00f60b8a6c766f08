"""Programs of others, run with the simulated GPU in the place of Numba's: `gemmlab simulate`.

plain_numba   the module `numba` where Numba is not installed
in_place      the simulated GPU under the name `numba.cuda`
running       a script or a module, run as Python runs it
account       what its kernels did: launches, counters, hazards
formats       the account as text, JSON and HTML
"""
