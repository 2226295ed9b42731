"""A room for several: the forms of algorithms for a graph whose parts lie on several devices or hosts.

For example, `atos.bfs(graph.partition(2), 0)` runs `bfs.over_devices.bfs_over`. A program that gives algorithms a `Graph` never
loads this package. The frame of algorithms (`algorithms.frame`) loads it when an algorithm is first given another type, and
asks the registry (`algorithms.forms`) for the form of that type, which the modules of this package have put there (`forms`).
"""

from . import components_over_devices, components_over_hosts  # noqa: F401 - each module registers its form
from .bfs import over_devices as _bfs_over_devices  # noqa: F401
from .bfs import over_hosts as _bfs_over_hosts  # noqa: F401
from .pagerank import over_devices as _pagerank_over_devices  # noqa: F401
from .pagerank import over_hosts as _pagerank_over_hosts  # noqa: F401
from .sssp import over_devices as _sssp_over_devices  # noqa: F401
from .sssp import over_hosts as _sssp_over_hosts  # noqa: F401
