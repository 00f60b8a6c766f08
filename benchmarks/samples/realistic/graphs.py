"""Graphs in adjacency lists or lists of edges: levels, frontiers, labels, ranks, colours, trees."""

import numpy as np
from numpy import int32

from gemmlab import cuda

FAR = 1 << 30


def graph(seed, n=40, degree=3, weights=False):
    """A symmetric graph: starts and ends of rows of neighbours, and its dense matrix."""
    rng = np.random.default_rng(seed)
    dense = np.triu(rng.random((n, n)) < degree / n, 1) * rng.integers(1, 20, (n, n))
    dense = dense + dense.T if weights else ((dense + dense.T) > 0).astype(int)
    row, column = np.nonzero(dense)
    starts = np.searchsorted(row, np.arange(n + 1)).astype(int32)
    return dense, starts, column.astype(int32), row.astype(int32)


def levels_from(dense, source):
    levels, queue = np.full(len(dense), -1), [source]
    levels[source] = 0
    for v in queue:
        for w in np.flatnonzero(dense[v]):
            if levels[w] < 0:
                levels[w] = levels[v] + 1
                queue.append(w)
    return levels


@cuda.jit
def visit_level(starts, neighbours, levels, level, changed):
    v = cuda.grid(1)
    if v < levels.size and levels[v] == level:
        for e in range(starts[v], starts[v + 1]):
            w = neighbours[e]
            if levels[w] == -1:
                levels[w] = level + 1
                changed[0] = True


def breadth_first_level_by_level(launch):
    dense, starts, neighbours, _ = graph(1)
    levels, changed, level = np.full(40, -1, int32), np.ones(1, np.bool_), 0
    levels[0] = 0
    while changed[0] and level < 40:
        changed[0] = False
        launch(visit_level, 2, 32, starts, neighbours, levels, level, changed)
        level += 1
    return levels, levels_from(dense, 0)


@cuda.jit
def visit_frontier(starts, neighbours, levels, level, frontier, size, following, next_size):
    t = cuda.grid(1)
    if t < size:
        v = frontier[t]
        for e in range(starts[v], starts[v + 1]):
            w = neighbours[e]
            if cuda.atomic.cas(levels, w, -1, level + 1) == -1:
                following[cuda.atomic.add(next_size, 0, 1)] = w


def breadth_first_with_a_frontier(launch):
    dense, starts, neighbours, _ = graph(2)
    levels, frontier, following = np.full(40, -1, int32), np.zeros(40, int32), np.zeros(40, int32)
    levels[3], frontier[0], size, level = 0, 3, 1, 0
    while size and level < 40:
        count = np.zeros(1, int32)
        arguments = (levels, level, frontier, size, following, count)
        launch(visit_frontier, 2, 32, starts, neighbours, *arguments)
        frontier, following, size, level = following, frontier, int(count[0]), level + 1
    return levels, levels_from(dense, 3)


@cuda.jit
def relax_edges(tails, heads, weights, distance, changed):
    e = cuda.grid(1)
    if e < tails.size:
        d = cuda.atomic.add(distance, tails[e], 0)
        if d < FAR and cuda.atomic.min(distance, heads[e], d + weights[e]) > d + weights[e]:
            cuda.atomic.exch(changed, 0, 1)


def shortest_paths_of_bellman_and_ford(launch):
    dense, _, heads, tails = graph(3, weights=True)
    weights, distance = dense[tails, heads].astype(int32), np.full(40, FAR, int32)
    distance[0], changed, turns = 0, np.ones(1, int32), 0
    while changed[0] and turns < 40:
        changed[0] = 0
        blocks = -(-tails.size // 64)
        launch(relax_edges, blocks, 64, tails, heads, weights, distance, changed)
        turns += 1
    expected = np.full(40, FAR)
    expected[0] = 0
    for _ in range(40):
        np.minimum.at(expected, heads, expected[tails] + weights)
    return distance, np.minimum(expected, FAR)


@cuda.jit
def pull_rank(starts, neighbours, degree, rank, new_rank, damping):
    v = cuda.grid(1)
    if v < rank.size:
        total = 0.0
        for e in range(starts[v], starts[v + 1]):
            w = neighbours[e]
            total += rank[w] / degree[w]
        new_rank[v] = (1 - damping) / rank.size + damping * total


def page_rank(launch):
    dense, starts, neighbours, _ = graph(4)
    rank, other = np.full(40, 1 / 40), np.zeros(40)
    degree, expected = np.diff(starts), np.full(40, 1 / 40)
    for _ in range(10):
        launch(pull_rank, 2, 32, starts, neighbours, degree, rank, other, 0.85)
        rank, other = other, rank
        expected = 0.15 / 40 + 0.85 * dense @ (expected / np.maximum(degree, 1))
    return rank, expected


def components_of(dense):
    labels = np.full(len(dense), -1)
    for v in range(len(dense)):
        if labels[v] < 0:
            labels[levels_from(dense, v) >= 0] = v
    return labels


@cuda.jit
def least_label(tails, heads, labels, changed):
    e = cuda.grid(1)
    if e < tails.size:
        own = cuda.atomic.add(labels, tails[e], 0)
        if cuda.atomic.min(labels, heads[e], own) > own:
            cuda.atomic.add(changed, 0, 1)


def components_by_least_labels(launch):
    dense, _, heads, tails = graph(5, degree=1.2)
    labels, changed, turns = np.arange(40), np.ones(1, np.int64), 0
    while changed[0] and turns < 40:
        changed[0] = 0
        launch(least_label, -(-tails.size // 32), 32, tails, heads, labels, changed)
        turns += 1
    return labels, components_of(dense)


@cuda.jit(device=True)
def find(parent, v):
    while True:
        p = cuda.atomic.add(parent, v, 0)
        if p == v:
            return v
        v = p


@cuda.jit
def unite(tails, heads, parent):
    e = cuda.grid(1)
    if e >= tails.size:
        return
    a, b = tails[e], heads[e]
    joined = False
    while not joined:
        a = find(parent, a)
        b = find(parent, b)
        if a == b:
            joined = True
        else:
            high, low = max(a, b), min(a, b)
            joined = cuda.atomic.cas(parent, high, high, low) == high


@cuda.jit
def flatten(parent, labels):
    v = cuda.grid(1)
    if v < parent.size:
        root = v
        while parent[root] != root:
            root = parent[root]
        labels[v] = root


def components_by_union_and_find(launch):
    dense, _, heads, tails = graph(6, degree=1.2)
    parent, labels = np.arange(40), np.full(40, -1)
    launch(unite, -(-tails.size // 32), 32, tails.astype(int), heads.astype(int), parent)
    launch(flatten, 2, 32, parent, labels)
    return labels, components_of(dense)


@cuda.jit
def triangles(starts, neighbours, tails, count):
    e = cuda.grid(1)
    if e < tails.size:
        u, v = tails[e], neighbours[e]
        if u < v:
            i, j = starts[u], starts[v]
            found = 0
            while i < starts[u + 1] and j < starts[v + 1]:
                a, b = neighbours[i], neighbours[j]
                if a == b:
                    found += 1
                if a <= b:
                    i += 1
                if b <= a:
                    j += 1
            cuda.atomic.add(count, 0, found)


def triangles_counted(launch):
    dense, starts, neighbours, tails = graph(7, degree=9)
    count = np.zeros(1, np.int64)
    launch(triangles, -(-tails.size // 64), 64, starts, neighbours, tails, count)
    return count[0] // 3, np.trace(dense @ dense @ dense) // 6


@cuda.jit
def colour_round(starts, neighbours, priority, colours, new_colours, left):
    v = cuda.grid(1)
    if v >= colours.size or colours[v] >= 0:
        return
    used = 0
    greatest = True
    for e in range(starts[v], starts[v + 1]):
        w = neighbours[e]
        if colours[w] >= 0:
            used |= 1 << colours[w]
        elif priority[w] > priority[v]:
            greatest = False
            break
    if greatest:
        colour = 0
        while used & (1 << colour):
            colour += 1
        new_colours[v] = colour
    else:
        cuda.atomic.add(left, 0, 1)


def colouring_of_jones_and_plassmann(launch):
    dense, starts, neighbours, _ = graph(8, degree=5)
    priority = np.random.default_rng(8).permutation(40)
    colours, left, turns = np.full(40, -1, int32), np.ones(1, int32), 0
    while left[0] and turns < 40:
        left[0] = 0
        new_colours = colours.copy()
        launch(colour_round, 2, 32, starts, neighbours, priority, colours, new_colours, left)
        colours, turns = new_colours, turns + 1
    expected = np.full(40, -1)
    for v in np.argsort(-priority):
        taken = {expected[w] for w in np.flatnonzero(dense[v])}
        expected[v] = min(set(range(40)) - taken)
    return colours, expected


@cuda.jit
def jump(successor, rank, next_successor, next_rank):
    i = cuda.grid(1)
    if i < successor.size:
        s = successor[i]
        next_rank[i] = rank[i] + rank[s]
        next_successor[i] = successor[s]


def ranks_in_a_list_by_pointer_jumping(launch):
    order = np.random.default_rng(9).permutation(50)
    successor, rank = np.zeros(50, np.int64), np.ones(50, np.int64)
    successor[order[:-1]], successor[order[-1]] = order[1:], order[-1]
    rank[order[-1]] = 0
    expected = np.zeros(50, int)
    expected[order] = np.arange(49, -1, -1)
    for _ in range(6):
        other = np.zeros_like(successor), np.zeros_like(rank)
        launch(jump, 2, 32, successor, rank, *other)
        successor, rank = other
    return rank, expected


@cuda.jit
def remove_sources(edges, indegree, order, done, size):
    v = cuda.grid(1)
    if v < indegree.size and indegree[v] == 0:
        place = cuda.atomic.add(size, 0, 1)
        order[place] = v
        done[v] = True


@cuda.jit
def lower_degrees(edges, indegree, done):
    e = cuda.grid(1)
    if e < edges.shape[0] and done[edges[e, 0]]:
        cuda.atomic.sub(indegree, edges[e, 1], 1)


@cuda.jit
def retire(indegree, done):
    v = cuda.grid(1)
    if v < indegree.size and done[v]:
        indegree[v] = -1
        done[v] = False


def topological_order_of_kahn(launch):
    upper = np.triu(np.random.default_rng(10).random((30, 30)) < 0.15, 1)
    edges = np.argwhere(upper).astype(int32)
    indegree, order = upper.sum(axis=0).astype(int32), np.full(30, -1, int32)
    done, size, layers = np.zeros(30, np.bool_), np.zeros(1, int32), 0
    while size[0] < 30 and layers < 30:
        launch(remove_sources, 1, 32, edges, indegree, order, done, size)
        launch(lower_degrees, -(-len(edges) // 64), 64, edges, indegree, done)
        launch(retire, 1, 32, indegree, done)
        indegree[indegree < 0] = -1
        layers += 1
    depth = np.zeros(30, int)
    for v in range(30):
        depth[v] = 1 + max(depth[np.flatnonzero(upper[:, v])], default=0)
    place = np.argsort(order)
    return [
        (np.sort(order), np.arange(30)),
        (depth[order], np.sort(depth)),
        (layers, depth.max()),
        (np.all(place[edges[:, 0]] < place[edges[:, 1]]), True),
    ]


@cuda.jit
def lightest_edges(tails, heads, keys, component, lightest):
    e = cuda.grid(1)
    if e < tails.size and component[tails[e]] != component[heads[e]]:
        cuda.atomic.min(lightest, component[tails[e]], keys[e])


def spanning_tree_of_boruvka(launch):
    dense, _, heads, tails = graph(11, degree=8, weights=True)
    keys = dense[tails, heads] * 100_000 + np.minimum(tails, heads) * 100 + np.maximum(tails, heads)
    component, chosen = np.arange(40), set()
    for _ in range(6):
        lightest = np.full(40, np.iinfo(np.int64).max)
        arguments = (tails, heads, keys, component, lightest)
        launch(lightest_edges, -(-tails.size // 64), 64, *arguments)
        for key in set(lightest[lightest < np.iinfo(np.int64).max].tolist()):
            a, b = component[key // 100 % 100], component[key % 100]
            if a != b:
                chosen.add(key)
                component[component == b] = a
    tree, parts = 0, {v: {v} for v in range(40)}
    for key in sorted(set(keys.tolist())):
        a, b = parts[key // 100 % 100], parts[key % 100]
        if a is not b:
            tree += key // 100_000
            a |= b
            parts |= dict.fromkeys(a, a)
    return sum(key // 100_000 for key in chosen), tree
