"""The numbers of Ootomo and Yokota's paper on shared memory and Tensor Cores (HPC Asia 2023).

Measured are 54.2 and 51 TFLOP/s, kept in `gemmlab.model.literature`, and the ratios in its figures
4, 5 and 8. What is printed differently from what follows is tested as it follows: see equation 1,
the ridge points, and table 1.
"""

from dataclasses import replace

import pytest

from gemmlab.device import device
from gemmlab.formats import number_format
from gemmlab.model.limiter import slopes
from gemmlab.model.literature import published
from gemmlab.model.register_blocking import (
    WarpProduct,
    split_in_memory,
    split_in_registers,
    warp_product,
)
from gemmlab.problem import Gemm
from tests.support.as_printed import Number, agrees, each

# Table 1 has a V100 at 1380 MHz, the clock of the PCIe card, and a V100S at 1597 MHz.
BOOST = device("v100")
V100 = replace(BOOST, clock=1.38e9, peak=dict(BOOST.peak, float16=112e12))
V100S = replace(BOOST, clock=1.597e9, dram_bandwidth=1134e9)
A100, A100_80GB = device("a100_40gb"), device("a100_80gb")
TCEC = split_in_registers(32, 32, 32)
WMMA = split_in_memory(32, 32, 32)


def rate(gpu, dtype):
    """SMs × clock × operations a cycle [TFLOP/s]."""
    return gpu.sms * gpu.clock * gpu.flop_per_cycle_per_sm[dtype] / 1e12


def bytes_per_flop(gpu, dtype, level):
    return slopes(gpu, dtype)[level].bytes_per_flop


def bits(name):
    """Sign, exponent and fraction."""
    form = number_format(name)
    return 1 + form.exponent_bits + form.fraction_bits


def over_dram(gpu):
    return gpu.shared_bandwidth / gpu.dram_bandwidth


NUMBERS = [
    Number("table 1, SMs of V100", "80", lambda: V100.sms),
    Number("table 1, SMs of A100", "108", lambda: A100.sms),
    Number("table 1, MHz of A100", "1410", lambda: A100.clock / 1e6),
    Number("table 1, GB/s of A100 40 GB", "1555", lambda: A100.dram_bandwidth / 1e9),
    Number("table 1, GB/s of A100 80 GB", "2039", lambda: A100_80GB.dram_bandwidth / 1e9),
    Number("table 1, KB shared per SM, V100", "96", lambda: V100.shared_bytes_per_sm / 1024),
    Number("table 1, KB shared per SM, A100", "164", lambda: A100.shared_bytes_per_sm / 1024),
    Number("table 1, GB/s shared, V100", "14131", lambda: V100.shared_bandwidth / 1e9),
    Number("table 1, GB/s shared, V100S", "16353", lambda: V100S.shared_bandwidth / 1e9),
    Number("table 1, GB/s shared, A100", "19491", lambda: A100.shared_bandwidth / 1e9),
    Number("table 1, FP32 TFLOP/s, V100 SXM2", "15.7", lambda: rate(BOOST, "float32")),
    Number("table 1, FP32 TFLOP/s, V100S", "16.4", lambda: rate(V100S, "float32")),
    Number("table 1, FP32 TFLOP/s, A100", "19.5", lambda: rate(A100, "float32")),
    Number("table 1, FP16-TC TFLOP/s, V100 SXM2", "125", lambda: rate(BOOST, "float16")),
    Number("table 1, FP16-TC TFLOP/s, A100", "312", lambda: rate(A100, "float16")),
    Number("table 1, TF32-TC TFLOP/s, A100", "156", lambda: rate(A100, "tf32")),
    Number("2.1.1, shared over device memory, least", "12", lambda: over_dram(A100)),
    Number("2.1.1, shared over device memory, most", "15", lambda: over_dram(V100)),
    Number("2.3, bits of TF32", "19", lambda: bits("tf32")),
    Number("2.3, bits of TF32 in memory", "32", lambda: 8 * number_format("tf32").bytes),
    Number("2.3, exponent of TF32", "8", lambda: number_format("tf32").exponent_bits),
    Number("2.3, mantissa of TF32", "10", lambda: number_format("tf32").fraction_bits),
    Number("2.3, exponent of bfloat16", "8", lambda: number_format("bfloat16").exponent_bits),
    Number("2.3, mantissa of bfloat16", "7", lambda: number_format("bfloat16").fraction_bits),
    Number("3, bytes per flop, shared, A100", "0.06",
           lambda: bytes_per_flop(A100, "float16", "shared")),
    Number("3, bytes per flop, shared, V100", "0.12",
           lambda: bytes_per_flop(V100, "float16", "shared")),
    Number("3, bytes per flop, FP32 and device memory, least", "0.06",
           lambda: bytes_per_flop(BOOST, "float32", "dram")),
    Number("3, bytes per flop, FP32 and device memory, most", "0.10",
           lambda: bytes_per_flop(A100_80GB, "float32", "dram")),
    Number("3, registers at n = 64", "256", lambda: warp_product(64, 64, 64).registers),
    Number("4.4, scale of the corrections", "2048",
           lambda: 2 ** number_format("float16").precision),
    Number("4.4.1, products", "3", lambda: TCEC.products),
    Number("4.4.1, registers for fragments", "128", lambda: TCEC.registers),
    Number("4.4.1, percent of a thread's registers", "50",
           lambda: 100 * TCEC.share_of_registers(A100)),
    Number("4.4.2, bound by WMMA alone", "52.0", lambda: WMMA.bound(A100) / 1e12),
    Number("4.4.2, bound with the extension", "104.0", lambda: TCEC.bound(A100) / 1e12),
    Number(
        "4.4.2, percent of that bound reached", "52",
        lambda: 100 * published()["tcec_float16_batched"].value / TCEC.bound(A100),
    ),
]  # fmt: skip


@each(NUMBERS)
def test_number(value, printed):
    assert agrees(value(), printed)


def test_table_1_tensor_cores_at_1380_and_1597_mhz():
    """112 and 125 are printed there; 125 is the SXM2 card at 1530 MHz."""
    assert round(rate(V100, "float16")) == 113
    assert round(rate(V100S, "float16")) == 131


def test_2_2_a_product_has_more_operations_than_elements():
    for m in range(2, 40):
        for n in range(2, 40):
            p = Gemm(m, n, 3)
            assert p.flops > (m + n) * p.k


def test_2_3_3_fragments_kept_twice_take_more_registers():
    once, twice = warp_product(32, 32, 32), warp_product(32, 32, 32, copies=2)
    assert (once.registers, twice.registers) == (64, 96)
    assert (once.flops, once.shared_bytes) == (twice.flops, twice.shared_bytes)


# --------------------------------------------------------------------------- 3, registers and bytes


@pytest.mark.parametrize("n", [16, 32, 48, 64, 128])
def test_equation_1_as_written_is_a_sixth_of_n_and_a_fifth_where_a_is_made_in_registers(n):
    """(n² + n²)·2 + (n² + n²)·4 bytes are 12n², and 2n³ / 12n² = n/6; n/5 is printed."""
    written = 2 * n**3 / ((n**2 + n**2) * 2 + (n**2 + n**2) * 4)
    assert warp_product(n, n, n).intensity == written == n / 6
    for made in "AB":
        through = "ABCD".replace(made, "")
        assert warp_product(n, n, n, through=through).intensity == n / 5
    assert warp_product(n, n, n, through="AB").intensity == n / 2  # sums stay in registers


@pytest.mark.parametrize("n", [16, 32, 48, 64, 128])
def test_equation_2_registers_are_a_sixteenth_of_the_square(n):
    assert warp_product(n, n, n).registers == n**2 / 16


def test_3_the_spill_limit():
    for gpu in (V100, A100):
        assert warp_product(64, 64, 64).spills(gpu)
        assert not warp_product(48, 48, 48).spills(gpu)
        largest = max(n for n in range(8, 128, 8) if not warp_product(n, n, n).spills(gpu))
        assert largest == 56
    # At that limit, shared memory still bounds an A100, and no longer a V100.
    most = warp_product(56, 56, 56)
    assert most.bound(A100) < most.peak(A100)
    assert most.bound(V100) == most.peak(V100)


def test_3_tensor_cores_gained_more_than_shared_memory():
    """The text has the ridge of the A100 below that of the V100; it lies above, as bytes per flop.

    What becomes smaller is the inverse: bytes for each operation.
    """
    ridges = [slopes(gpu, "float16")["shared"].ridge for gpu in (V100, A100)]
    assert ridges[0] < ridges[1]
    assert [round(ridge, 1) for ridge in ridges] == [7.9, 16.0]
    faster = A100.peak_of("float16") / V100.peak_of("float16")
    assert faster > A100.shared_bandwidth / V100.shared_bandwidth


@pytest.mark.parametrize("gpu", [V100, A100], ids=["v100", "a100"])
@pytest.mark.parametrize("n", [16, 32, 48])
def test_figure_3_making_a_fragment_raises_the_bound(gpu, n):
    loaded, made = warp_product(n, n, n), warp_product(n, n, n, through="BCD")
    assert made.registers == loaded.registers
    assert made.intensity > loaded.intensity
    assert made.bound(gpu) >= loaded.bound(gpu)
    assert loaded.bound(gpu) == min(gpu.peak["float16"], n / 6 * gpu.shared_bandwidth)


# ---------------------------------------------------------------------------------------- 4.4, TCEC


def test_4_4_1_the_parts_of_both_bounds():
    elements = 2 * 32 * 32
    assert TCEC.flops == WMMA.flops == 2 * 32**3
    assert TCEC.shared_bytes == 4 * elements  # loaded as float32
    assert WMMA.shared_bytes == (4 + 2 * 2 + 2 * 2) * elements  # two halves stored, and loaded
    assert TCEC.bound(A100) == TCEC.peak(A100) == A100.peak_of("float16") / 3
    assert WMMA.bound(A100) == WMMA.intensity * A100.shared_bandwidth
    assert TCEC.registers == WMMA.registers


def test_4_4_2_what_was_achieved_lies_between_the_bounds():
    achieved = published()["tcec_float16_batched"].value
    assert WMMA.bound(A100) < achieved < TCEC.bound(A100)
    assert achieved > published()["tcec_float16"].value > A100.peak_of("float32")


def test_warp_products_refuse_bad_input():
    with pytest.raises(ValueError, match="'ABX' has other letters than those of 'ABCD'"):
        warp_product(16, 16, 16, through="ABX")
    with pytest.raises(ValueError, match="n=0"):
        warp_product(16, 0, 16)
    with pytest.raises(ValueError, match="no peak for dtype 'tf32'"):
        warp_product(16, 16, 8, dtype="tf32").bound(V100)
    assert WarpProduct(1, 0, 1.0, "float16").bound(A100) == A100.peak_of("float16")
