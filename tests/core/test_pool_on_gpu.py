"""The memory of pools on a GPU: with a stand-in for the driver."""

from __future__ import annotations

import pytest
from fake_gpu import FakeGpu


@pytest.fixture(scope="module")
def gpu(tmp_path_factory):
    return FakeGpu(tmp_path_factory.mktemp("driver"))


PROGRAM = """
pool = atos.Pool([("x", np.float64), ("y", np.int32, 2)], 1000)
calls = trace()
assert calls.count("allocate managed") == MANAGED, calls
assert (pool.max_capacity > 1_000_000) == (MANAGED > 0), pool.max_capacity
assert pool.device == atos.device("cuda")
rows = np.arange(1000).reshape(500, 2)
for turn in range(2):
    assert pool.append(x=np.arange(500) + 0.5, y=rows) == 500 * turn
before = pool.x
pool.resize(1100)
calls = trace()
assert calls.count("allocate managed") == 0, calls  # all of it is to have memory
assert calls.count("free") == MANAGED / 2, calls  # that of x is still in use
assert pool.max_capacity == 1100 and len(pool) == 1000
assert pool.x[:].tolist() == 2 * (np.arange(500) + 0.5).tolist() == before[:].tolist()
assert np.array_equal(pool.y.to_numpy(), np.r_[rows, rows])
try:
    pool.take(101)
except atos.PoolFullError as error:
    assert (error.capacity, error.needed) == (1100, 1101)
pool.clear()
assert pool.take(1100) == 0
del before, pool
assert trace().count("free") == MANAGED / 2
"""


def test_memory_comes_on_demand(gpu):
    gpu.run(PROGRAM.replace("MANAGED", "2"))


def test_without_memory_on_demand_there_is_the_capacity(gpu):
    gpu.run(PROGRAM.replace("MANAGED", "0"), managed=0)
