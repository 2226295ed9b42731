"""Public names, a line each, with the module that has it.

Type checkers and editors read this file, and so does `__init__.py`, which imports a module when one of its names is first used.
"""

from . import acc as acc
from . import distributed as distributed
from . import errors as errors
from . import features as features
from . import linalg as linalg
from .algorithms.betweenness import BetweennessResult as BetweennessResult
from .algorithms.betweenness import betweenness as betweenness
from .algorithms.betweenness import verify_betweenness as verify_betweenness
from .algorithms.bfs import UNREACHED as UNREACHED
from .algorithms.bfs import BFSResult as BFSResult
from .algorithms.bfs import bfs as bfs
from .algorithms.bfs import verify_bfs as verify_bfs
from .algorithms.coloring import ColoringResult as ColoringResult
from .algorithms.coloring import color as color
from .algorithms.coloring import verify_coloring as verify_coloring
from .algorithms.connected_components import ComponentsResult as ComponentsResult
from .algorithms.connected_components import connected_components as connected_components
from .algorithms.connected_components import verify_connected_components as verify_connected_components
from .algorithms.core_number import CoreResult as CoreResult
from .algorithms.core_number import core_number as core_number
from .algorithms.core_number import verify_core_number as verify_core_number
from .algorithms.count_triangles import TriangleResult as TriangleResult
from .algorithms.count_triangles import count_triangles as count_triangles
from .algorithms.count_triangles import verify_triangles as verify_triangles
from .algorithms.k_core import k_core as k_core
from .algorithms.k_core import verify_k_core as verify_k_core
from .algorithms.label_propagation import LabelResult as LabelResult
from .algorithms.label_propagation import label_propagation as label_propagation
from .algorithms.label_propagation import verify_label_propagation as verify_label_propagation
from .algorithms.maximal_independent_set import maximal_independent_set as maximal_independent_set
from .algorithms.maximal_independent_set import verify_maximal_independent_set as verify_maximal_independent_set
from .algorithms.minimum_spanning_forest import SpanningForestResult as SpanningForestResult
from .algorithms.minimum_spanning_forest import minimum_spanning_forest as minimum_spanning_forest
from .algorithms.minimum_spanning_forest import verify_minimum_spanning_forest as verify_minimum_spanning_forest
from .algorithms.pagerank import PageRankResult as PageRankResult
from .algorithms.pagerank import pagerank as pagerank
from .algorithms.pagerank import verify_pagerank as verify_pagerank
from .algorithms.shortest_path_lengths import ShortestPathLengthsResult as ShortestPathLengthsResult
from .algorithms.shortest_path_lengths import shortest_path_lengths as shortest_path_lengths
from .algorithms.shortest_path_lengths import verify_shortest_path_lengths as verify_shortest_path_lengths
from .algorithms.sssp import SSSPResult as SSSPResult
from .algorithms.sssp import sssp as sssp
from .algorithms.sssp import verify_sssp as verify_sssp
from .algorithms.strongly_connected_components import strongly_connected_components as strongly_connected_components
from .algorithms.strongly_connected_components import (
    verify_strongly_connected_components as verify_strongly_connected_components,
)
from .algorithms.vertex_set import VertexSetResult as VertexSetResult
from .arrays.array import Array as Array
from .arrays.array import asarray as asarray
from .arrays.array import empty as empty
from .arrays.array import zeros as zeros
from .arrays.filled import arange as arange
from .arrays.filled import full as full
from .arrays.filled import ones as ones
from .arrays.lowered import LoweredArray as LoweredArray
from .arrays.mirrored import MirroredArray as MirroredArray
from .arrays.owned import OwnedArray as OwnedArray
from .arrays.partitioned import PartitionedArray as PartitionedArray
from .arrays.pool import Pool as Pool
from .arrays.primitives import argsort as argsort
from .arrays.primitives import cumsum as cumsum
from .arrays.primitives import max as max
from .arrays.primitives import min as min
from .arrays.primitives import nonzero as nonzero
from .arrays.primitives import sort as sort
from .arrays.primitives import sum as sum
from .compile.atomics import accumulate as accumulate
from .compile.atomics import atomic_add as atomic_add
from .compile.atomics import atomic_add2 as atomic_add2
from .compile.atomics import atomic_add4 as atomic_add4
from .compile.atomics import atomic_and_ as atomic_and_
from .compile.atomics import atomic_cas as atomic_cas
from .compile.atomics import atomic_exch as atomic_exch
from .compile.atomics import atomic_load as atomic_load
from .compile.atomics import atomic_max as atomic_max
from .compile.atomics import atomic_min as atomic_min
from .compile.atomics import atomic_mul as atomic_mul
from .compile.atomics import atomic_or_ as atomic_or_
from .compile.atomics import atomic_store as atomic_store
from .compile.atomics import atomic_xor as atomic_xor
from .compile.atomics import fence as fence
from .compile.cached_load import load_cached as load_cached
from .compile.group import Group as Group
from .compile.local_array import local_array as local_array
from .compile.packing import pack as pack
from .compile.packing import unpack as unpack
from .compile.random_numbers import random as random
from .compile.random_numbers import random_bits as random_bits
from .compile.task import Task as Task
from .compile.task import Worker as Worker
from .compile.task import task as task
from .core.devices import Device as Device
from .core.devices import device as device
from .core.devices import devices as devices
from .core.devices import release_memory as release_memory
from .errors import *
from .graph import generate as generate
from .graph.graph import Graph as Graph
from .graph.partition import Partition as Partition
from .models.dynamic.dynamic_bfs import DynamicBFS as DynamicBFS
from .models.dynamic.dynamic_components import DynamicComponents as DynamicComponents
from .models.dynamic.dynamic_graph import DynamicGraph as DynamicGraph
from .models.learning.als import ALSResult as ALSResult
from .models.learning.als import als as als
from .models.learning.als import verify_als as verify_als
from .models.learning.belief_propagation import BeliefResult as BeliefResult
from .models.learning.belief_propagation import belief_propagation as belief_propagation
from .models.learning.belief_propagation import verify_belief_propagation as verify_belief_propagation
from .models.learning.label_spreading import LabelSpreadingResult as LabelSpreadingResult
from .models.learning.label_spreading import label_spreading as label_spreading
from .models.learning.label_spreading import verify_label_spreading as verify_label_spreading
from .models.learning.manifold_ranking import manifold_ranking as manifold_ranking
from .models.learning.manifold_ranking import multimodal as multimodal
from .models.learning.manifold_ranking import verify_manifold_ranking as verify_manifold_ranking
from .models.learning.manifold_ranking import verify_multimodal as verify_multimodal
from .models.learning.spmm import spmm as spmm
from .models.learning.spmm import verify_spmm as verify_spmm
from .runtime.experiment import Experiment as Experiment
from .runtime.launch import PreparedLaunch as PreparedLaunch
from .runtime.launch_options import LaunchOptions as LaunchOptions
from .runtime.queue import Queue as Queue
from .runtime.run import Run as Run
from .runtime.stats import DeviceStats as DeviceStats
from .runtime.stats import LaunchStats as LaunchStats
from .runtime.waiting import WaitingCounters as WaitingCounters
from .tools.tune import tune as tune
from .tools.tuning_cache import tuned as tuned
from .tools.tuning_result import Tuning as Tuning

__version__: str

def __dir__() -> list[str]: ...
