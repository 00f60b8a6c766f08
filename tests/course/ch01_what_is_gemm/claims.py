"""What each number in chapter 01's sentences must be."""

from gemmlab import Gemm, kernels, predict, records
from gemmlab.course.ch01_what_is_gemm import guesses
from tests.course.computed import GPU, PEAK, V100, cube, seconds, tflops, us
from tests.course.sentences import Claims, about

LIBRARY = kernels.cublas
PUZZLE, VECTOR = Gemm(64, 64, 8192), Gemm(4096, 1, 4096)


def reached(p):
    """The share of what the rule of thumb allows."""
    return predict(p, GPU).seconds / seconds(LIBRARY, p)


def slower(n, k):
    """How much longer m = n with this k takes than k = n, recorded [%]."""
    return 100 * (seconds(LIBRARY, Gemm(n, n, k)) / seconds(LIBRARY, cube(n)) - 1)


def smallest(device, dtype, ends):
    """The smallest n for which ends × n × ends is math limited."""
    return next(n for n in range(1, ends)
                if predict(Gemm(ends, n, ends, dtype=dtype), device).limiter == "math")  # fmt: skip


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases that the chapter's cells compute",
               "4096×4096", "64×64×8192", "64×8192 times 8192×64", "4096 × 4096 × 64", "β = 0",
               "β = 1", "n = 1)", "64×64×64", "n = 128", "two 4096", "8192 × n × 8192")  # fmt: skip
    c.at("title")
    c.holds("at {} TFLOP/s; the chip's peak is {}.", tflops(LIBRARY, cube(4096)), PEAK / 1e12)
    c.holds("it reaches {}", tflops(LIBRARY, PUZZLE))
    c.holds("the other {} %", 100 * (1 - reached(PUZZLE)))
    c.holds("which runs at {}, worse", tflops(LIBRARY, VECTOR))
    c.at("definition")
    c.given("a definition", "three matrices and two numbers")
    c.at("counting")
    c.given("A, B and C", "three matrices")
    c.at("ex2-text")
    c.given("a convention", "two operations")
    c.at("intensity-next")
    smaller, larger = Gemm(64, 64, 64, dtype="float16"), Gemm(64, 64, 64, dtype="float32")
    c.holds("elements of {} the bytes double", larger.intensity / smaller.intensity)
    c.holds("ratio is {} FLOP/B", V100.ops_per_byte("float16"))
    c.at("worked")
    c.given("columns of the table below", "two columns")
    c.at("explore")
    n = smallest(V100, "float16", 8192)
    c.holds("n = {}.", n)
    c.holds("1/n < 1/{} - 2/8192", V100.ops_per_byte("float16"))
    assert 1 / n < 1 / V100.ops_per_byte("float16") - 2 / 8192 < 1 / (n - 1)
    assert V100.peak_of("float32") < V100.peak_of("float16") / 4  # "by much more than"
    c.asserted("more than half")
    c.at("cpu-intro-next")
    c.given("the next cell's case", "1024 inputs", "a batch of 1 and of 256")
    c.at("cpu-read")
    c.given("the columns of the table above", "batch 256", "batch 1 ")
    c.given("all of the roof", "100 %")
    c.holds("{} FLOP/B, a roof at {} TFLOP/s, and {} in fact", PUZZLE.intensity, PEAK / 1e12,
            tflops(LIBRARY, PUZZLE))  # fmt: skip
    c.holds("16 bytes and does 16,000 operations with them, {} FLOP/B", 16_000 / 16)
    c.at("recorded-intro")
    c.holds("each {} steps long", PUZZLE.k)
    c.at("recorded-read")
    c.holds("{} TFLOP/s and the puzzle at {}, but", *(tflops(LIBRARY, p) for p in (VECTOR, PUZZLE)))
    c.holds("{} times as much of what", about(reached(VECTOR) / reached(PUZZLE), 0.08))
    library = [x for x in records.load("h200", LIBRARY) if x.problem.dtype == "float32"]
    least = min(x.seconds for x in library)
    c.holds("less than {} µs", 1e6 * least)
    c.holds("is {} times what the rule", least / predict(PUZZLE, GPU).seconds)
    even, odd = cube(2048), cube(2049)
    c.holds("From 2048×2048×2048 to 2049×2049×2049 the work grows by {} %",
            100 * (odd.flops / even.flops - 1))  # fmt: skip
    c.at("tiles")
    c.given("the cases of the next two cells", "2049 floats", "1023 should cost more than 1024",
            "k = 4097")  # fmt: skip
    c.holds("k = 4104, whose rows of A start at multiples of {} bytes", 4 * (4104 & -4104))
    c.at("steps-read")
    times = [us(LIBRARY, cube(n)) for n in (1000, 1023, 1024)]
    c.holds("1000, 1023 and 1024 take {} to {} µs", min(times), max(times))
    c.holds("differs by {} %", 100 * (cube(1024).flops / cube(1000).flops - 1))
    c.holds("2049 lies on the next, {} % higher", guesses.ragged().number)
    c.holds("Rows of 1023 floats start at multiples of {} bytes only, and 1023 takes {} % longer "
            "than 1024", 4 * (1023 & -1023), 100 * (times[1] / times[2] - 1))  # fmt: skip
    more = {k: slower(4096, k) for k in (4097, 4098, 4100, 4104)}
    c.holds("other than 4096 costs {} to {} % more, whether its rows start at multiples of {} "
            "or of {} bytes, and the slowest of them is {}.", min(more.values()),
            max(more.values()), 4, 4 * (4104 & -4104), max(more, key=more.get))  # fmt: skip
    c.given("the row that is faster", "k = 4096")
    c.given("half the work", "half of the work is twice as fast")
    c.given("the sum", "nearly 0 has")
    c.holds("at most u = {}", 2.0**-24)
    c.at("check-read")
    p = Gemm(100, 70, 300)
    operands = p.operands(seed=1)
    error = p.error(operands.a.astype("float16").astype("float32") @ operands.b, operands)
    assert error < 0.001  # far less
    c.given("the tolerance from habit", "1 %")
    c.at("ex4-text")
    c.given("a question", "batch of 1 ")
    c.at("summary")
    c.given("questions", "at 2 %", "twice as many")
    c.holds("intensity: {} of {} TFLOP/s", tflops(LIBRARY, PUZZLE), PEAK / 1e12)
