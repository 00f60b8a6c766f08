"""Sorting and selecting: networks, ranks, radix, merges, stacks, and local insertion."""

import numpy as np
from numpy import float64, int32

from gemmlab import cuda

THREADS = 64
DEPTH = 16
BEST = 4


@cuda.jit
def bitonic_block(x):
    s = cuda.shared.array(THREADS, int32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    k = 2
    while k <= THREADS:
        j = k // 2
        while j > 0:
            other = t ^ j
            if other > t:
                if (t & k) == 0:
                    if s[t] > s[other]:
                        s[t], s[other] = s[other], s[t]
                elif s[t] < s[other]:
                    s[t], s[other] = s[other], s[t]
            cuda.syncthreads()
            j //= 2
        k *= 2
    x[cuda.grid(1)] = s[t]


def bitonic_sort_in_a_block(launch):
    x = np.random.default_rng(1).integers(0, 1000, 3 * THREADS).astype(int32)
    expected = np.array([sorted(part) for part in x.reshape(3, -1).tolist()]).ravel()
    launch(bitonic_block, 3, THREADS, x)
    return x, expected


@cuda.jit
def bitonic_step(x, j, k):
    i = cuda.grid(1)
    other = i ^ j
    if other > i:
        ascending = i & k == 0
        if (x[i] > x[other]) == ascending:
            temp = x[i]
            x[i] = x[other]
            x[other] = temp


def bitonic_sort_step_by_step(launch):
    x = np.random.default_rng(2).random(256)
    expected = np.array(sorted(x.tolist()))
    k = 2
    while k <= x.size:
        j = k >> 1
        while j > 0:
            launch(bitonic_step, 4, 64, x, j, k)
            j >>= 1
        k <<= 1
    return x, expected


@cuda.jit
def odd_even(x):
    t = cuda.threadIdx.x
    n = x.size
    for phase in range(n):
        i = 2 * t + phase % 2
        if i + 1 < n and x[i] > x[i + 1]:
            x[i], x[i + 1] = x[i + 1], x[i]
        cuda.syncthreads()


def odd_even_transposition_sort(launch):
    x = np.random.default_rng(3).integers(-50, 50, 75)
    expected = np.array(sorted(x.tolist()))
    launch(odd_even, 1, 38, x)
    return x, expected


@cuda.jit
def batcher(x):
    n = x.size
    t = cuda.threadIdx.x
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                i = j + t
                if t < min(k, n - j - k) and i // (p * 2) == (i + k) // (p * 2):
                    low, high = x[i], x[i + k]
                    x[i] = min(low, high)
                    x[i + k] = max(low, high)
            cuda.syncthreads()
            k //= 2
        p *= 2


def odd_even_merge_sort_of_batcher(launch):
    x = np.random.default_rng(4).permutation(64)
    launch(batcher, 1, 64, x)
    return x, np.arange(64)


@cuda.jit
def radix_pass(x, out, bit):
    ones = cuda.shared.array(THREADS, int32)
    t = cuda.threadIdx.x
    value = x[t]
    own = (value >> bit) & 1
    ones[t] = own
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        add = ones[t - step] if t >= step else 0
        cuda.syncthreads()
        ones[t] += add
        cuda.syncthreads()
        step *= 2
    zeros = THREADS - ones[THREADS - 1]
    place = zeros + ones[t] - 1 if own else t - ones[t]
    out[place] = value


def radix_sort_bit_by_bit(launch):
    x = np.random.default_rng(5).integers(0, 256, THREADS)
    expected, out = np.array(sorted(x.tolist())), np.zeros(THREADS, np.int64)
    for bit in range(8):
        launch(radix_pass, 1, THREADS, x, out, bit)
        x, out = out, x
    return x, expected


@cuda.jit
def rank(x, out):
    i = cuda.grid(1)
    if i < x.size:
        own = x[i]
        smaller = 0
        for j in range(x.size):
            if x[j] < own or (x[j] == own and j < i):
                smaller += 1
        out[smaller] = own


def sort_by_counting_the_smaller(launch):
    x = np.random.default_rng(6).integers(0, 40, 150)
    out = np.full(150, -1)
    launch(rank, 3, 64, x, out)
    return out, np.array(sorted(x.tolist()))


@cuda.jit(device=True)
def merge(source, target, left, middle, right):
    i, j = left, middle
    for k in range(left, right):
        if i < middle and (j >= right or source[i] <= source[j]):
            target[k] = source[i]
            i += 1
        else:
            target[k] = source[j]
            j += 1


@cuda.jit
def merge_pass(source, target, width):
    left = cuda.grid(1) * 2 * width
    if left < source.size:
        middle = min(left + width, source.size)
        right = min(left + 2 * width, source.size)
        merge(source, target, left, middle, right)


def merge_sort_from_below(launch):
    x = np.random.default_rng(7).random(150)
    expected, y, width = np.array(sorted(x.tolist())), np.zeros(150), 1
    while width < x.size:
        launch(merge_pass, 3, 32, x, y, width)
        x, y, width = y, x, 2 * width
    return x, expected


@cuda.jit(device=True)
def merge_path(a, b, diagonal):
    low = max(0, diagonal - b.size)
    high = min(diagonal, a.size)
    while low < high:
        middle = (low + high) // 2
        if a[middle] <= b[diagonal - 1 - middle]:
            low = middle + 1
        else:
            high = middle
    return low


@cuda.jit
def merge_by_path(a, b, out):
    k = cuda.grid(1)
    if k < out.size:
        i = merge_path(a, b, k)
        j = k - i
        if j >= b.size or (i < a.size and a[i] <= b[j]):
            out[k] = a[i]
        else:
            out[k] = b[j]


def merge_of_two_lists_by_diagonals(launch):
    rng = np.random.default_rng(8)
    a, b = np.sort(rng.integers(0, 60, 70)), np.sort(rng.integers(0, 60, 43))
    out = np.full(113, -1)
    launch(merge_by_path, 4, 32, a, b, out)
    return out, np.array(sorted([*a.tolist(), *b.tolist()]))


@cuda.jit
def counting(x, counts):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def write_runs(counts, out):
    key = cuda.grid(1)
    if key < counts.size:
        start = 0
        for k in range(key):
            start += counts[k]
        for i in range(counts[key]):
            out[start + i] = key


def counting_sort(launch):
    x = np.random.default_rng(9).integers(0, 32, 400).astype(np.uint8)
    counts, out = np.zeros(32, int32), np.full(400, -1)
    launch(counting, 4, 100, x, counts)
    launch(write_runs, 1, 32, counts, out)
    return out, np.array(sorted(x.tolist()))


@cuda.jit
def insertion_rows(a):
    row = cuda.grid(1)
    if row < a.shape[0]:
        own = a[row]
        for i in range(1, own.size):
            key = own[i]
            j = i - 1
            while j >= 0 and own[j] > key:
                own[j + 1] = own[j]
                j -= 1
            own[j + 1] = key


def insertion_sort_of_rows(launch):
    a = np.random.default_rng(10).integers(0, 100, (40, 12))
    expected = np.array([sorted(row) for row in a.tolist()])
    launch(insertion_rows, 2, 32, a)
    return a, expected


@cuda.jit
def shell(a):
    row = cuda.grid(1)
    if row >= a.shape[0]:
        return
    n = a.shape[1]
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            temp = a[row, i]
            j = i
            while j >= gap and a[row, j - gap] > temp:
                a[row, j] = a[row, j - gap]
                j -= gap
            a[row, j] = temp
        gap //= 2


def shell_sort_of_rows(launch):
    a = np.random.default_rng(11).random((20, 19))
    expected = np.sort(a, axis=1)
    launch(shell, 1, 32, a)
    return a, expected


@cuda.jit
def quicksort(a):
    row = cuda.grid(1)
    if row >= a.shape[0]:
        return
    stack = cuda.local.array((DEPTH, 2), int32)
    stack[0, 0] = 0
    stack[0, 1] = a.shape[1] - 1
    top = 1
    while top > 0:
        top -= 1
        low, high = stack[top, 0], stack[top, 1]
        pivot = a[row, (low + high) // 2]
        i, j = low, high
        while i <= j:
            while a[row, i] < pivot:
                i += 1
            while a[row, j] > pivot:
                j -= 1
            if i <= j:
                a[row, i], a[row, j] = a[row, j], a[row, i]
                i += 1
                j -= 1
        if low < j:
            stack[top, 0], stack[top, 1] = low, j
            top += 1
        if i < high:
            stack[top, 0], stack[top, 1] = i, high
            top += 1


def quicksort_with_a_stack_of_its_own(launch):
    a = np.random.default_rng(12).integers(0, 30, (24, 20))
    expected = np.sort(a, axis=1)
    launch(quicksort, 1, 32, a)
    return a, expected


@cuda.jit
def top_of_rows(a, values, places):
    row = cuda.grid(1)
    if row >= a.shape[0]:
        return
    best = cuda.local.array(BEST, float64)
    where = cuda.local.array(BEST, int32)
    for k in range(BEST):
        best[k] = -np.inf
        where[k] = -1
    for j in range(a.shape[1]):
        value = a[row, j]
        k = BEST - 1
        if value > best[k]:
            while k > 0 and best[k - 1] < value:
                best[k] = best[k - 1]
                where[k] = where[k - 1]
                k -= 1
            best[k] = value
            where[k] = j
    for k in range(BEST):
        values[row, k] = best[k]
        places[row, k] = where[k]


def greatest_four_of_each_row(launch):
    a = np.random.default_rng(13).random((50, 30))
    values, places = np.zeros((50, BEST)), np.zeros((50, BEST), int32)
    launch(top_of_rows, 2, 32, a, values, places)
    order = np.argsort(-a, axis=1)[:, :BEST]
    return [(places, order), (values, np.take_along_axis(a, order, axis=1))]


@cuda.jit
def search(sorted_values, wanted, out):
    i = cuda.grid(1)
    if i < wanted.size:
        low, high = 0, sorted_values.size
        while low < high:
            middle = low + (high - low) // 2
            if sorted_values[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low


def binary_search(launch):
    rng = np.random.default_rng(14)
    a, wanted = np.sort(rng.integers(0, 100, 77)), rng.integers(-5, 105, 130)
    out = np.full(130, -1)
    launch(search, 3, 64, a, wanted, out)
    return out, np.searchsorted(a, wanted)
