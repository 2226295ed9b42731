"""Tuning of a launch: the call `tune`, and the settings that it searches on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ..compile.best_links import only_best
from ..compile.task import Task
from ..core.devices import Device
from ..core.devices import device as device_of
from ..errors import InvalidArgumentError, UnsupportedTypeError
from ..graph.graph import Graph
from ..graph.graph_arrays import check_graph
from ..support.host_memory import host_memory_for
from ..support.validation import check_float, check_option_names, list_parameters
from .tuning_cache import REMEMBERED, remember, tuned
from .tuning_result import Tuning
from .tuning_search import Progress, Search

__all__ = ["choose_space", "tune"]


def choose_space(device: Device | str | None = None) -> dict[str, tuple[Any, ...]]:
    """Return what `tune` searches on a device unless told otherwise.

    The first value of each option is where it begins: the guidelines of Chen et al. 2022 (Section 7) are a persistent kernel
    against small frontiers, and task and data parallelism in tandem, so large workers that fetch many items, against load
    imbalance. A value of None leaves an option out.
    """
    on = device_of(device)
    switches = {"persistent": (True, False), "barrier": (False, True)}
    if on.kind == "cpu":
        threads = tuple(n for n in (None, 2 * on.processors, on.processors // 2) if n is None or n > 0)
        return {"fetch_size": (128, 32, 512, 8, 2048, 1), "num_blocks": threads, **switches}
    return {
        "worker": ("cta", "warp", "thread"),
        "fetch_size": (128, 64, 256, 32, 512, 8, 1),
        "num_threads": (256, 128, 512, 1024),
        "num_blocks": (None, *(n * on.processors for n in (4, 2, 1))),
        **switches,
    }


@host_memory_for("atos.tune")
@only_best()
def tune(
    run: Callable[..., Any],
    *,
    task: Task | Callable[..., Any] | str | None = None,
    graph: Graph | None = None,
    device: Device | str | None = None,
    budget: float = 60.0,
    space: Mapping[str, Sequence[Any]] | None = None,
    progress: Progress = lambda steps, _description, _total: steps,
    **unknown: NoReturn,  # no value is of this type, so that a type checker refuses every further name
) -> Tuning:
    """Search for the setting in which something runs fastest.

    The search begins at the first value of every option, goes through the settings that differ from there in the fewest
    options, at most 128, and runs each once. Then, three times, the better half (at least 4) stays and runs as often again
    (successive halving; Jamieson and Talwalkar 2016). From the best by the median, single options are changed as long as
    that helps. So the order of the values matters where the space is large or the time short: likely ones first.

    The best of many settings is often no more than the luckiest. So it and the first setting of all, which is to be the usual
    one, run 15 times more, in turns, and of these times the upper quartile of the one has to be below the lower quartile of the
    other; if not, or if the time does not suffice for that, the first setting stays. Of settings that are equal, one in about
    700 is kept by chance.

    Parameters
    ----------
    run : callable
        ``run(**options)`` sets everything up, launches with these options, and returns the `LaunchStats`, or a result that
        has them as `stats`. Their `milliseconds` count, not the time of the call. It may verify what it did, and raise.
    task : Task, callable or str, optional
        Under what to remember the result on disk, for `tuned`. It is not remembered unless given.
    graph : Graph, optional
        The input, if it is a graph: the result is remembered for its shape.
    device : Device or str, optional
        The device of `run`: by default that of the graph, or the best device.
    budget : float
        Seconds that the search may take; a run that has begun is waited for. At least one setting is run.
    space : mapping, optional
        Values of each option; by default those of `worker` ("thread", "warp", "cta"), `fetch_size`, `num_threads`,
        `num_blocks`, `persistent` and `barrier` that make sense on the device, and both orders of the queue, if `run` names a
        parameter `take`. Other options of `run` may be among them. A value of None leaves an option out.
    progress : callable, optional
        ``progress(steps, description, total)`` wraps the steps of a round:
        ``lambda steps, description, total: tqdm(steps, description, total)``.

    Returns
    -------
    Tuning

    Raises
    ------
    InvalidArgumentError
        If the space or the budget is empty.
    LaunchConfigError
        If no setting can run. Those that cannot (`LaunchConfigError`, `QueueFullError`) are skipped otherwise.

    Examples
    --------
    >>> graph = atos.generate.road(30)
    >>> def run(**options):
    ...     return atos.bfs(graph, 0, **options)
    >>> tuning = atos.tune(run, task=atos.bfs, graph=graph, budget=1, space={"barrier": (False, True)})
    >>> atos.tuned(atos.bfs, graph) == tuning.best  # remembered
    True
    """
    check_option_names("tune", unknown, list_parameters(tune))
    if not callable(run):
        raise UnsupportedTypeError(f"tune a function of launch options, such as lambda **options: ... (got {run!r:.80})")
    if space is not None and not isinstance(space, Mapping):
        raise UnsupportedTypeError(f"space must map options to the values to try (got {space!r:.80})")
    if graph is not None:
        check_graph(graph)
    on = graph.device if graph is not None and device is None else device_of(device)
    if not callable(progress):
        raise UnsupportedTypeError(f"progress must be a function of steps, description and total (got {progress!r:.80})")
    options = {}
    if space is None:
        space = {**choose_space(on), **({"take": ("oldest", "newest")} if "take" in list_parameters(run) else {})}
    for name, values in space.items():
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise UnsupportedTypeError(f"space must map {name!r} to a sequence of values to try, such as [{values!r:.80}]")
        options[name] = [value.item() if isinstance(value, np.generic) else value for value in values]
        if not options[name]:
            raise InvalidArgumentError(f"space has no values for {name!r}; leave it out, or give some")
    if not options:
        raise InvalidArgumentError("space is empty; give the values to try of at least one option, or leave it out")
    if not check_float("budget", budget) > 0:
        raise InvalidArgumentError(f"budget must be a number of seconds above 0 (got {budget})")
    if task is not None:  # refuse before the search what could not be remembered after it
        tuned(task, graph, device=on)
        for name, values in options.items():
            for value in values:
                if value is not None and not isinstance(value, REMEMBERED):
                    raise UnsupportedTypeError(
                        f"space has {value!r:.80} for {name!r}; only numbers, words and experiments are remembered for a task"
                    )
    search = Search(run, options, budget, progress)
    best, finished = search.find_best()
    ranked = sorted(search.tried.values(), key=lambda setting: (setting is not best, setting.median))
    table = [setting.make_row(list(options)) for setting in ranked]
    tuning = Tuning(best.options, best.median, table, search.seconds, finished)
    if task is not None:
        remember(task, graph, on, tuning.best)
    return tuning
