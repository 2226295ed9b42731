"""Normal equations of a row: the sum of outer products over its ratings, and the right side.

The matrix is made in tiles of 8 x 4 or 8 x 8, of its upper triangle alone. On a GPU each thread keeps a tile in registers, of
every so many ratings; then the sums of a tile are added up in order. The factors of the next ratings are on their way from
memory meanwhile. On the CPU the one thread of a worker adds four ratings at a time to each row. So the result does not depend
on the schedule.

Source: Tan, Cao and Fong, "Faster and cheaper: parallelizing large-scale matrix factorization on GPUs", HPDC 2016 (tiles in
registers).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....compile.local_array import local_array
from ....compile.vector_access import WIDTH, load4

__all__ = ["Shape", "make_accumulate", "shape_of"]

_BATCH = 32  # ratings whose factors are in scratch at once
_FEW = 32  # factors, for which small workers are faster: they wait less for each other when they solve the equations
_MOST_SLICES = 32


class Shape(NamedTuple):
    """Division of the matrix of k factors among threads."""

    side: int  # k, rounded up to tiles
    height: int
    width: int
    tiles: int  # of the upper triangle
    slices: int  # of the ratings, for each tile
    num_threads: int


def shape_of(k: int) -> Shape:
    """Return how the matrix is divided on a GPU."""
    height, width = 8, 4 if k <= _FEW else 8
    side = -(-k // height) * height
    tiles = sum(side // width - row * height // width for row in range(side // height))
    slices = max(1, min(_MOST_SLICES, (64 if k <= _FEW else 128) // tiles))
    return Shape(side, height, width, tiles, slices, -(-max(tiles * slices, side) // 32) * 32)


def make_accumulate(k: int, kind: str, of_rows: bool, implicit: bool) -> Any:
    """Return the function that adds up the outer products of factors, weighted, and their sum with other weights.

    `of_rows` is for factors themselves, otherwise they are looked up by the column of each rating.
    """
    side, height, width, tiles, slices, num_threads = shape_of(k)
    columns, ratio, cells, batch_cells = side // width, height // width, height * width, _BATCH * side
    matrix_cells = side * side
    groups = num_threads // side  # of threads that share the ratings for b; at most as many as slices
    part_of_row = 32 if side % 32 == 0 else 16 if side % 16 == 0 else 8
    f32 = np.float32
    load_width = WIDTH if k % WIDTH == 0 else 1
    row_pieces = side // load_width
    all_pieces = _BATCH * row_pieces
    pieces = -(-all_pieces // num_threads)  # of a batch that a thread loads
    loaded = pieces * load_width

    def place_of(tile):  # type: ignore[no-untyped-def]
        row, left = 0, tile
        while left >= columns - row * ratio:
            left -= columns - row * ratio
            row += 1
        return row * height, (row * ratio + left) * width

    def add_products(mine, rows, weights, start, count, step, i, j):  # type: ignore[no-untyped-def]
        for e in range(start, count, step):
            at = e * side
            right = local_array(f32, width)
            for q in range(width):
                right[q] = rows[at + j + q]
            weight = weights[e]
            for p in range(height):
                left = rows[at + i + p] * weight
                for q in range(width):
                    mine[p * width + q] += left * right[q]

    def add_tile(a, mine, i, j):  # type: ignore[no-untyped-def]
        for p in range(height):
            for q in range(width):
                a[(i + p) * side + j + q] += mine[p * width + q]

    def add_rows(a, rows, weights, count):  # type: ignore[no-untyped-def]
        # Four ratings at a time, along parts of rows, for vector instructions; what is beyond the last rating is 0.
        for i in range(side):
            for start in range(i // part_of_row * part_of_row, side, part_of_row):
                mine = local_array(f32, part_of_row)
                for e in range(0, count, 4):
                    x, y, z, w = e * side, (e + 1) * side, (e + 2) * side, (e + 3) * side
                    p, q = rows[x + i] * weights[e], rows[y + i] * weights[e + 1]
                    r, s = rows[z + i] * weights[e + 2], rows[w + i] * weights[e + 3]
                    for j in range(part_of_row):
                        left = p * rows[x + start + j] + q * rows[y + start + j]
                        mine[j] += left + (r * rows[z + start + j] + s * rows[w + start + j])
                for j in range(part_of_row):
                    a[i * side + start + j] += mine[j]

    def weight_of(rating, s):  # type: ignore[no-untyped-def]
        return s.alpha * rating if implicit else f32(1)

    def target_of(rating, s):  # type: ignore[no-untyped-def]
        return f32(1) + s.alpha * rating if implicit else f32(0) if of_rows else rating

    def column_at(at, s):  # type: ignore[no-untyped-def]
        return np.int64(at if of_rows else s.indices[at])

    def load_columns(worker, columns, begin, end, s):  # type: ignore[no-untyped-def]
        # Which rows this thread loads for a batch. The last rating stands for those that are missing.
        for p in range(pieces):
            at = min(begin + (worker.rank + p * num_threads) // row_pieces, end - 1)
            columns[p] = column_at(at, s)

    def load_values(worker, values, columns, s):  # type: ignore[no-untyped-def]
        for p in range(pieces):
            f = (worker.rank + p * num_threads) % row_pieces * load_width
            if f < k:
                load(values, p, s.fixed, columns[p], f)

    def load_one(values, p, fixed, u, f):  # type: ignore[no-untyped-def]
        values[p] = fixed[u, f]

    def load_four(values, p, fixed, u, f):  # type: ignore[no-untyped-def]
        values[4 * p], values[4 * p + 1], values[4 * p + 2], values[4 * p + 3] = load4(fixed, (u, f))

    load = load_four if load_width == WIDTH else load_one

    def keep_values(worker, rows, values):  # type: ignore[no-untyped-def]
        for p in range(pieces):
            t = worker.rank + p * num_threads
            if t < all_pieces:
                for q in range(load_width):
                    rows[t * load_width + q] = values[load_width * p + q]

    def rating_at(at, s):  # type: ignore[no-untyped-def]
        return f32(1) if of_rows else f32(s.ratings[at])

    def load_rating(worker, begin, end, s):  # type: ignore[no-untyped-def]
        return rating_at(min(begin + worker.rank % _BATCH, end - 1), s)

    def accumulate(worker, a, b, first, end, s):  # type: ignore[no-untyped-def]
        rows = worker.scratch(f32, batch_cells)
        weights, targets = worker.scratch(f32, _BATCH), worker.scratch(f32, _BATCH)
        for t in worker.split(matrix_cells):
            a[t] = f32(0)
        for f in worker.split(side):
            b[f] = f32(0)
        part = worker.rank // tiles
        i, j = place_of(worker.rank % tiles)
        group, f_of_b, of_b = worker.rank // side, worker.rank % side, f32(0)
        mine, columns, values, rating = local_array(f32, cells), local_array(np.int64, pieces), local_array(f32, loaded), f32(0)
        if first < end:
            load_columns(worker, columns, first, end, s)
            load_values(worker, values, columns, s)
            rating = load_rating(worker, first, end, s)
            load_columns(worker, columns, first + _BATCH, end, s)
        for begin in range(first, end, _BATCH):
            count = min(_BATCH, end - begin)
            worker.sync()  # all are done with the batch before
            keep_values(worker, rows, values)
            if worker.rank < _BATCH:
                weights[worker.rank], targets[worker.rank] = weight_of(rating, s), target_of(rating, s)
            worker.sync()
            # What the next batch needs is under way while this one is added up.
            load_values(worker, values, columns, s)
            rating = load_rating(worker, begin + _BATCH, end, s)
            load_columns(worker, columns, begin + 2 * _BATCH, end, s)
            if part < slices:
                add_products(mine, rows, weights, part, count, slices, i, j)
            if group < groups:
                for e in range(group, count, groups):
                    of_b += targets[e] * rows[e * side + f_of_b]
        for turn in range(slices):
            worker.sync()
            if part == turn:
                add_tile(a, mine, i, j)
            if group == turn and turn < groups:
                b[f_of_b] += of_b
        worker.sync()

    def accumulate_on_cpu(worker, a, b, first, end, s):  # type: ignore[no-untyped-def]
        rows = worker.scratch(f32, batch_cells)
        weights, targets = worker.scratch(f32, _BATCH), worker.scratch(f32, _BATCH)
        for t in range(matrix_cells):
            a[t] = f32(0)
        for f in range(side):
            b[f] = f32(0)
        for t in range(batch_cells):
            rows[t] = f32(0)
        for begin in range(first, end, _BATCH):
            count = min(_BATCH, end - begin)
            for e in range(_BATCH):
                weights[e], targets[e] = f32(0), f32(0)
                if e < count:
                    u = column_at(begin + e, s)
                    rating = rating_at(begin + e, s)
                    weights[e], targets[e] = weight_of(rating, s), target_of(rating, s)
                    for f in range(k):
                        rows[e * side + f] = s.fixed[u, f]
                for f in range(side):
                    b[f] += targets[e] * rows[e * side + f]
            add_rows(a, rows, weights, count)

    return accumulate if kind == "cuda" else accumulate_on_cpu
