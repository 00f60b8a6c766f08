"""What each number in chapter 02's sentences must be."""

from gemmlab import Gemm, device, kernels, predict
from gemmlab.measure import microbenchmarks
from gemmlab.model.layers import OPERATIONS, Attention, Convolution, Linear
from gemmlab.model.limiter import BLOCKS_PER_SM, limiter, slopes
from tests.course.ch01_what_is_gemm.claims import smallest
from tests.course.ch02_intensity_and_limiters import test_chapter as chapter
from tests.course.computed import GPU, PEAK, us
from tests.course.sentences import Claims, about, over, under

LIBRARY = kernels.cublas
CUBE, WIDE, SMALL, VECTOR, MIDDLE, FLAT = (Gemm(*size) for size in (
    (2048, 2048, 2048), (8192, 128, 8192), (256, 256, 256), (4096, 1, 4096),
    (1024, 1024, 1024), (4096, 4096, 64)))  # fmt: skip


def clocks(p):
    """Arithmetic and DRAM alone [s]."""
    return predict(p, GPU).times


def roof(p):
    """What the library reaches of its roof [%]."""
    return 100 * 1e6 * predict(p, GPU).seconds / us(LIBRARY, p)


def claims(c: Claims) -> None:
    """The chapter's sentences in their order."""
    c.anywhere("cases that the chapter's cells compute", "2048×2048×2048", "8192×128×8192",
               "256×256×256", "4096×1×4096", "1024×1024×1024", "4096×4096×64", "4096×4096×4096",
               "3×3", "256³")  # fmt: skip
    c.anywhere("a warp", "32 threads")
    c.anywhere("three steps after a product, each a launch", "three launches", "three such steps",
               "all three steps")  # fmt: skip
    c.at("title")
    c.holds("2048×2048×2048 in {} µs", us(LIBRARY, CUBE))
    c.holds("{} times the bytes, it needs {} µs", WIDE.bytes / CUBE.bytes, us(LIBRARY, WIDE))
    c.holds("here {} times the bytes take {} times as long",
            about(VECTOR.bytes / SMALL.bytes, 0.01),
            about(us(LIBRARY, VECTOR) / us(LIBRARY, SMALL), 0.03))  # fmt: skip
    c.given("a pair", "The two products")
    c.holds("has {} times the bytes again, and they cost {} %", FLAT.bytes / MIDDLE.bytes,
            100 * (us(LIBRARY, FLAT) / us(LIBRARY, MIDDLE) - 1))  # fmt: skip
    c.at("clocks")
    c.given("arithmetic and moving bytes", "two parts")
    c.holds("delivers {} TB/s", GPU.dram_bandwidth / 1e12)
    c.holds("the {} µs of", us(LIBRARY, WIDE))
    c.holds("matrices are {} MB", WIDE.bytes / 1e6)
    c.given("A, B and C", "three matrices")
    c.at("clocks-intro")
    c.holds("moves {} times as much", WIDE.bytes / CUBE.bytes)
    c.at("clocks-read")
    c.given("rows of the table", "first two products")
    c.holds("DRAM needs {} times as long", clocks(VECTOR)["dram"] / clocks(VECTOR)["math"])
    assert sum(clocks(SMALL).values()) < us(LIBRARY, SMALL) / 1e7
    c.at("elementwise")
    c.holds("a vector, reaches {} % of the speed", roof(VECTOR))
    c.given("the cubes", "the two large products")
    c.holds("arithmetic for {} of the cube's {},", 1e6 * clocks(CUBE)["math"], us(LIBRARY, CUBE))
    c.holds("reach {} % of the roof", roof(CUBE))
    assert round(roof(CUBE)) == round(roof(WIDE))
    c.holds("256³ stays at {} %", roof(SMALL))
    c.holds("for {} of the vector's {} µs", 1e6 * clocks(VECTOR)["dram"], us(LIBRARY, VECTOR))
    c.holds("explain the {} % of the pair", 100 * (us(LIBRARY, FLAT) / us(LIBRARY, MIDDLE) - 1))
    c.holds("needs {} µs of arithmetic, and 4096×4096×64 only {} of DRAM",
            1e6 * clocks(FLAT)["math"], 1e6 * clocks(FLAT)["dram"])  # fmt: skip
    assert clocks(FLAT)["math"] == clocks(MIDDLE)["math"]
    c.given("what ReLU does", "numbers by 0")
    c.at("relu-read")
    c.given("the size of a float", "4 bytes to load, 4 bytes to store")
    c.holds("operation: {} FLOP/B", 1 / (4 + 4))
    c.holds("computes {} TFLOP/s", PEAK / 1e12)
    c.at("chain")
    copied = microbenchmarks.load("h200").launch("dram_copy_128")
    c.holds(
        "a copy of {} MB reached {} TB/s", copied.bytes / 2 / 1e6, GPU.dram_copy_bandwidth / 1e12
    )
    c.holds("which is {} % of", 100 * GPU.dram_copy_bandwidth / GPU.dram_bandwidth)
    c.at("chain-read")
    c.holds("Of the {} bytes of `add_bias` {} are", 4 * 3, 4)
    c.given("the size of the bias in the cell above", "only 64")
    c.holds("is {} bytes for each element", 4 * (2 + 2 + 3))
    c.at("fused-intro")
    c.given("the next cell's case", "2²⁷")
    c.at("fused-read")
    c.holds("the factor is {} by this forecast and {} by", chapter.ONE_LAUNCH, 28 / 12)
    c.tested("test_what_compiled_code_says_of_one_launch", "4096 rows of 4096", "about 80 µs",
             "would take 48.")  # fmt: skip
    c.given("FP16", "2 bytes")
    c.at("operations-read")
    c.given("names of OPERATIONS", "a batch of 512", "a batch of 1 ")
    c.holds("does {} operations on it", OPERATIONS["layer normalization"].intensity * 2 * 2)
    ratios = [device(name).ops_per_byte("float16") for name in ("v100", "a100_80gb", "h200")]
    low = max(o.intensity for name, o in OPERATIONS.items() if "linear" not in name)
    c.holds("lie {} times below or more", over(min(ratios) / low))
    c.holds("at most {} percent", under(100 * low / min(ratios)))
    tiled = chapter.at_4096(kernels.tiled)[1]
    c.holds("at {} FLOP/B", tiled["dram"])
    c.holds("That is {} times the ratio", about(tiled["dram"] / GPU.ops_per_byte("float32"), 0.03))
    c.given("an FMA, its operands", "two operations, a thread of tiled loads two floats")
    c.holds("passes {} TB/s", GPU.shared_bandwidth / 1e12)
    c.at("memories-read")
    c.holds("{} FLOP/B at DRAM, {} at L2 and L1, {} at shared", tiled["dram"], tiled["l2"],
            tiled["shared"])  # fmt: skip
    assert tiled["l1"] == tiled["l2"]
    ridges = {at: slope.ridge for at, slope in slopes(device("v100"), "float16").items()}
    c.holds("asks for {} operations for each byte from DRAM in FP16, but for {} where the data "
            "lies in L2, and for {} where",
            *(ridges[at] for at in ("dram", "l2", "shared")))  # fmt: skip
    c.at("rungs")
    behind = {name: chapter.over_its_bound(name, 4096) for name in (
        "naive", "coalesced", "vectorised", "warp_tiled", "pipelined")}  # fmt: skip
    assert [at for at, _ in behind.values()] == ["l1", "l1", "math", "math", "math"]
    c.holds("take {} and {} times as long", behind["naive"][1], behind["coalesced"][1])
    c.holds(
        "on: {}, {} and {} times",
        *(behind[r][1] for r in ("vectorised", "warp_tiled", "pipelined")),
    )
    c.holds("From 512: it takes {} times as long there, and {} times at 256",
            *(chapter.over_its_bound("tiled", n)[1] for n in (512, 256)))  # fmt: skip
    c.at("training")
    c.given("the case of the test", "16384×1024", "a batch of 8.")
    c.holds("kernel is {} times as fast", chapter.WHOLE_BATCH)
    c.given("the next cell's case", "two more products", "512")
    c.at("narrow")
    c.given("the products above", "all three products")
    c.holds("ratio is {} FLOP/B", GPU.ops_per_byte("float16"))
    c.at("explore")
    wide = Linear(4096, 4096, 1 << 30).forward
    c.holds("at {} the width", wide.intensity / 4096)
    c.given("the explorer's case", "4096 outputs and inputs")
    least = {dtype: smallest(GPU, dtype, 4096) for dtype in ("float16", "float32")}
    c.holds("It is {}: in FP16 1/I is 1/m + 1/n + 1/k, so that the condition is "
            "1/n < 1/{} - 2/4096", least["float16"], GPU.ops_per_byte("float16"))  # fmt: skip
    c.holds("smaller, {}.", least["float32"])
    c.holds("falls to {}, and", PEAK / GPU.peak_of("float16"))
    c.at("attention")
    c.given("QKᵀ and AV", "two products")
    c.given("the question's case", "2048 words, and vectors of 64")
    c.at("attention-read")
    text = Attention(8, 16, 2048, 2048, 64)
    c.holds("smallest size is {},", min(text.scores.m, text.scores.n, text.scores.k)
            if hasattr(text.scores, "m") else 64)  # fmt: skip
    c.holds("reach {} FLOP/B, {} times the ratio", text.fused.intensity,
            about(text.fused.intensity / GPU.ops_per_byte("float16"), 0.03))  # fmt: skip
    c.holds("stands in {} rows", 3 * 3)
    c.holds("stored {} times", 3 * 3)
    c.at("convolution-read")
    layer = Convolution(32, 64, 56, 56, 128, (3, 3), padding=1)
    c.holds("limiter, {} against {} FLOP/B", layer.forward.intensity, layer.intensity)
    steps = limiter(SMALL, GPU, blocks=256, threads=256)
    c.holds("256×256×256: {} FLOP/B, {} times the ratio", SMALL.intensity,
            about(steps.intensity / steps.ops_per_byte, 0.03))  # fmt: skip
    c.holds("and {} a microsecond of arithmetic, but {} µs", 1e6 * clocks(SMALL)["math"],
            us(LIBRARY, SMALL))  # fmt: skip
    c.given("NVIDIA, GPU Performance Background", "five steps")
    c.given("the next cell's case", "256 blocks compute 16×16 elements with 256 threads")
    c.at("flight")
    c.holds("{} blocks for each SM", BLOCKS_PER_SM)
    c.holds("after {} ns", 1e9 * GPU.dram_latency)
    c.holds("the {} SMs holds {} threads", GPU.sms, GPU.threads_per_sm)
    c.holds("that {} TB/s", GPU.dram_bandwidth / 1e12)
    c.at("pieces")
    wide = microbenchmarks.load("h200").launch("dram_read_128")
    small = microbenchmarks.load("h200").launch("dram_read_32")
    c.holds("{} MB in blocks of {} threads", wide.bytes / 1e6, wide.bytes / 16 / wide.blocks)
    c.holds("16 bytes the time is {} µs", 1e6 * wide.seconds)
    c.holds("4 bytes instead, and there are {} times as many", small.blocks / wide.blocks)
    c.at("streams-read")
    each = microbenchmarks.load("h200").launch("dram_read_32_4_each")
    c.given("the stream's name", "Four loads of 4 bytes")
    c.holds("{} of the blocks", each.blocks / small.blocks)
    near = [max(clocks.values()) / seen - 1 for seen, clocks in (chapter.streams(*s) for s in (
        ("dram_read_128", 16), ("dram_read_64", 8), ("dram_read_32", 4),
        ("dram_read_32_4_each", 16)))]  # fmt: skip
    c.holds("within {} % of four of the bars", under(100 * max(map(abs, near))))
    assert sum(x > 0 for x in near) == 2
    c.holds("by {} % and less", under(100 * max(near), 1.1))
    seen, found = chapter.streams("dram_read_32_1024_threads", 4)
    c.holds("is {} as long as predicted", about(seen / max(found.values()), 0.05))
    c.holds("holds {} blocks of 1024 threads", GPU.threads_per_sm // 1024)
    c.holds("the {} µs of 256", us(LIBRARY, SMALL))
    measured = microbenchmarks.load("h200")
    fma = measured.loop("ffma_latency", warps=1)
    c.holds("launch takes {} of them (recorded), a chain of 256 FMAs {}, and a trip to DRAM {}.",
            1e6 * measured.launch("empty_alone").seconds, 1e6 * 256 * fma.each / fma.clock_hz,
            1e6 * GPU.dram_latency)  # fmt: skip
    c.at("summary")
    c.given("questions", "at 30 %", "a batch of 64 make")
    c.holds("by shared memory at {} FLOP/B", tiled["dram"])
    c.holds("Yes. {} FLOP/B is", tiled["dram"])
    c.holds("tiled has {}, because", tiled["shared"])
    c.holds("in one, {} times", 28 / 12)
    c.given("the explorer above", "half its width")
