"""Answers to the questions of chapter 02, intensity and limiters."""

from gemmlab import kernels
from gemmlab.course.guesses import Answer
from gemmlab.device import RECORDED, device
from gemmlab.measure import microbenchmarks as results
from gemmlab.measure.backends import run
from gemmlab.model import predict
from gemmlab.model.layers import Attention, max_pooling
from gemmlab.model.limiter import attainable, intensities
from gemmlab.problem import Gemm

FLOAT = 4  # bytes


def hidden() -> Answer:
    """The share of the library's time that DRAM needs for 8192×128×8192, recorded [%]."""
    gpu = device(RECORDED)
    seen = run(kernels.cublas, Gemm(8192, 128, 8192), backend="recorded")
    dram, math = (predict(seen.problem, gpu).times[name] for name in ("dram", "math"))
    return Answer(
        100 * dram / seen.seconds,
        f"{seen.problem.bytes / 1e6:.0f} MB take {dram * 1e6:.0f} µs, and the product takes "
        f"{seen.seconds * 1e6:.0f}.",
        {
            100: "Then more bytes would take more time, and the cube of the same work would be "
            "faster.",
            100 * dram / math: "That is of the time that arithmetic needs at its peak; the library "
            "takes longer.",
            0: "The matrices have to come once, whatever the program does.",
        },
        within=0.1,
    )


def free() -> Answer:
    """Operations on each float that an H200 can do while it reads and writes the float."""
    gpu = device(RECORDED)
    ratio = gpu.ops_per_byte("float32")
    return Answer(
        2 * FLOAT * ratio,
        f"{2 * FLOAT} bytes for each element, and {ratio:.1f} operations for each byte. ReLU does "
        "one.",
        {
            ratio: "That is for one byte; count the bytes that an element moves.",
            FLOAT * ratio: "That is while it is read; it is written, too.",
            1: "That is how many ReLU does.",
            1 / (2 * FLOAT): "That is how many ReLU does for each byte that it moves.",
        },
        within=0.05,
    )


def fused() -> Answer:
    """How many times fewer bytes one launch moves than bias, ReLU and residual apart."""
    apart, together = 2 + 2 + 3, 3  # arrays that pass through DRAM
    return Answer(
        apart / together,
        f"{apart} arrays pass through DRAM with three launches, and {together} with one.",
        {
            (apart + 1)
            / together: "You counted the bias as an array of its own. It is so small that a cache "
            "has it: DRAM delivers it once.",
            3: "There are three launches, but one of them has more to carry than the others.",
            2: "That is by the bytes that threads ask for. The bias is so small that a cache has "
            "it: DRAM delivers it once.",
            1: "The arithmetic is the same, but what is stored between launches is not.",
        },
        within=0.01,
    )


def pool() -> Answer:
    """The intensity of max pooling with a window of 3×3 in FP16 [FLOP/B]."""
    window, size = 3, 2
    return Answer(
        max_pooling(1 << 20, window).intensity,
        f"{window * window} operations for each element, which is read once and written once: "
        f"{2 * size} bytes.",
        {
            window * window / size: "Each result is written, too.",
            window * window / (size * (window * window + 1)): "You let each window read its nine "
            "elements; neighbours share them.",
            window * window: "That is the number of operations; divide it by bytes.",
            (window * window - 1) / (2 * size): "Nine elements take eight comparisons; the "
            "convention is to count one for each element of the window.",
        },
    )


def shared() -> Answer:
    """The speed that shared memory allows the tiled kernel [TFLOP/s]."""
    gpu, p = device(RECORDED), Gemm(4096, 4096, 4096)
    intensity = intensities(predict(p, gpu, kernels.tiled))["shared"]
    bandwidth = gpu.shared_bandwidth / 1e12
    seen = run(kernels.tiled, p, backend="recorded").flops_per_second / 1e12
    return Answer(
        float(attainable(gpu, p.dtype, intensity, "shared")) / 1e12,
        f"8 bytes for 2 operations are 0.25 FLOP/B. With the stores of the tiles it is "
        f"{intensity:.3f}, times {bandwidth:.1f} TB/s. Recorded: {seen:.2f} TFLOP/s.",
        {
            bandwidth: "That takes one operation for each byte.",
            bandwidth / 2: "That is for one operand; an FMA has two.",
            bandwidth / 8: "An FMA counts as two operations.",
            gpu.peak_of(p.dtype) / 1e12: "That is the peak; shared memory cannot feed it.",
        },
        within=0.1,
    )


def narrow() -> Answer:
    """The width of a square layer that no batch makes math limited in FP16 on an H200."""
    gpu = device(RECORDED)
    ratio = gpu.ops_per_byte("float16")
    return Answer(
        2 * ratio,
        f"With an endless batch a layer of width $w$ moves $2w$ elements of 2 bytes for $w^2$ "
        f"FMAs: $w/2$ FLOP/B. The H200 asks for {ratio:.0f}.",
        {
            ratio: "That takes $w$ FLOP/B; both the inputs and the outputs of the batch move.",
            4 * ratio: "An FMA counts as two operations.",
            0: "The weights become cheap with the batch, but inputs and outputs grow with it.",
            device(RECORDED).ops_per_byte("float32") * 4: "That is for FP32.",
        },
        within=0.03,
    )


def attention() -> Answer:
    """Bytes of attention in three launches, over those of one, for 2048 words and heads of 64."""
    words, size = 2048, 64
    layer = Attention(batch=1, heads=1, queries=words, keys=words, head_size=size)
    return Answer(
        layer.apart.bytes / layer.fused.bytes,
        f"A head has {words:,}² scores, which are written and read twice: {4 * words * words:,} "
        f"elements. Q, K, V and the result are {4 * words * size:,}, and move anyway.",
        {
            words / size: "Those are the scores alone; Q, K, V and the result move, too.",
            1 + words / size / 2: "Softmax reads and writes the scores once more.",
            words: "Compare elements: a row of scores with the vectors of one word.",
            3: "Three launches, but what they move between them is a matrix of words × words.",
        },
    )


def flight() -> Answer:
    """Bytes that each thread of a full H200 has to ask for at once to keep DRAM busy."""
    gpu = device(RECORDED)
    under_way = gpu.dram_bandwidth * gpu.dram_latency
    return Answer(
        under_way / gpu.threads,
        f"{gpu.dram_bandwidth / 1e12:.1f} TB/s times {gpu.dram_latency * 1e9:.0f} ns are "
        f"{under_way / 1e6:.2f} MB under way, for {gpu.threads:,} threads.",
        {
            under_way / gpu.sms: "That is for an SM; it holds 2,048 threads.",
            under_way: "That is for the whole GPU.",
            1: "Then all threads together would ask for a sixth of what has to be under way.",
        },
        within=0.1,
    )


def pieces() -> Answer:
    """Recorded time of reading 2²⁹ bytes with 4 bytes for each thread [µs]."""
    gpu, measured = device(RECORDED), results.load(RECORDED)
    wide, small = (measured.launch(name) for name in ("dram_read_128", "dram_read_32"))
    by_flight = small.bytes / (FLOAT * gpu.threads) * gpu.dram_latency
    handing_out = small.blocks * gpu.hand_out_interval
    return Answer(
        small.seconds * 1e6,
        f"Two things are short. With {FLOAT} bytes for each thread, too little is under way: "
        f"{by_flight * 1e6:.0f} µs. And there are {small.blocks:,} blocks, of which the GPU starts "
        f"one every {gpu.hand_out_interval * 1e9:.2f} ns: {handing_out * 1e6:.0f} µs.",
        {
            wide.seconds * 1e6: "The bytes are the same, but they arrive only as fast as threads "
            "ask for them.",
            by_flight * 1e6: "That is what the bytes under way allow. Something else is slower "
            "still.",
            4 * wide.seconds * 1e6: "A quarter of the bytes for each thread, but four bytes are "
            "more than a quarter of what has to be under way.",
        },
        within=0.1,
    )
