"""The example programs of Numba-CUDA's documentation, and what becomes of each on the simulator."""

RIGHT, FOUND, LEFT_OUT = "right", "fault found", "left out"

# File and function of each example -> what becomes of it, and a remark or the reason. "fault
# found": its kernel has one, which the simulator reports. "left out": what the kernel is about lies
# outside of it, on the host or in another language.
EXAMPLES = {
    ("test_vecadd", "test_ex_vecadd"): (RIGHT, ""),
    ("test_matmul", "test_matmul"): (RIGHT, ""),
    ("test_reduction", "test_ex_reduction"): (RIGHT, ""),
    ("test_laplace", "test_ex_laplace"): (RIGHT, "waits for the whole grid; fewer steps"),
    ("test_sessionize", "test_ex_sessionize"): (
        FOUND,
        "waits for the whole grid in a branch that other threads do not take (numba#8874)",
    ),
    ("test_cpu_gpu_compat", "test_ex_cpu_gpu_compat"): (RIGHT, ""),
    ("test_globals", "test_ex_globals_constant_capture"): (
        RIGHT,
        "numbers and arrays of the enclosing scope are those of the first launch, or of the "
        "moment when a signature is given",
    ),
    ("test_globals", "test_ex_globals_device_array_capture"): (RIGHT, ""),
    ("test_montecarlo", "test_ex_montecarlo"): (RIGHT, "Numba's random numbers"),
    ("test_random", "test_ex_3d_grid"): (RIGHT, "Numba's random numbers; a smaller array"),
    ("test_cg", "test_ex_grid_sync"): (RIGHT, "waits for the whole grid"),
    ("test_ufunc", "test_ex_cuda_ufunc_call"): (RIGHT, "calls a ufunc on whole arrays"),
    ("test_cpointer", "test_ex_cpointer"): (LEFT_OUT, "passes an address instead of an array"),
    ("test_ffi", "test_ex_linking_cu"): (LEFT_OUT, "links a function written in CUDA C++"),
    ("test_ffi", "test_ex_from_buffer"): (LEFT_OUT, "links a function written in CUDA C++"),
    ("test_ffi", "test_ex_extra_includes"): (LEFT_OUT, "links a function written in CUDA C++"),
}
