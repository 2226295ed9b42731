"""Sparse triangular systems, and conjugate gradients with them
============================================================

This program solves T X = B for a sparse triangular matrix T and one or several right-hand sides. Then it takes the factors of
incomplete factorizations to precondition conjugate gradients. ``python examples/triangular_solve.py [POINTS IN A ROW]``

Row i can be solved when all rows that it refers to have been. So a counter holds how many of these are missing, and the last
one to arrive pushes row i. The matrix, of SciPy or CuPy, is analyzed once: its columns say which rows wait for a row.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import atos_py as atos


# %%
# The iterations of a row's inner loop are the rows that wait for it, and one more that stores its solution.
def waiting(j, columns, values, diagonal, total, missing, b, x):
    """Return the number of iterations of row j, and where its column begins."""
    first = columns.indptr[j]
    return columns.indptr[j + 1] - first + 1, first


@atos.task(workload=waiting)
def solve_one(worker, j, e, first, columns, values, diagonal, total, missing, b, x):
    """Add what row j has found to a row that waits for it, for one right-hand side."""
    solved, entry = (b[j, 0] - total[j, 0]) / diagonal[j], first + e
    if entry == columns.indptr[j + 1]:
        x[j, 0] = solved
    else:
        i = columns.indices[entry]
        atos.accumulate(total, (i, 0), values[entry] * solved)
        worker.arrive(missing, i, push=i)


# %%
# With k right-hand sides eight threads share an iteration. Each adds to its columns, and one of them arrives for all.
@atos.task(workload=waiting, group=8)
def solve_several(worker, j, e, first, columns, values, diagonal, total, missing, b, x):
    """Add what row j has found to a row that waits for it, for each right-hand side."""
    group, entry = worker.group, first + e
    if entry == columns.indptr[j + 1]:
        for c in group.split(b.shape[1]):
            x[j, c] = (b[j, c] - total[j, c]) / diagonal[j]
    else:
        i = columns.indices[entry]
        for c in group.split(b.shape[1]):
            atos.accumulate(total, (i, c), values[entry] * ((b[j, c] - total[j, c]) / diagonal[j]))
        group.sync()  # all threads have added before one arrives for them
        if group.rank == 0:
            worker.arrive(missing, i, push=i)


class Triangular:
    """The lower or upper triangle of a matrix, or its transpose, analyzed; nothing else of the matrix counts."""

    def __init__(self, matrix: Any, *, lower: bool = True, transposed: bool = False, unit: bool = False, device: Any = None):
        entries = (matrix.T if transposed else matrix).tocoo()
        rows, columns, n = entries.row, entries.col, matrix.shape[0]
        inside, on = rows > columns if lower != transposed else rows < columns, rows == columns
        strict = type(entries)((entries.data[inside], (rows[inside], columns[inside])), shape=(n, n)).tocsc()
        # NumPy's functions call those of CuPy for arrays of CuPy, which stay on the GPU.
        diagonal = np.bincount(rows[on], weights=entries.data[on], minlength=n)
        if unit:
            diagonal = np.ones_like(diagonal)
        if not diagonal.all():
            raise np.linalg.LinAlgError(f"row {int(diagonal.argmin())} of the matrix has nothing on the diagonal")
        waits_for = np.bincount(strict.indices, minlength=n).astype(np.int32)
        self.columns = atos.Graph.from_csr(strict.indptr, strict.indices, device=device)
        self.device = self.columns.device
        numbers = strict.data.astype(np.float64), diagonal.astype(np.float64)
        self.values, self.diagonal = (atos.asarray(each, readonly=True, device=self.device) for each in numbers)
        self.waits_for = atos.asarray(waits_for, device=self.device)
        self.first = atos.asarray(np.flatnonzero(waits_for == 0).astype(np.uint32), device=self.device)
        self.queue, self.n = atos.Queue(n, device=self.device), n

    def solve(self, b: Any, worker: str = "cta", **launch_options: Any) -> Any:
        """Return X of the shape of B, (n,) or (n, k), as an array of the library of B."""
        if b.ndim > 2 or b.shape[:1] != (self.n,):
            raise ValueError(f"right-hand sides have the shape ({self.n},) or ({self.n}, k), and not {b.shape}")
        rows = b.astype(np.float64, order="C", copy=False).reshape(self.n, *(b.shape[1:] or (1,)))
        given = atos.asarray(rows, readonly=True, device=self.device)
        total, x = (atos.zeros(given.shape, dtype=np.float64, device=self.device) for _ in range(2))
        self.queue.push(self.first)
        arguments = self.columns, self.values, self.diagonal, total, self.waits_for.copy(), given, x
        task = solve_one if given.shape[1] == 1 else solve_several
        self.stats = self.queue.launch(task, *arguments, worker=worker, **launch_options)
        assert self.stats.tasks_run == self.n
        if not hasattr(b, "__cuda_array_interface__"):
            return x.to_numpy().reshape(b.shape)
        import cupy

        return cupy.asarray(x).reshape(b.shape)


# %%
# The certificate is the componentwise backward error: X solves a system exactly whose numbers differ from those given by this
# part of each (Oettli and Prager 1964). Whatever the order of the additions, it is at most the rounding of the operations of a
# row (Higham 2002, Theorem 8.5); the check rounds as much.
def verify(triangle: Any, x: np.ndarray, b: np.ndarray) -> float:
    """Return the backward error of X, which proves it."""
    scale = abs(triangle) @ abs(x) + abs(b)
    error = float((abs(triangle @ x - b) / np.where(scale > 0, scale, 1)).max())
    assert error <= (np.diff(triangle.tocsr().indptr).max() + 2) * np.finfo(float).eps, error
    return error


# %%
# An incomplete factorization has entries only where the matrix has some (Meijerink and van der Vorst 1977). For ILU(0) that is
# L U, in one matrix without the ones on the diagonal of L. Of a symmetric matrix it is IC(0), too: with the diagonal D of U,
# L sqrt(D) is the factor of Cholesky.
def incomplete_lu(matrix: Any) -> Any:
    """Return L and U of ILU(0) in one matrix."""
    matrix, rows = matrix.tocsr().sorted_indices(), []
    for i in range(matrix.shape[0]):
        part = slice(matrix.indptr[i], matrix.indptr[i + 1])
        row = dict(zip(matrix.indices[part].tolist(), matrix.data[part].tolist(), strict=True))
        for k in row:
            row[k] -= sum(row[m] * rows[m].get(k, 0.0) for m in row if m < min(i, k))
            row[k] /= rows[k][k] if k < i else 1.0
        rows.append(row)
        matrix.data[part] = list(row.values())
    return matrix


def incomplete_cholesky(matrix: Any) -> Any:
    """Return L of IC(0) of a symmetric matrix."""
    both = incomplete_lu(matrix)
    roots = scipy.sparse.diags(np.sqrt(both.diagonal()))
    return (scipy.sparse.tril(both, -1) @ roots + roots).tocsr()


# %%
# Conjugate gradients are those of SciPy, or of CuPy where the arrays are on a GPU: each iteration solves by both factors there.
def conjugate_gradients(matrix: Any, b: Any, first: Any = None, second: Any = None) -> tuple[Any, list[float]]:
    """Return the solution, and the residual after each iteration, relative to B."""
    linalg = scipy.sparse.linalg
    if hasattr(b, "__cuda_array_interface__"):
        linalg = importlib.import_module("cupyx.scipy.sparse.linalg")
    history: list[float] = []

    def note(x: Any) -> None:
        residual = b - matrix @ x
        history.append(float((residual @ residual) ** 0.5 / (b @ b) ** 0.5))

    factors = linalg.LinearOperator(matrix.shape, lambda r: second.solve(first.solve(r)), dtype=b.dtype) if first else None
    tolerance = "rtol" if "rtol" in inspect.signature(linalg.cg).parameters else "tol"  # as older versions call it
    x, failed = linalg.cg(matrix, b, M=factors, callback=note, **{tolerance: 1e-10})
    assert not failed
    assert history[-1] < 1e-9
    return x, history


def main(side: int = 40) -> None:
    """Solve by the factors of a Poisson equation on a square, and then the equation with and without them."""
    device = atos.device()
    line = scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(side, side))
    matrix, b = scipy.sparse.kronsum(line, line).tocsr(), np.random.default_rng(0).standard_normal((side**2, 32))
    ic, ilu = incomplete_cholesky(matrix), incomplete_lu(matrix)
    triangles, known = (ic, ic.T), b
    if device.kind == "cuda" and importlib.util.find_spec("cupy"):
        import cupy
        import cupyx.scipy.sparse

        matrix, ic, ilu = (cupyx.scipy.sparse.csr_matrix(each) for each in (matrix, ic, ilu))
        known = cupy.asarray(b)
    solvers = {
        "IC(0)": (Triangular(ic, device=device), Triangular(ic, transposed=True, device=device)),
        "ILU(0)": (Triangular(ilu, unit=True, device=device), Triangular(ilu, lower=False, device=device)),
    }
    for k in (1, 8, 32):
        found = [atos.asarray(solver.solve(known[:, :k])).to_numpy() for solver in solvers["IC(0)"]]
        errors = [verify(triangle, x, b[:, :k]) for triangle, x in zip(triangles, found, strict=True)]
        print(f"k = {k}: backward error {max(errors):.1e}, verified")
    print(solvers["IC(0)"][1].stats)
    from matplotlib import pyplot as plt

    for name, factors in {"no factors": (), **solvers}.items():
        _, history = conjugate_gradients(matrix, known[:, 0].copy(), *factors)
        print(f"conjugate gradients with {name}: {len(history)} iterations, residual {history[-1]:.1e}")
        plt.semilogy(history, label=name)
    plt.xlabel("iterations")
    plt.ylabel("residual")
    plt.legend()
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*map(int, [] if hasattr(sys, "ps1") else sys.argv[1:]))
