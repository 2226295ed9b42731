"""Satisfiability by survey propagation
====================================

This program satisfies a random formula of 4.2 clauses of three literals a variable (Braunstein, Mezard and Zecchina, 2005).
Most of those with more than 4.27 have no solution.

A survey is the chance that a clause warns a variable, since its other two literals are pressed to be false. `sweep` renews all
surveys in two rounds, one over the literals and one over the clauses, until they stay. Then the variables of strongest bias are
fixed, and `assign` fixes what follows: whoever takes the last but one literal from a clause pushes the last. When no bias is
left, `flip` searches for the rest (probSAT; Balint and Schoening, 2012). ``python examples/survey_propagation.py [VARIABLES]``
"""

from __future__ import annotations

import sys
from collections import namedtuple

import numpy as np

import atos_py as atos

CLAUSES, FREE, ONE, MOST, SMALL = 1024, 2, np.float32(1), np.float32(0.99999), np.float32(1e-30)
ENOUGH, SWEEPS, FIXED, WEAK, POWER = 0.01, 500, 0.02, 0.05, 2.06
Formula = namedtuple(
    "Formula", "literal first edge"
)  # literals of clause a: 3 * a to 3 * a + 2; edges of literal l: first[l] ...
State = namedtuple("State", "survey quiet change bias left value wish fixed")  # literal 2 * v is variable v, 2 * v + 1 is not v


def part(worker: atos.Worker, block, blocks, n):
    """Return the elements of this thread, of one of several equal blocks."""
    size = -(-n // blocks)
    return worker.split(range(block * size, min(block * size + size, n)))


def quiet(formula, state, literal):
    """Return the chance that no clause warns a variable to make a literal true."""
    chance = ONE
    for k in range(formula.first[literal], formula.first[literal + 1]):
        chance *= ONE - state.survey[formula.edge[k]]
    return chance


def pressed(formula, state, edge):
    """Return the chance that other clauses press a variable not to satisfy the clause of this edge."""
    literal = formula.literal[edge]
    rest, against = min(state.quiet[literal] / (ONE - state.survey[edge]), ONE), state.quiet[literal ^ 1]
    return (ONE - against) * rest / max(rest + against - rest * against, SMALL)


def renew(state, edge, survey):
    """Store a survey, and return by how much it has changed."""
    survey = min(survey, MOST)
    change = abs(state.survey[edge] - survey)
    state.survey[edge] = survey
    return change


@atos.task
def sweep(worker: atos.Worker, block, blocks, formula, state):
    """In even rounds find the chances that no clause warns a literal, in odd ones the surveys."""
    if worker.mode:
        return
    if worker.round % 2 == 0:
        for literal in part(worker, block, blocks, state.quiet.size):
            if state.value[literal >> 1] == FREE:
                state.quiet[literal] = quiet(formula, state, literal)
    else:
        change = np.float32(0)
        for clause in part(worker, block, blocks, state.left.size):
            a, b, c = 3 * clause, 3 * clause + 1, 3 * clause + 2
            x, y, z = pressed(formula, state, a), pressed(formula, state, b), pressed(formula, state, c)
            change = max(change, renew(state, a, y * z), renew(state, b, z * x), renew(state, c, x * y))
        change = worker.max(change)
        if worker.rank == 0:
            atos.atomic_max(state.change, 0, change)
    if worker.rank == 0:
        worker.push(block)


def settle(worker: atos.Worker, blocks, formula, state):
    """End after the round that changed little."""
    change = state.change[0]
    worker.sync()
    if worker.round % 2 == 1:
        if worker.rank == 0:
            state.change[0] = 0
        if change < ENOUGH or worker.round > 2 * SWEEPS:
            worker.set_mode(1)


@atos.task
def judge(worker: atos.Worker, block, blocks, formula, state):
    """Find the bias of each variable that is free, and the literal that it is for."""
    for v in part(worker, block, blocks, state.value.size):
        state.bias[v] = -1
        if state.value[v] == FREE:
            p, q = state.quiet[2 * v], state.quiet[2 * v + 1]
            bias = (q - p) / max(p + q - p * q, SMALL)  # (1 - p) * q warn it to be true, (1 - q) * p to be false
            state.bias[v], state.wish[v] = abs(bias), 2 * v + (bias < 0)


@atos.task
def choose(worker: atos.Worker, k, order, formula, state):
    """Fix the variable of the k-th strongest bias."""
    if worker.rank == 0:
        worker.push(state.wish[order[order.size - 1 - k]], task=assign)


def fix(literal, order, formula, state):
    """Make a literal true unless its variable is fixed; return where the other literal is, which is false."""
    v, false = literal >> 1, literal ^ 1
    if atos.atomic_cas(state.value, v, FREE, literal & 1) != FREE:
        return 0, 0, 0
    atos.atomic_add(state.fixed, 0, 1)
    state.quiet[literal], state.quiet[false] = 0, 1  # its clauses press nobody, and those of the other literal are pressed
    return formula.first[false + 1] - formula.first[false], formula.first[false], false


@atos.task(workload=fix)
def assign(worker: atos.Worker, literal, i, first, false, order, formula, state):
    """Take a false literal from a clause; if one is left, it has to be true."""
    clause, gone = formula.edge[first + i] // 3, (1 << 40) + false
    before = atos.atomic_add(state.left, clause, -gone)  # the number of literals left, and the sum of them
    if before >> 40 == 2:
        worker.push(before - 2 * (1 << 40) - false, task=assign)


@atos.task
def count(worker: atos.Worker, block, blocks, formula, truth, satisfied, search):
    """Count the true literals of each clause, and push those clauses that have none."""
    for clause in part(worker, block, blocks, satisfied.size):
        found = 0
        for edge in range(3 * clause, 3 * clause + 3):
            found += truth[formula.literal[edge] >> 1] ^ formula.literal[edge] & 1
        satisfied[clause] = found
        if found == 0:
            search.push(clause)


def weight(literal, formula, value, satisfied, loose):
    """Return how likely a false literal is to be flipped: the less, the more clauses only its opposite satisfies."""
    breaks = 0
    for k in range(formula.first[literal ^ 1], formula.first[(literal ^ 1) + 1]):
        breaks += satisfied[formula.edge[k] // 3] == 1
    return (0.9 + breaks) ** -POWER * (1.0 if value[literal >> 1] == FREE else loose)


def adjust(worker: atos.Worker, literal, change, formula, satisfied):
    """Change the counts of the clauses of a literal, and push each that has no true literal now."""
    for k in range(formula.first[literal], formula.first[literal + 1]):
        clause = formula.edge[k] // 3
        if atos.atomic_add(satisfied, clause, change) == -change:  # race: who reads the count before makes a worse guess
            worker.push(clause)


@atos.task(workload=lambda clause, formula, value, truth, satisfied, flips, limit, loose: 1 if satisfied[clause] <= 0 else 0)
def flip(worker: atos.Worker, clause, i, formula, value, truth, satisfied, flips, limit, loose):
    """Flip a variable of a clause that is not satisfied: one that breaks the fewest, or now and then any."""
    draw = atos.atomic_add(flips, 0, 1)
    if draw >= limit:
        worker.stop()
    x, y, z = formula.literal[3 * clause], formula.literal[3 * clause + 1], formula.literal[3 * clause + 2]
    p, q = weight(x, formula, value, satisfied, loose), weight(y, formula, value, satisfied, loose)
    where = atos.random(clause, draw) * (p + q + weight(z, formula, value, satisfied, loose))
    chosen = x if where < p else (y if where < p + q else z)
    old = atos.atomic_xor(truth, chosen >> 1, 1)
    adjust(worker, (chosen & -2) + old, 1, formula, satisfied)
    adjust(worker, (chosen & -2) + 1 - old, -1, formula, satisfied)


def random_formula(n, ratio=4.2, seed=1):
    """Return the literals of clauses of three variables each."""
    rng = np.random.default_rng(seed)
    variables = rng.integers(0, n, (int(ratio * n), 3))
    while (again := (variables == np.roll(variables, 1, 1)).any(1)).any():
        variables[again] = rng.integers(0, n, (np.count_nonzero(again), 3))
    return (2 * variables + rng.integers(0, 2, variables.shape)).astype(np.int32)


class Solver:
    """A formula, what is known of its variables, and queues, on a device."""

    def __init__(self, clauses, n, device=None, seed=0):
        def array(values, dtype=np.int32, **options):
            return atos.asarray(values, dtype=dtype, device=device, **options)

        literals = clauses.ravel()
        first = np.concatenate([[0], np.cumsum(np.bincount(literals, minlength=2 * n))])
        parts = literals, first, np.argsort(literals, kind="stable")
        self.formula = Formula(*(array(values, readonly=True) for values in parts))
        surveys = np.random.default_rng(seed).random(len(literals), np.float32)
        floats = (array(values, np.float32) for values in (surveys, np.ones(2 * n), [0], np.zeros(n)))
        integers = (array(values) for values in (np.full(n, FREE), np.zeros(n), [0]))
        self.state = State(*floats, array(clauses.sum(1, dtype=np.int64) + 3 * (1 << 40), np.int64), *integers)
        self.blocks = -(-len(clauses) // CLAUSES)
        self.queue, self.fixing, self.search = (atos.Queue(2 * n, device=device) for _ in range(3))

    def propagate(self):
        """Sweep until the surveys stay, and judge the variables; return the statistics."""
        self.queue.push(range(self.blocks))
        swept = self.queue.launch_cta(sweep, self.blocks, self.formula, self.state, barrier=True, each_round=settle)
        self.queue.push(range(self.blocks))
        self.queue.launch_cta(judge, self.blocks, self.formula, self.state)
        return swept

    def decimate(self):
        """Fix a part of the variables that are free, and what follows from them."""
        free = self.state.value.size - int(self.state.fixed[0])
        self.fixing.push(np.arange(max(1, int(FIXED * free))), task=choose)
        return self.fixing.launch_cta((choose, assign), atos.argsort(self.state.bias), self.formula, self.state)

    def finish(self):
        """Search from what is fixed for truths that satisfy all; return them and how many variables were flipped."""
        value, wish = self.state.value.to_numpy(), self.state.wish.to_numpy()
        device = self.queue.device
        truth = atos.asarray(1 - np.where(value == FREE, wish & 1, value), device=device)
        satisfied, flips = (atos.zeros(size, dtype=np.int64, device=device) for size in (self.state.left.size, 1))
        self.queue.push(range(self.blocks))
        self.queue.launch_cta(count, self.blocks, self.formula, truth, satisfied, self.search)
        one = {"num_blocks": 1, "num_threads": 32, "fetch_size": 1}  # worker: two that flip at once break more than they mend
        for limit, loose in ((30 * value.size, 1e-3), (1000 * value.size, 1.0)):  # at first hardly any variable that is fixed
            self.search.launch_warp(flip, self.formula, self.state.value, truth, satisfied, flips, limit, loose, **one)
        return truth.to_numpy(), flips[0]


def unsatisfied(clauses, truth):
    """Return how many clauses have no true literal."""
    return np.count_nonzero((truth[clauses >> 1] == clauses & 1).all(axis=1))


def main(n: int = 10_000) -> None:
    """Solve a random formula, verify the solution, and draw how the biases become weaker."""
    from matplotlib import pyplot as plt

    clauses = random_formula(n)
    for attempt in range(20):  # from other surveys, if what they fix is wrong
        solver, rounds = Solver(clauses, n, seed=attempt), 0
        plt.cla()
        while True:
            stats = solver.propagate()
            rounds, bias = rounds + stats.rounds, np.sort(solver.state.bias.to_numpy())[::-1]
            plt.plot(bias[bias >= 0], color=plt.cm.viridis(len(bias[bias >= 0]) / n))
            if bias[0] < WEAK:
                break
            solver.decimate()
        fixed, (truth, flips) = solver.state.fixed[0], solver.finish()
        if unsatisfied(clauses, truth) == 0:
            break
    assert unsatisfied(clauses, truth) == 0
    print(f"{n:,} variables, {len(clauses):,} clauses: satisfied, verified", stats, sep="\n")
    print(f"{rounds // 2:,} sweeps fixed {fixed:,} variables, a search flipped {flips:,} times")
    plt.gca().set(xlabel="free variables by bias", ylabel="bias")
    plt.show()


if __name__ == "__main__":  # in a notebook sys.argv is that of the kernel
    main(*map(int, [] if hasattr(sys, "ps1") else sys.argv[1:]))
