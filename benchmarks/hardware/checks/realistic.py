"""Kernels as courses have them: their results on the GPU, and Nsight Compute's counters beside.

The kernels are those of `benchmarks/samples/realistic`, of which a piece is a topic. What a case
launches is counted launch by launch; the simulator must count the same, but for the cases in
`DIFFERS`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from benchmarks.hardware import machine
from benchmarks.hardware.check import Check, Comparison, Measured
from benchmarks.hardware.checks.counters import COUNTERS, METRICS, hardware
from benchmarks.hardware.profiler import NCU, profiled
from benchmarks.samples.realistic import CASES, is_right, simulated
from gemmlab.device import Device
from gemmlab.instructions import host

NAME = "realistic"
# Cases whose counters are not the simulator's, by the reason: their results alone are compared.
DIFFERS = {
    "which thread comes first decides how often others turn, or where they store": (
        *("graphs.breadth_first_level_by_level", "graphs.breadth_first_with_a_frontier"),
        *("graphs.shortest_paths_of_bellman_and_ford", "graphs.components_by_least_labels"),
        *("graphs.components_by_union_and_find", "locks.lock_that_spins"),
        *("locks.locks_of_buckets_with_a_flag", "locks.lists_with_a_head_for_each_bucket"),
        *("locks.transfers_between_locked_accounts", "scans.scan_with_decoupled_look_back"),
        *("scans.append_with_one_atomic_a_warp", "locks.maximum_by_compare_and_swap"),
    ),
    "lanes turn a loop different numbers of times; the compiler unrolls it and takes the rest of "
    "the turns apart, so that lanes meet in other turns": (
        *("graphs.page_rank", "histograms.histogram_in_shared_memory"),
        *("histograms.histogram_with_a_copy_for_each_warp", "images.bilateral_filter"),
        *("histograms.histogram_with_a_copy_for_each_thread", "learning.convolution_in_full"),
        *("linear_algebra.factor_of_cholesky", "reductions.mean_and_variance_of_welford"),
        *("reductions.sums_by_key_with_atomics", "sorts.merge_sort_from_below"),
        *("sorts.counting_sort", "sorts.quicksort_with_a_stack_of_its_own"),
        *("sparse.product_in_compressed_rows_one_thread_each", "strings.hashes_fnv1a"),
        *("sparse.product_in_small_dense_blocks", "sparse.product_in_compressed_columns"),
        *("sparse.sparse_times_dense_matrix", "strings.hashes_of_bernstein"),
        *("strings.checksum_crc32_by_a_table", "strings.substring_by_rolling_hashes"),
        "stencils.diffusion_with_a_grid_that_waits",
    ),
    "the compiler keeps what an earlier turn, or a function that it inlines, has loaded": (
        *("dynamic.ways_to_pay", "graphs.triangles_counted", "idioms.function_within_a_kernel"),
        *("histograms.weighted_histogram_between_edges", "scans.runs_of_equal_keys"),
        *("learning.nearest_neighbours_of_points", "sparse.products_of_sparse_rows_by_merging"),
        "strings.words_and_letters_counted",
    ),
    "what both branches begin or end with is done once, for the lanes of both": (
        *("scans.scan_of_hillis_and_steele", "sorts.bitonic_sort_in_a_block"),
        "linear_algebra.determinants_of_many_small_matrices",
    ),
    "neighbouring elements, or fields of a record, are loaded and stored together": (
        *("dynamic.most_probable_states_of_viterbi", "idioms.particles_in_records"),
        *("linear_algebra.product_with_tiles", "simulation.attractions_of_bodies"),
    ),
    "sine and cosine read tables in global memory": (
        *("drawing.rotation_to_the_nearest_pixel", "learning.points_turned_by_quaternions"),
        *("monte_carlo.normal_numbers_of_box_and_muller",),
        *("simulation.fourier_transform_from_its_definition",),
    ),
    "the two parts of a complex number are loaded and stored apart": (
        *("idioms.numbers_in_the_plane", "simulation.fourier_transform_with_two_roots"),
    ),
    "an atomic maximum of floats is a loop of compare-and-swap, which loads the element first": (
        "stencils.laplace_until_it_rests",
    ),
    "bank conflicts of atomics are no loads or stores to Nsight Compute": (
        "images.equalisation_of_the_histogram",
    ),
    "NumPy arrays that overlap become two arrays on a GPU, each at an address of its own": (
        "idioms.shift_within_one_array",
    ),
}  # fmt: skip
APART = {name: reason for reason, names in DIFFERS.items() for name in names}


# Cases that numba-cuda-mlir 0.6.0 refuses, by the reason: left out where it launches.
REFUSED = {
    "it does not know cuda.threadfence": (
        *("histograms.averages_of_bins_by_the_last_block", "locks.consumer_before_its_producer"),
        *("locks.barrier_of_the_grid_made_of_atomics", "locks.lock_taken_by_one_thread_of_a_block"),
        *("locks.lock_that_spins", "locks.lock_with_tickets", "locks.locks_of_buckets_with_a_flag"),
        *("locks.transfers_between_locked_accounts", "reductions.sum_that_the_last_block_ends"),
        "scans.scan_in_which_each_block_waits_for_the_one_before",
        "scans.scan_with_decoupled_look_back",
    ),
    "it does not know cuda.lanemask_lt": ("scans.append_with_one_atomic_a_warp",),
    "it does not know min and max of three numbers": (
        "dynamic.edit_distances_with_rows_that_change_places", "dynamic.time_warping",
        "dynamic.local_alignment_of_smith_and_waterman", "images.colours_as_hue_saturation_value",
    ),
    "it does not know divmod": ("sparse.product_in_small_dense_blocks",),
    "it does not know sets and members of enumerations, nor tuples of tuples": (
        "idioms.neighbours_from_a_tuple", "idioms.states_with_names",
        "locks.table_with_open_addresses", "simulation.paths_of_lorenz",
    ),
    "it has no complex numbers of 128 bits and no row of an array as a value": (
        "idioms.cube_as_a_row", "simulation.fourier_transform_with_two_roots",
    ),
    "it does not know strings": ("strings.brackets_balanced", "strings.cipher_of_caesar"),
    "it makes a compare-and-swap of int32 with an int64, which MLIR refuses": (
        "graphs.breadth_first_with_a_frontier",
    ),
    "it copies arrays back that may not be written": (
        *("strings.code_base64", "strings.hashes_fnv1a", "strings.hashes_of_bernstein"),
        *("strings.numbers_read", "strings.palindromes_among_numbers"),
        *("strings.substring_at_every_place", "strings.substring_of_knuth_morris_and_pratt"),
    ),
}  # fmt: skip
OUT = {name for names in REFUSED.values() for name in names}


def cases(piece: str) -> dict[str, Callable]:
    out = OUT if machine.launches_by_mlir() else ()
    return {
        name: case for name, case in CASES.items()
        if name.partition(".")[0] == piece and name not in out
    }  # fmt: skip


def pieces(device: Device) -> Mapping[str, str]:
    return dict.fromkeys(sorted({name.partition(".")[0] for name in CASES}), "")


def launched(kernel: Callable, grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0):
    """Run a kernel on the GPU on NumPy arrays, which Numba copies there and back."""
    kernel[grid, block, 0, shared_bytes](*arguments)
    host.cuda().synchronize()


def launch(piece: str) -> None:
    """Launch the kernels of each case, and after each case one that says so."""
    end = host.cuda().jit(end_of_case)
    for case in cases(piece).values():
        case(launched)
        launched(end, 1, 1, np.zeros(1, np.float32))


def end_of_case(x):
    x[0] = 1


def by_case(rows: Iterable[tuple[str, dict[str, int]]]) -> list[list[dict[str, int]]]:
    """The counters of each case's launches, from the names and counters of all.

    How often a case launches may depend on which thread came first.
    """
    found: list[list[dict[str, int]]] = [[]]
    for name, counters in rows:
        if end_of_case.__name__ in name:
            found.append([])
        else:
            found[-1].append(counters)
    return found[:-1]


def measure(piece: str, device: Device) -> Measured:
    """Of each case, whether its result was right, and the counters of its launches.

    `DIFFERS` is of Numba-CUDA's code: of another compiler's, nothing is counted.
    """
    right = {name: bool(is_right(case(launched))) for name, case in cases(piece).items()}
    if machine.launches_by_mlir():
        return {name: {"right": is_so, "counters": None} for name, is_so in right.items()}
    counted = by_case(profiled(NAME, piece, METRICS))
    return {
        name: {"right": right[name], "counters": counters}
        for name, counters in zip(right, counted, strict=True)
    }


@cache
def here(name: str) -> list[Mapping[str, int]]:
    """The simulator's counters of the launches of a case."""
    return [report.counters for report in simulated(CASES[name])[1]]


def compare(piece: str, measured: Measured, device: Device) -> Comparison:
    found = Comparison()
    for name in cases(piece):
        one = measured[name]
        found.holds(one["right"], f"{name}: the result on the GPU is wrong")
        if name in APART or one["counters"] is None:
            continue
        found.equal(f"{name}: launches", len(one["counters"]), len(here(name)))
        for i, (there, counted) in enumerate(zip(one["counters"], here(name), strict=False)):
            read = hardware(there)
            for counter in COUNTERS:
                found.equal(f"{name}, launch {i}: {counter}", read[counter], counted[counter])
    return found


CHECK = Check(
    NAME,
    "kernels as courses have them: results, and counters of Nsight Compute and simulated",
    pieces,
    measure,
    compare,
    tool=NCU,
    launch=launch,
    quick=("reductions",),
)
