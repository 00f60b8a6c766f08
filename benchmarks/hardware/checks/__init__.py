"""The checks against a GPU, one a file, in the order in which they run."""

from benchmarks.hardware.checks import (
    counters,
    dot_products,
    instructions,
    kernels,
    ladder,
    language,
    layouts,
    loads,
    products,
    random_kernels,
    realistic,
    resources,
    sanitizer,
    warpgroup_products,
    wide_accesses,
)

# Those whose pieces take longest come first, so that all processes are busy to the end; those that
# observe a GPU with a tool come last, when it has nothing else to do.
CHECKS = {
    module.CHECK.name: module.CHECK
    for module in (
        *(ladder, dot_products, warpgroup_products, resources, random_kernels, products, language),
        *(instructions, layouts),
        *(counters, kernels, realistic, wide_accesses, loads),
        sanitizer,
    )
}
