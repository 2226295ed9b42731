"""Graph algorithms in the model of SIMD-X: a program is active, compute and combine, three small functions.

`Program` is the model, `Combine` how updates become one, and `programs` has some in a few lines each. See docs/simd-x.md.

Source: Liu and Huang, "SIMD-X: Programming and processing of graph algorithms on GPUs", USENIX ATC 2019.
"""

from . import programs
from .combine import MAX, MIN, SUBTRACT, SUM, VOTE, Combine
from .pattern import draw_pattern
from .program import Program
from .stats import ProgramStats

__all__ = ["MAX", "MIN", "SUBTRACT", "SUM", "VOTE", "Combine", "Program", "ProgramStats", "draw_pattern", "programs"]
