"""A program: its functions, what it may do, and the call that runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike, NDArray

from ...algorithms.arguments import check_sources
from ...arrays.array import to_host
from ...arrays.in_place import array_in_place
from ...compile.program import check_worker
from ...compile.short_traceback import ends_in_task
from ...errors import InvalidArgumentError, LaunchConfigError, UnsupportedTypeError
from ...graph.graph import Graph
from ...graph.graph_arrays import check_graph
from ...runtime.buckets import check_buckets
from ...runtime.launch_options import LaunchOptions, Unpack, check_launch_options
from ...support.validation import (
    as_host_array,
    check_bool,
    check_choice,
    check_float,
    check_int,
    list_parameters,
)
from .combine import Combine
from .dense import run_dense
from .frontier import BINS, UNLIMITED
from .runs import BUCKETS, Request, run_in_rounds, run_relaxed
from .stats import ProgramStats

__all__ = ["Program"]

DIRECTIONS, FILTERS, FUSES = ("push", "pull", "auto"), ("jit", "online", "ballot"), ("direction", "none", "all")
MOST_LEVELS = 6  # of unrolling


def check_policy(policy: Any, n: int) -> int:
    """Return the vertices of a frontier above which a round is topology-driven, or -1 if none is."""
    if isinstance(policy, str) and policy in ("data", "topology"):
        return 0 if policy == "topology" else -1
    is_hybrid = isinstance(policy, tuple) and len(policy) == 2 and policy[0] == "hybrid"
    if is_hybrid and (share := check_float("the share of a hybrid policy", policy[1])) >= 0:
        return min(int(share * n), UNLIMITED)
    raise InvalidArgumentError(f"policy must be 'data', 'topology' or ('hybrid', share of at least 0) (got {policy!r:.80})")


def has_changed(before, after, *args):  # type: ignore[no-untyped-def]
    """Say of a vertex that it is active if its metadata has changed."""
    return before != after


@dataclass(frozen=True, eq=False)
class Program:
    """A graph algorithm as three functions, in the model of SIMD-X: active, compute, combine.

    Metadata is a number for each vertex. In each round the vertices that are *active* send an *update* along each of their
    out-edges, and the updates of a vertex are *combined* and change its metadata. What changes becomes active in turn.

    The functions are plain Python functions of numbers, compiled into tasks. `args` are further arguments of `run`.

    Parameters
    ----------
    compute : callable
        ``compute(m_v, weight, m_u, *args)``, the update that v sends to u, given the metadata of both. Without weights,
        `weight` is 1.
    combine : Combine
        `MIN`, `MAX`, `SUM`, `SUBTRACT` or `VOTE` of this package, or one of your own.
    active : callable, optional
        ``active(before, after, *args)``: whether a vertex is active whose metadata has changed so; by default if it has.
        It is asked of a single update or of all those of a round together, and has to be true of the whole if it is of a part.
        Programs whose combine is neither idempotent nor comes with `apply` have to have one, which must be true of at most one
        change of a vertex in a run: of a degree that falls below k, for example.
    wants : callable, optional
        ``wants(m_u, *args)``: whether the metadata of a vertex may change at all. Other vertices are sent nothing, and do not
        pull. By default all may; where votes are combined, those that hold the largest value of the type: no vote so far.
    apply : callable, optional
        ``apply(before, received, v, *args)``, for `SUM`: the metadata of v in the next round, given the sum of the updates.
        All vertices then send in every round, until none is active or the rounds are over.

    Raises
    ------
    UnsupportedTypeError
        If one of them is no function, or `combine` is no combine.
    InvalidArgumentError
        If they do not go together; the message says why.

    References
    ----------
    Liu and Huang, "SIMD-X: Programming and processing of graph algorithms on GPUs", USENIX ATC 2019.

    Examples
    --------
    >>> from atos_py import acc
    >>> sssp = acc.Program(lambda m_v, weight, m_u: m_v + weight, acc.MIN)
    >>> graph = atos.Graph.from_edges([0, 0, 1], [1, 2, 2], weights=[5, 9, 3])
    >>> distance = atos.asarray(np.array([0, np.inf, np.inf]))
    >>> stats = sssp.run(graph, distance, start=0)
    >>> print(distance[:], stats.frontiers)
    [0. 5. 8.] (1, 2, 1)
    """

    compute: Callable[..., Any]
    combine: Combine
    active: Any = None
    wants: Any = None
    apply: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.combine, Combine):
            raise UnsupportedTypeError(
                f"combine must be MIN, MAX, SUM, SUBTRACT, VOTE or an acc.Combine (got {self.combine!r:.80})"
            )
        for name in ("compute", "active", "wants", "apply"):
            function = getattr(self, name)
            if not callable(function) and (name == "compute" or function is not None):
                raise UnsupportedTypeError(f"{name} must be a function (got {function!r:.80})")
        if self.apply is not None and self.combine.name != "SUM":
            raise InvalidArgumentError(f"apply= takes the sum of all updates, so it goes with SUM (got {self.combine!r})")
        if self.apply is not None and self.wants is not None:
            raise InvalidArgumentError("wants= says which vertices may change, and with apply= all do; leave one of them out")
        if not self.combine.idempotent and self.apply is None and self.active is None:
            raise InvalidArgumentError(
                f"{self.combine!r} needs each update exactly once, but a vertex that changes twice in a round could send twice:"
                " pass active=, true of at most one change of a vertex, or apply="
            )
        if self.active is None:
            object.__setattr__(self, "active", has_changed)

    @property
    def any_change_counts(self) -> bool:
        """Whether a vertex is active after any change."""
        return self.active is has_changed

    @property
    def name(self) -> str:
        """The name of the function `compute`."""
        return getattr(self.compute, "__name__", repr(self.compute))

    @ends_in_task
    def run(
        self,
        graph: Graph,
        metadata: Any,
        *args: Any,
        start: ArrayLike | None = None,
        direction: str | None = None,
        filter: str | None = None,
        threshold: int | None = None,
        fuse: str = "all",
        policy: Literal["data", "topology"] | tuple[Literal["hybrid"], float] = "data",
        unique: bool = False,
        unroll: int = 1,
        monotone_stores: bool = False,
        rounds: int | None = None,
        delta: float | Literal["auto"] | None = None,
        worker: str | None = None,
        **launch_options: Unpack[LaunchOptions],
    ) -> ProgramStats:
        """Run the program until no vertex is active; `metadata` is changed in place.

        Parameters
        ----------
        graph : Graph
            Directed or not, with or without weights; the run is on its device.
        metadata : array
            A number for each vertex, on that device and writable: integers or floats.
        *args
            What the functions get beside the metadata: numbers, arrays, and named tuples of those.
        start : int or array of int, optional
            The vertices that are active first; by default all. Not with `apply`, by which all vertices send.
        direction : {'push', 'pull', 'auto'}, optional
            'push': active vertices change their out-neighbors by atomics. 'pull': vertices look along their in-edges for
            active ones, and combine without atomics; votes end that at the first one. 'auto': in each round, 'pull' if more
            than 30 % of the edges leave active vertices, for votes if a fifteenth of those that are left do. By default 'push',
            and 'pull' with `apply`.
        filter : {'jit', 'online', 'ballot'}, optional
            What lists the active vertices of the next round where they push. 'online': whoever makes a vertex active.
            'ballot': a scan of all metadata. 'jit': online, but a scan if the list gets too long. By default 'online' without
            rounds, and where no vertex can be listed twice in a round: with votes, and combines that are not idempotent.
            Otherwise, and with `threshold`, 'jit'.
        threshold : int, optional
            With 'jit', how many vertices each of the 1,024 bins of the online filter has room for, by default 64: of numbers
            that are equal modulo 1,024. A scan follows once one is full.
        fuse : {'all', 'direction', 'none'}
            Which parts share a kernel: all; pushing and its scan, and pulling and its scan; or none. A change of kernels is
            another launch.
        policy : {'data', 'topology'} or ('hybrid', float)
            What a round works on. 'data': active vertices. 'topology': all vertices, without a list: each looks along all its
            in-edges, until none changes. ('hybrid', share): all vertices if more than this share of them was listed, with
            duplicates unless they are removed, and active ones otherwise. Only for idempotent combines, but not for votes; in
            rounds, with `direction` left out.
        unique : bool
            Whether the online filter lists a vertex once in a round, by an atomic claim of it, however often it changes. A
            ballot always does. Only in rounds with lists: not with 'pull' or 'topology', nor `apply`.
        unroll : int
            How many levels a thread follows where it makes vertices active, 1 to 6: with 2 it goes on to the edges of a vertex
            that an edge has changed, unless it has more than 32. So rounds are fewer, though more may be done in all. For
            pushes: not with 'pull', 'topology' or `apply`, nor for votes. `frontiers` are without vertices that a thread has
            followed.
        monotone_stores : bool
            Whether vertices change their out-neighbors by plain stores, not by atomics, nor looking along in-edges. Only for
            ``policy="topology"``: a store may undo a better one of another thread, which is repaired since every vertex sends
            again in the next round. `frontiers` then counts the vertices that changed a neighbor.
        rounds : int, optional
            The most rounds. By default there is no limit.
        delta : float or 'auto', optional
            Width of the buckets by which vertices of low metadata (of high ones with `MAX`) go first: delta-stepping, without
            rounds.
        worker : {'thread', 'warp', 'cta'}, optional
            By default "cta".
        **launch_options : LaunchOptions
            As for `Queue.launch_cta`. ``barrier=False`` runs without rounds, where the combine allows it. `timeout` is for the
            whole call.

        Returns
        -------
        ProgramStats
            Of rounds, with an entry for each of the first 65,536 of them in `filters` (what listed its active vertices; "none"
            if it is topology-driven), `directions` and `frontiers` (how many they were). `stopped` says that `rounds` were over
            before its end.

        Raises
        ------
        InvalidArgumentError, UnsupportedTypeError
            If an argument is none of those.
        LaunchConfigError
            If the options do not go together with the program; the message says why.

        Examples
        --------
        >>> from atos_py import acc
        >>> graph = atos.generate.road(3, 1.0)
        >>> label = atos.asarray(np.arange(9))
        >>> components = acc.Program(lambda m_v, weight, m_u: m_v, acc.MIN)
        >>> stats = components.run(graph, label, direction="auto")
        >>> print(label[:], stats.directions[0], stats.frontiers[0])
        [0 0 0 0 0 0 0 0 0] pull 9
        """
        check_graph(graph)
        check_launch_options("Program.run", launch_options, list_parameters(Program.run))
        check_worker("cta" if worker is None else worker)
        sent = check_choice("direction", "push" if direction is None else direction, DIRECTIONS)
        usual = "jit" if threshold is not None or (self.combine.idempotent and not self.combine.votes) else "online"
        listed = check_choice("filter", usual if filter is None else filter, FILTERS)
        n, values = graph.num_vertices, array_in_place("metadata", metadata, graph.num_vertices, graph.device)
        if self.combine.name == "SUBTRACT" and values.dtype.kind == "u":
            raise UnsupportedTypeError(f"SUBTRACT may go below 0, which {values.dtype} cannot hold; make metadata signed")
        relaxed = delta is not None or not launch_options.get("barrier", True)
        why = "barrier=False" if delta is None else f"delta={delta!r}"
        taken = [name for name in ("each_round", "idle") if launch_options.get(name) is not None]
        many_active = check_policy(policy, n)
        in_rounds = direction not in (None, "push") or filter not in (None, "online") or rounds is not None or many_active >= 0
        votes = f"votes are the same within a round only, so VOTE takes rounds (got {why}): leave that out, or combine by MIN"
        order = f"delta= orders vertices by metadata, for MIN and MAX (got {self.combine!r}); leave it out"
        dense = "with apply= all vertices gather in every round; leave out direction='push' and start="
        online = (
            f"without rounds (got {why}) vertices push, and are listed online: leave out direction={direction!r}, "
            f"filter={filter!r}, policy={policy!r} and rounds={rounds!r}, of those that are not the default"
        )
        again = (
            f"policy={policy!r} lets vertices send again in each round, with no direction of yours (got {self.combine!r}, "
            f"direction={direction!r}): leave policy and direction out, or combine by MIN or MAX without apply="
        )
        repeats = (
            "unique=True lists a vertex once in a round, and there is no list of one without rounds, or where all pull "
            f"(got {why if relaxed else f'direction={direction!r}, policy={policy!r}'}): leave it out"
        )
        no_list = direction == "pull" or policy == "topology" or self.apply
        deep = (
            f"unroll={unroll!r} lets updates along pushes run ahead of rounds, which votes do not, and there are none where "
            f"all pull (got {self.combine!r}, direction={direction!r}, policy={policy!r}): leave it out"
        )
        lost = (
            "monotone_stores=True may lose an update to a store of another thread, and no worklist says who has to send again; "
            f"it is right where every vertex does, in each round (got {policy=}): pass policy='topology', or leave it out"
        )
        levels = check_int("unroll", unroll, 1, MOST_LEVELS)
        sweeps_wrongly = self.combine.votes or not self.combine.idempotent or self.apply or direction is not None
        rules = (
            (taken, f"a program has functions between rounds of its own (got {', '.join(taken)}); leave it out"),
            (self.apply and relaxed, f"apply= takes the sums of whole rounds (got {why}); leave that out"),
            (self.apply and (direction == "push" or start is not None), dense),
            (self.combine.votes and relaxed, votes),
            (many_active >= 0 and sweeps_wrongly, again),
            (delta is not None and self.combine.name not in ("MIN", "MAX"), order),
            (in_rounds and relaxed, online),
            (check_bool("monotone_stores", monotone_stores) and policy != "topology", lost),
            (check_bool("unique", unique) and (no_list or relaxed), repeats),
            (levels > 1 and ((no_list and not monotone_stores) or self.combine.votes), deep),
        )
        for is_wrong, message in rules:
            if is_wrong:
                raise LaunchConfigError(message)
        first: NDArray[Any] | range = range(n if start is None else 0)
        if start is not None and as_host_array("start", to_host(start)).size:
            first = check_sources(start, n, "start")
        room = min(BINS * check_int("threshold", 64 if threshold is None else threshold, 0, UNLIMITED), UNLIMITED)
        most_listed = {"online": UNLIMITED, "ballot": -1}.get(listed, room)
        limit = UNLIMITED if rounds is None else check_int("rounds", rounds, 1, UNLIMITED)
        width = None if delta is None else check_buckets(BUCKETS, delta)[1]
        sent = sent if many_active < 0 else "auto" if many_active else "pull"
        of_rounds = sent, many_active, most_listed, check_choice("fuse", fuse, FUSES), unique, levels, monotone_stores, limit
        asked = Request(self, graph, values, args, first, start is None, *of_rounds, width, worker, launch_options)
        return (run_dense if self.apply else run_relaxed if relaxed else run_in_rounds)(asked)
