"""Programs of others, run with the simulated GPU in the place of Numba's: `gemmlab simulate`.

in_place   the simulated GPU under the name `numba.cuda`, and `numba` where it is not installed
running    a script or a module, run as Python runs it; what its kernels did, or would take
forecasts  launches predicted from compiled code, and what that says of why they are slow
formats    the account as text, JSON and HTML
"""
