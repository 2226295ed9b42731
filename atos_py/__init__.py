"""Task-parallel irregular work on GPUs: one shared queue, tasks in Python, persistent and discrete launches."""

from . import distributed, errors, features, linalg
from .algorithms.als import ALSResult, als, verify_als
from .algorithms.belief_propagation import BeliefResult, belief_propagation, verify_belief_propagation
from .algorithms.betweenness import BetweennessResult, betweenness, verify_betweenness
from .algorithms.bfs import UNREACHED, BFSResult, bfs, verify_bfs
from .algorithms.coloring import ColoringResult, color, verify_coloring
from .algorithms.connected_components import ComponentsResult, connected_components, verify_connected_components
from .algorithms.core_number import CoreResult, core_number, verify_core_number
from .algorithms.count_triangles import TriangleResult, count_triangles, verify_triangles
from .algorithms.dynamic_bfs import DynamicBFS
from .algorithms.dynamic_components import DynamicComponents
from .algorithms.k_core import k_core, verify_k_core
from .algorithms.label_propagation import LabelResult, label_propagation, verify_label_propagation
from .algorithms.label_spreading import LabelSpreadingResult, label_spreading, verify_label_spreading
from .algorithms.manifold_ranking import manifold_ranking, multimodal, verify_manifold_ranking, verify_multimodal
from .algorithms.maximal_independent_set import maximal_independent_set, verify_maximal_independent_set
from .algorithms.minimum_spanning_forest import (
    SpanningForestResult,
    minimum_spanning_forest,
    verify_minimum_spanning_forest,
)
from .algorithms.pagerank import PageRankResult, pagerank, verify_pagerank
from .algorithms.shortest_path_lengths import (
    ShortestPathLengthsResult,
    shortest_path_lengths,
    verify_shortest_path_lengths,
)
from .algorithms.spmm import spmm, verify_spmm
from .algorithms.sssp import SSSPResult, sssp, verify_sssp
from .algorithms.strongly_connected_components import strongly_connected_components, verify_strongly_connected_components
from .algorithms.vertex_set import VertexSetResult
from .arrays.array import Array, asarray, empty, zeros
from .arrays.filled import full
from .arrays.lowered import LoweredArray
from .arrays.mirrored import MirroredArray
from .arrays.owned import OwnedArray
from .arrays.partitioned import PartitionedArray
from .arrays.pool import Pool
from .arrays.primitives import argsort, cumsum, max, min, nonzero, sort, sum
from .compile.atomics import (
    accumulate,
    atomic_add,
    atomic_add2,
    atomic_add4,
    atomic_and_,
    atomic_cas,
    atomic_exch,
    atomic_max,
    atomic_min,
    atomic_mul,
    atomic_or_,
    atomic_xor,
)
from .compile.cached_load import load_cached
from .compile.group import Group
from .compile.local_array import local_array
from .compile.packing import pack, unpack
from .compile.random_numbers import random, random_bits
from .compile.task import Task, Worker, task
from .core.devices import Device, device, devices, release_memory
from .errors import *  # noqa: F403
from .graph import generate
from .graph.dynamic_graph import DynamicGraph
from .graph.graph import Graph
from .graph.partition import Partition
from .runtime.launch_options import LaunchOptions
from .runtime.queue import Queue
from .runtime.run import Run
from .runtime.stats import DeviceStats, LaunchStats
from .tools.tune import tune
from .tools.tuning_cache import tuned
from .tools.tuning_result import Tuning

__all__ = [
    *errors.__all__,
    "ALSResult",
    "Array",
    "BFSResult",
    "BeliefResult",
    "BetweennessResult",
    "ColoringResult",
    "ComponentsResult",
    "CoreResult",
    "Device",
    "DeviceStats",
    "DynamicBFS",
    "DynamicComponents",
    "DynamicGraph",
    "Graph",
    "Group",
    "LabelResult",
    "LabelSpreadingResult",
    "LaunchOptions",
    "LaunchStats",
    "LoweredArray",
    "MirroredArray",
    "OwnedArray",
    "PageRankResult",
    "Partition",
    "PartitionedArray",
    "Pool",
    "Queue",
    "Run",
    "SSSPResult",
    "ShortestPathLengthsResult",
    "SpanningForestResult",
    "Task",
    "TriangleResult",
    "Tuning",
    "UNREACHED",
    "VertexSetResult",
    "Worker",
    "als",
    "argsort",
    "asarray",
    "accumulate",
    "atomic_add",
    "atomic_add2",
    "atomic_add4",
    "atomic_and_",
    "atomic_cas",
    "atomic_exch",
    "atomic_max",
    "atomic_min",
    "atomic_mul",
    "atomic_or_",
    "atomic_xor",
    "belief_propagation",
    "betweenness",
    "bfs",
    "color",
    "connected_components",
    "core_number",
    "count_triangles",
    "cumsum",
    "device",
    "devices",
    "distributed",
    "empty",
    "features",
    "full",
    "generate",
    "k_core",
    "label_propagation",
    "label_spreading",
    "linalg",
    "load_cached",
    "local_array",
    "manifold_ranking",
    "max",
    "maximal_independent_set",
    "min",
    "minimum_spanning_forest",
    "multimodal",
    "nonzero",
    "pack",
    "pagerank",
    "random",
    "random_bits",
    "release_memory",
    "shortest_path_lengths",
    "sort",
    "spmm",
    "sssp",
    "strongly_connected_components",
    "sum",
    "task",
    "tune",
    "tuned",
    "unpack",
    "verify_als",
    "verify_belief_propagation",
    "verify_betweenness",
    "verify_bfs",
    "verify_coloring",
    "verify_connected_components",
    "verify_core_number",
    "verify_k_core",
    "verify_label_propagation",
    "verify_label_spreading",
    "verify_manifold_ranking",
    "verify_maximal_independent_set",
    "verify_minimum_spanning_forest",
    "verify_multimodal",
    "verify_pagerank",
    "verify_shortest_path_lengths",
    "verify_spmm",
    "verify_sssp",
    "verify_strongly_connected_components",
    "verify_triangles",
    "zeros",
]

__version__ = "0.2.0"


def __dir__() -> list[str]:
    """Return the public names and nothing else."""
    return [*__all__, "__version__"]
