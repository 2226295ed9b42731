"""Small dense linear algebra for tasks: vectors and matrices of up to 128 numbers a side, by the threads of a team together.

A *team* is a worker (``worker``, in flat tasks) or a group (``worker.group(k)``). All its threads call a function with the same
arguments. With a team of one thread, as on the CPU, that thread does it all, so that one source gives one result everywhere.

Vectors and matrices are one-dimensional arrays, as scratch memory is: element (i, j) of a k x k matrix is ``a[i * k + j]``. The
functions compute in the type of the arrays. What the threads of the team wrote before is seen by the function, and what it
wrote is seen by all of them after.
"""

from .matrices import cholesky, inverse, matvec, outer, solve
from .vectors import any_updated, dot, largest, logsumexp, normalize, smallest, softmax, total

#: By the names that NumPy has for them.
sum, min, max = total, smallest, largest

__all__ = [
    "any_updated",
    "cholesky",
    "dot",
    "inverse",
    "logsumexp",
    "matvec",
    "max",
    "min",
    "normalize",
    "outer",
    "softmax",
    "solve",
    "sum",
]
