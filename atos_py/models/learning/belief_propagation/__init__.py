"""Belief propagation in pairwise Markov random fields."""

from .api import BeliefResult, belief_propagation
from .verify import verify_belief_propagation

__all__ = ["BeliefResult", "belief_propagation", "verify_belief_propagation"]
