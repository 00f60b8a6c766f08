"""Dynamic programming: anti-diagonals, layers, rows that change places, one problem a thread."""

import math

import numpy as np
from numpy import float64, int32

from gemmlab import cuda

MOST = 33  # one more than the longest string
STATES = 3


def words(seed, count, length, letters=4):
    return np.random.default_rng(seed).integers(0, letters, (count, length)).astype(np.uint8)


@cuda.jit
def common_subsequence(a, b, table):
    t = cuda.threadIdx.x
    for diagonal in range(a.size + b.size - 1):
        i = t
        j = diagonal - t
        if i < a.size and 0 <= j < b.size:
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
        cuda.syncthreads()


def longest_common_subsequence_by_diagonals(launch):
    a, b = words(1, 2, 40)
    b = b[:30]
    table, expected = np.zeros((2, 41, 31), int32)
    launch(common_subsequence, 1, 64, a, b, table)
    for i in range(40):
        for j in range(30):
            longer = max(expected[i, j + 1], expected[i + 1, j])
            expected[i + 1, j + 1] = expected[i, j] + 1 if a[i] == b[j] else longer
    return table, expected


@cuda.jit
def align_diagonal(a, b, scores, diagonal, best):
    i = cuda.grid(1) + 1
    j = diagonal - i
    if i <= a.size and 1 <= j <= b.size:
        match = scores[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)
        score = max(0, match, scores[i - 1, j] - 1, scores[i, j - 1] - 1)
        scores[i, j] = score
        cuda.atomic.max(best, 0, score)


def local_alignment_of_smith_and_waterman(launch):
    a, b = words(2, 2, 36)
    scores, best = np.zeros((37, 37), int32), np.zeros(1, int32)
    for diagonal in range(2, 73):
        launch(align_diagonal, 2, 32, a, b, scores, diagonal, best)
    expected = np.zeros((37, 37), int)
    for i in range(1, 37):
        for j in range(1, 37):
            match = expected[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)
            expected[i, j] = max(0, match, expected[i - 1, j] - 1, expected[i, j - 1] - 1)
    return [(scores, expected), (best[0], expected.max())]


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


@cuda.jit
def edit_distances(a, b, lengths, out):
    pair = cuda.grid(1)
    if pair >= a.shape[0]:
        return
    previous = cuda.local.array(MOST, int32)
    current = cuda.local.array(MOST, int32)
    n = lengths[pair]
    for j in range(b.shape[1] + 1):
        previous[j] = j
    for i in range(1, n + 1):
        current[0] = i
        for j in range(1, b.shape[1] + 1):
            cost = 0 if a[pair, i - 1] == b[pair, j - 1] else 1
            current[j] = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
        previous, current = current, previous
    out[pair] = previous[b.shape[1]]


def edit_distances_with_rows_that_change_places(launch):
    a, b = words(3, 20, 14), words(4, 20, 11)
    lengths, out = np.random.default_rng(3).integers(3, 15, 20), np.full(20, -1)
    launch(edit_distances, 1, 32, a, b, lengths, out)
    expected = [levenshtein(x[:n], y) for x, y, n in zip(a, b, lengths, strict=True)]
    return out, np.array(expected)


@cuda.jit
def take_item(before, after, weight, value):
    capacity = cuda.grid(1)
    if capacity < before.size:
        best = before[capacity]
        if capacity >= weight:
            best = max(best, before[capacity - weight] + value)
        after[capacity] = best


def knapsack_item_by_item(launch):
    rng = np.random.default_rng(5)
    weights, values = rng.integers(1, 12, 9), rng.integers(1, 30, 9)
    before, after = np.zeros((2, 41), np.int64)
    for w, v in zip(weights, values, strict=True):
        launch(take_item, 1, 64, before, after, w, v)
        before, after = after, before
    sets = [[i for i in range(9) if s >> i & 1] for s in range(512)]
    fits = [(weights[s].sum(), values[s].sum()) for s in sets]
    return before, np.array([max(v for w, v in fits if w <= c) for c in range(41)]).astype(int)


@cuda.jit
def through(distance, k):
    j, i = cuda.grid(2)
    n = distance.shape[0]
    if i < n and j < n and i != k and j != k:
        candidate = distance[i, k] + distance[k, j]
        if candidate < distance[i, j]:
            distance[i, j] = candidate


def shortest_paths_of_floyd_and_warshall(launch):
    distance = np.random.default_rng(6).integers(1, 100, (20, 20))
    distance[distance > 40] = 10_000
    np.fill_diagonal(distance, 0)
    expected = distance.copy()
    for k in range(20):
        launch(through, (3, 3), (8, 8), distance, k)
        expected = np.minimum(expected, expected[:, k : k + 1] + expected[k])
    return distance, expected


@cuda.jit
def coin_change(coins, ways):
    own = cuda.grid(1)
    if own < ways.shape[0]:
        row = ways[own]
        row[0] = 1
        for c in range(own + 1):
            for amount in range(coins[c], row.size):
                row[amount] += row[amount - coins[c]]


def ways_to_pay(launch):
    coins, ways = np.array([1, 2, 5, 10]), np.zeros((4, 31), np.int64)
    launch(coin_change, 1, 32, coins, ways)

    def count(amount, kinds):
        if amount == 0 or kinds == 0:
            return int(amount == 0)
        return sum(count(amount - n, kinds - 1) for n in range(0, amount + 1, coins[kinds - 1]))

    return ways, np.array([[count(a, k) for a in range(31)] for k in range(1, 5)])


@cuda.jit
def chain_diagonal(sizes, cost, length):
    i = cuda.grid(1)
    n = sizes.size - 1
    j = i + length
    if j < n:
        best = math.inf
        for k in range(i, j):
            best = min(best, cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1])
        cost[i, j] = best


def order_of_a_chain_of_products(launch):
    sizes = np.random.default_rng(7).integers(5, 60, 11).astype(float64)
    cost = np.zeros((10, 10))
    for length in range(1, 10):
        launch(chain_diagonal, 1, 32, sizes, cost, length)

    def least(i, j):
        parts = (
            least(i, k) + least(k + 1, j) + sizes[i] * sizes[k + 1] * sizes[j + 1]
            for k in range(i, j)
        )
        return min(parts, default=0)

    return cost[0, 9], least(0, 9)


@cuda.jit
def increasing(x, out):
    t = cuda.grid(1)
    if t < x.shape[0]:
        tails = cuda.local.array(MOST, float64)
        length = 0
        for i in range(x.shape[1]):
            low, high = 0, length
            while low < high:
                middle = (low + high) >> 1
                if tails[middle] < x[t, i]:
                    low = middle + 1
                else:
                    high = middle
            tails[low] = x[t, i]
            length = max(length, low + 1)
        out[t] = length


def longest_increasing_subsequences(launch):
    x, out = np.random.default_rng(8).random((40, 25)), np.zeros(40, int32)
    launch(increasing, 2, 32, x, out)
    expected = []
    for row in x:
        longest = []
        for i, value in enumerate(row):
            longest.append(1 + max((longest[j] for j in range(i) if row[j] < value), default=0))
        expected.append(max(longest))
    return out, np.array(expected)


@cuda.jit
def viterbi(start, move, emit, seen, path, scores):
    score = cuda.shared.array(STATES, float64)
    s = cuda.threadIdx.x
    score[s] = start[s] + emit[s, seen[0]]
    cuda.syncthreads()
    for t in range(1, seen.size):
        best = score[0] + move[0, s]
        where = 0
        for r in range(1, STATES):
            candidate = score[r] + move[r, s]
            if candidate > best:
                best, where = candidate, r
        cuda.syncthreads()
        score[s] = best + emit[s, seen[t]]
        path[t, s] = where
        cuda.syncthreads()
    scores[s] = score[s]


def most_probable_states_of_viterbi(launch):
    rng = np.random.default_rng(9)
    start, move, emit = (
        np.log(rng.random(3)),
        np.log(rng.random((3, 3))),
        np.log(rng.random((3, 4))),
    )
    seen, path, scores = rng.integers(0, 4, 12), np.zeros((12, 3), int32), np.zeros(3)
    launch(viterbi, 1, STATES, start, move, emit, seen, path, scores)
    expected, back = start + emit[:, seen[0]], np.zeros((12, 3), int)
    for t in range(1, 12):
        through = expected[:, None] + move
        back[t], expected = through.argmax(axis=0), through.max(axis=0) + emit[:, seen[t]]
    return [(scores, expected), (path, back)]


@cuda.jit
def warp_distance(x, y, out):
    pair = cuda.grid(1)
    if pair < out.size:
        row = cuda.local.array(MOST, float64)
        m = y.shape[1]
        for j in range(m):
            row[j] = math.inf
        for i in range(x.shape[1]):
            corner = 0.0 if i == 0 else math.inf
            left = math.inf
            for j in range(m):
                cost = abs(x[pair, i] - y[pair, j])
                up = row[j]
                left = cost + min(corner, up, left)
                corner = up
                row[j] = left
        out[pair] = row[m - 1]


def time_warping(launch):
    x, y = np.random.default_rng(10).random((2, 20, 16))
    out = np.zeros(20)
    launch(warp_distance, 1, 32, x, y, out)
    expected = []
    for a, b in zip(x, y, strict=True):
        table = np.full((17, 17), np.inf)
        table[0, 0] = 0
        for i in range(16):
            for j in range(16):
                least = min(table[i, j], table[i, j + 1], table[i + 1, j])
                table[i + 1, j + 1] = abs(a[i] - b[j]) + least
        expected.append(table[16, 16])
    return out, np.array(expected)


@cuda.jit
def pascal(rows):
    t = cuda.threadIdx.x
    n = rows.shape[0]
    for row in range(n):
        if t <= row:
            rows[row, t] = 1 if t == 0 or t == row else rows[row - 1, t - 1] + rows[row - 1, t]
        cuda.syncthreads()


def triangle_of_pascal(launch):
    rows = np.zeros((24, 24), np.int64)
    launch(pascal, 1, 32, rows)
    return rows, np.array([[math.comb(n, k) for k in range(24)] for n in range(24)])
