"""Label propagation: communities in which each vertex has a label that is most frequent among its neighbors.

Each vertex begins with a label of its own. A step has two rounds of one launch. In the first one, each vertex that may want
another label looks for the most frequent one of its neighbors. It keeps its own if that is among the most frequent, otherwise
it wants that of the largest hash among them. In the second round, some of those that want one take it, and wake their
neighbors. What the first round reads, only the second one writes, so the result depends on neither device nor schedule.

Who may take its label: in the first few steps a random half of them, which gets ahead quickly; afterwards a vertex that comes
first, by a hash of the step, among its neighbors that want one. So no two neighbors change at once then, and each change
makes more edges join equal labels than before. There is one such change at least in each step, so there is an end, when no
vertex wants another label.

Sources: Raghavan, Albert and Kumara, "Near linear time algorithm to detect community structures in large-scale networks",
Physical Review E 76 (2007); Cordasco and Gargano, "Community detection via semi-synchronous label propagation algorithms",
BASNA 2010.
"""

from .api import LabelResult, end_step, label_propagation, propagate, verify_label_propagation

__all__ = ["LabelResult", "end_step", "label_propagation", "propagate", "verify_label_propagation"]
