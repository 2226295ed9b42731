"""Options of a launch: the names and types that callers see, and their check."""

from __future__ import annotations

import inspect
import os
import typing
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ..compile.task import Task
from ..core.devices import Device
from ..core.devices import device as device_of
from ..core.library import lib
from ..errors import InvalidArgumentError, LaunchConfigError, UnsupportedTypeError
from ..support.validation import check_bool, check_choice, check_float, check_int, check_option_names
from .experiment import MAX_FETCH_SIZE, Experiment, check_experiment, take_old_options
from .progress import check_progress

if TYPE_CHECKING:
    from typing_extensions import Unpack
else:
    Unpack = getattr(typing, "Unpack", None)  # which Python 3.10 has not, nor needs: annotations are not evaluated

__all__ = ["LaunchConfig", "LaunchOptions", "Unpack", "check_launch_options"]

_DEFAULT_FETCH_SIZE = {"thread": 1, "warp": 32, "cta": 128}
_DEFAULT_THREADS = 256


class LaunchOptions(TypedDict, total=False):
    """Options of `Queue.launch`, `launch_thread`, `launch_warp` and `launch_cta`; `bfs`, `pagerank` and `color` take them too.

    A type checker that knows them sees a misspelt option, or a value of the wrong type, before the program runs. A function
    of yours that hands options on shows them in the same way: ``**options: Unpack[atos.LaunchOptions]``.

    Attributes
    ----------
    idle : callable, optional
        ``idle(worker, *args)``, run by a worker that finds nothing to do. It may push. The launch then ends when no task
        is unfinished and a whole round of idle calls, one by each worker, begun after that, has pushed nothing.
    each_round : callable, optional
        ``each_round(worker, *args)``, run by one worker after every round of a launch with ``barrier=True``, before the next
        one opens. It may read ``worker.pending``, the number of items that wait for it, push, call
        ``worker.set_mode(integer)``, which every worker reads as ``worker.mode`` from then on, and ``worker.stop()``. The
        launch ends when the round and this function have pushed nothing, and the calls of `idle` after that.
    persistent : bool
        One resident kernel whose workers stay until the end (default), or kernels that the host launches over what the
        queue holds.
    barrier : bool
        Whether what is pushed runs only after all that was there before (bulk-synchronous). Off by default.
    fetch_size : int
        Items that a worker takes at once, at most, up to 4,096; by default 1 for threads, 32 for warps, 128 for CTAs.
    num_blocks : int or 'auto'
        Blocks; by default ('auto') as many as are resident at once, or in a discrete launch as there are items for, if that
        is less. On the CPU the number of threads, of each device; by default one for each core.
    num_threads : int
        Threads of a block, a multiple of 32 up to 1,024; by default 256. Not for the CPU, where a worker has one.
    shared_memory : int
        Bytes of scratch for each worker, up to what a multiprocessor has, and 1 MiB; needed by tasks that take
        ``worker.scratch(dtype)`` without a number of elements.
    streams : int, optional
        Kernels of a discrete launch without barriers that run side by side on a GPU, from 1 to 32; by default 4.
    stream : int or object, optional
        A stream of the GPU as an address or as an object of CuPy, PyTorch or anything with ``__cuda_stream__``; by default
        the current stream of CuPy or PyTorch if arguments are arrays of theirs, otherwise the legacy default stream. The
        launch runs in the order of that stream, and has ended on return.
    device : Device or str, optional
        Where to run; must be the queue's device, which is the default.
    timeout : float, optional
        Seconds after which the launch is stopped. Workers finish the items that they have in hand and leave; what is
        unfinished is in the queue. If the host is held up then, workers stop by their own clock 0.1 s later. By default
        there is no limit.
    trace : float, optional
        Microseconds between samples of the run, for `LaunchStats.trace`; by default none are taken.
    progress : bool or callable
        True shows a bar on stderr while the launch runs, tqdm's if that is installed. A function is called instead, some
        50 times a second, in the thread of the launch, as ``progress(tasks_run, rate, waiting)``: the tasks that this
        launch has run, tasks a second since the call before, and items in the queue that nobody has taken. It may use arrays,
        but no queues, and what it raises stops the launch. By default nothing is shown.
    debug : bool or 'races', optional
        Whether to check every index, division and cast to an integer type in the task, and its asserts; slower. "races" also
        looks for accesses that nothing orders, on a CPU device and in one thread, and raises `RaceError` with what it finds. By
        default what the environment variable ``ATOS_DEBUG`` says: 1, 0 or races.
    tier : {"auto", "best"}
        Which kernel a GPU runs. "auto": the first launch of a task runs one that is there at once, while the best one is linked
        in the background; a later launch runs that. "best": the launch waits for the best one, as for measuring; the
        environment variable ``ATOS_TIER`` set to best says so for all launches. `LaunchStats.tier` tells which one ran.
    experiment : Experiment, optional
        What workers keep, share, gather and count, for measurements of what that is worth; by default what is best as a rule.

    Examples
    --------
    >>> @atos.task
    ... def mark(worker, v, seen):
    ...     seen[v] = 1
    >>> options: atos.LaunchOptions = {"fetch_size": 32, "barrier": True}
    >>> seen, queue = atos.zeros(4, dtype=np.int32), atos.Queue(capacity=10)
    >>> queue.push([0, 2])
    >>> print(queue.launch_warp(mark, seen, **options).schedule)
    persistent, barrier
    """

    idle: Callable[..., Any] | None
    each_round: Callable[..., Any] | None
    persistent: bool
    barrier: bool
    fetch_size: int | None
    num_blocks: int | Literal["auto"] | None
    num_threads: int | None
    shared_memory: int
    streams: int | None
    stream: Any
    device: Device | str | None
    timeout: float | None
    trace: float | None
    progress: bool | Callable[[int, float, int], Any]
    debug: bool | Literal["races"] | None
    tier: Literal["auto", "best"]
    experiment: Experiment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchConfig:
    """The checked options of one launch, with the default of each that was not given.

    Attributes
    ----------
    worker : str
        "thread", "warp" or "cta".
    num_blocks : int
        0 for as many as are resident at once.
    num_threads : int
        1 on the CPU.
    streams : int
        0 for the core's choice.
    stream : object
        As it was given: the default depends on the arguments.
    sample_interval : int
        Nanoseconds between samples of a trace; 0 for no trace.

    The others are those of `LaunchOptions`, but for `timeout`, in which launches of one plan may differ.
    """

    worker: str
    idle: Callable[..., Any] | None
    each_round: Callable[..., Any] | None = field(repr=False)  # whose text has an address, in which processes differ
    persistent: bool
    barrier: bool
    fetch_size: int
    num_blocks: int
    num_threads: int
    shared_memory: int
    streams: int
    stream: Any
    sample_interval: int
    progress: bool | Callable[[int, float, int], Any]
    debug: bool | str
    tier: str
    experiment: Experiment

    @classmethod
    def from_options(cls, worker: str, device: Device, options: LaunchOptions, task: Any = None) -> LaunchConfig:
        """Check what a caller gave for a launch of `worker` on `device`.

        `task` is what is to be launched, for the message about a name that is no option.

        Raises
        ------
        UnsupportedTypeError
            If there is no such option, or a value is of a wrong type.
        InvalidArgumentError
            If a value is out of range.
        LaunchConfigError
            If the launch is to run on another device, or a block would have a part of a warp.
        """
        _check_names(options, task)
        where, idle = options.get("device"), options.get("idle")
        fetch_size, blocks, threads = options.get("fetch_size"), options.get("num_blocks"), options.get("num_threads")
        trace, streams = options.get("trace"), options.get("streams")
        if where is not None and device_of(where) != device:
            raise LaunchConfigError(f"the queue is on {device} and cannot run on {where}; make a queue there")
        on_cpu = 1 if worker == "thread" else device.threads_per_worker
        debug = _check_debug(options.get("debug"), device, on_cpu)
        num_threads = _DEFAULT_THREADS if threads is None else check_int("num_threads", threads, 1, 1024)
        if num_threads % 32:
            raise LaunchConfigError(f"num_threads must be a multiple of 32, at most 1024 (got {num_threads})")
        each_round = options.get("each_round")
        for name, function in (("idle", idle), ("each_round", each_round)):
            if function is not None and not (callable(function) and isinstance(function, Hashable)):
                raise UnsupportedTypeError(f"{name} must be a function of the worker and the arguments (got {function!r:.80})")
        if trace is not None and not check_float("trace", trace) > 0:
            raise InvalidArgumentError(f"trace must be a number of microseconds above 0 (got {trace})")
        return cls(
            worker=worker,
            idle=idle,
            each_round=each_round,
            persistent=check_bool("persistent", options.get("persistent", True)),
            barrier=check_bool("barrier", options.get("barrier", False)),
            fetch_size=(
                _DEFAULT_FETCH_SIZE[worker] if fetch_size is None else check_int("fetch_size", fetch_size, 1, MAX_FETCH_SIZE)
            ),
            num_blocks=_check_blocks(blocks, debug),
            num_threads=num_threads if device.kind == "cuda" else on_cpu,
            shared_memory=check_int("shared_memory", options.get("shared_memory", 0), 0, 1 << 20),
            streams=0 if streams is None else check_int("streams", streams, 1, lib.ATOS_MAX_STREAMS),
            stream=options.get("stream"),
            sample_interval=0 if trace is None else min(max(round(trace * 1e3), 1), 2**32 - 1),
            progress=check_progress(options.get("progress", False)),
            debug=debug,
            tier=check_choice("tier", options.get("tier", "auto"), ("auto", "best")),
            experiment=check_experiment(options.get("experiment")),
        )


def check_launch_options(what: str, options: Mapping[str, Any], own: Collection[str]) -> None:
    """Raise at the first option of a call that launches do not have, nor `what` has for its `own`.

    Old options are replaced first, in the dictionary itself (`take_old_options`).
    """
    take_old_options(options)
    check_option_names(what, options, (*own, *LaunchOptions.__annotations__))


def _check_names(options: Iterable[str], task: Any) -> None:
    """Raise at the first name that no option of a launch has."""
    for name in options:
        if name in LaunchOptions.__annotations__:
            continue
        if name == "worker":
            raise UnsupportedTypeError(
                "launch(task, worker=...) has the option 'worker'; other launches have their kind of workers"
            )
        for each in task if isinstance(task, (tuple, list)) else [task]:
            if isinstance(each, Task) and name in inspect.signature(each.body).parameters:
                raise UnsupportedTypeError(
                    f"a launch has no option {name!r}, but the task {each.name} has a parameter of this name: its arguments are"
                    f" given by position, as in launch({each.name}, {name})"
                )
    note = "; arguments of the task are given by position, without names"
    check_option_names("a launch", options, LaunchOptions.__annotations__, note)


def _check_blocks(blocks: Any, debug: bool | str) -> int:
    """Return the number of blocks, 0 for as many as are resident at once; one where a launch looks for races."""
    is_auto = blocks is None or (isinstance(blocks, str) and blocks == "auto")
    number = 0 if is_auto else check_int("num_blocks", blocks, 1, 2**31 - 1)
    return 1 if debug == "races" else number


def _check_debug(debug: Any, device: Device, threads: int) -> bool | str:
    """Return what a launch checks, by default what the environment says; refuse to look for races on a GPU.

    A launch on a CPU by workers of several `threads` always checks.
    """
    found = _read_debug_default() if debug is None else debug if isinstance(debug, str) else check_bool("debug", debug)
    if isinstance(found, str):
        check_choice("debug", found, ("races",))
        if device.kind != "cpu":
            raise LaunchConfigError(
                f'debug="races" runs on CPU devices only, and the queue is on {device}; make the queue and the arrays with'
                ' device="cpu", or launch with debug=True, which has the other checks'
            )
        if threads > 1:
            raise LaunchConfigError(
                f'debug="races" follows workers of one thread, and those of this device have {threads}; call launch_thread, or'
                " make the queue on a device without threads_per_worker"
            )
    return found or threads > 1


def _read_debug_default() -> bool | str:
    """Return what launches check if they do not say, by the environment."""
    value = os.environ.get("ATOS_DEBUG", "")
    if value not in ("", "0", "1", "races"):
        raise InvalidArgumentError(f"the environment variable ATOS_DEBUG is 0 or 1, or races (got {value!r})")
    return value == "1" if value in ("", "0", "1") else value
