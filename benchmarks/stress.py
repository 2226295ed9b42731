"""Launch random task trees in all configurations, from several threads; print a table of what went wrong.

Items are numbers or records, of one kind or two, for one queue or two, with priorities or without, with joins or without. The
oldest go first, or the newest. They wait, or the host sends them while workers run. Functions run when all is idle or between
rounds. Queues grow or fill, launches run out of time or are stopped, and go on, now and then from a file. Every launch is
checked: each task ran exactly once, and joins have added up all nodes. A launch that does not end is reported, and the process
exits.

    python benchmarks/stress.py --launches 10000 --threads 4
    python benchmarks/stress.py --leak 1000000
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import atos_py as atos

RECORD = np.dtype([("node", np.int64), ("check", np.float64)])
CALL = np.dtype([("node", np.int64), ("up", np.int64)])
DTYPES = {"records": RECORD, "joins": CALL}
ROOTS = {"records": np.array([(0, 0.5)], RECORD), "joins": np.array([(0, 0)], CALL)}
COUNTS = ("launches", "tasks", "filled", "stopped", "restored", "wrong", "lost", "hung", "failed")


def children(item, first, seen, aside, halt):  # type: ignore[no-untyped-def]
    """Count a node; the number of its children."""
    v = np.int64(item)
    atos.atomic_add(seen, v, 1)
    return first[v + 1] - first[v], first[v]


def children_of_record(item, first, seen, aside, halt):  # type: ignore[no-untyped-def]
    """As `children`; a record that is not whole counts a thousand times."""
    atos.atomic_add(seen, item.node, 1 if item.check == item.node + 0.5 else 1000)
    return first[item.node + 1] - first[item.node], first[item.node]


def no_priority(child):  # type: ignore[no-untyped-def]
    """The priority of a node in a queue without buckets."""
    return None


def some_priority(child):  # type: ignore[no-untyped-def]
    """Any priority, the same each time."""
    return np.inf if child % 97 == 96 else (child * 7919) % 1000 - 100.5


def stop_at(worker, child, halt):  # type: ignore[no-untyped-def]
    """End the launch at one node, once."""
    if child == halt[0] and atos.atomic_exch(halt, 0, -1) == child:
        worker.stop()


def make_tasks(priority: Callable[..., Any]) -> dict[str, Any]:
    """Return what is launched, by name: tasks that push all nodes of a tree."""

    @atos.task(workload=children)
    def grow(worker, item, i, begin, first, seen, aside, halt):  # type: ignore[no-untyped-def]
        child = begin + i
        stop_at(worker, child, halt)
        if aside.size > 1 and child % 7 == 0:  # there is a function that finds it
            atos.atomic_exch(aside, child, 1)
        else:
            worker.push(child, priority(child))

    @atos.task(workload=children_of_record)
    def grow_record(worker, item, i, begin, first, seen, aside, halt):  # type: ignore[no-untyped-def]
        stop_at(worker, begin + i, halt)
        worker.push((begin + i, begin + i + 0.5), priority(begin + i))

    @atos.task(workload=children, group=8)
    def grow_in_groups(worker, item, i, begin, first, seen, aside, halt):  # type: ignore[no-untyped-def]
        child = begin + i
        if worker.group.sum(1) == worker.group.size and worker.group.rank == 0:
            stop_at(worker, child, halt)
            worker.push(child, priority(child))

    @atos.task
    def settle(worker, item, first, seen, aside, halt):  # type: ignore[no-untyped-def]
        if worker.rank == 0:
            atos.atomic_add(seen, item, 1)
        for child in worker.split(range(first[item], first[item + 1])):
            stop_at(worker, child, halt)
            worker.push(child, priority(child))

    @atos.task(workload=children)
    def grow_or_settle(worker, item, i, begin, first, seen, aside, halt):  # type: ignore[no-untyped-def]
        child = begin + i
        stop_at(worker, child, halt)
        if child % 3 == 0:
            worker.push(child, priority(child), task=settle)
        else:
            worker.push(child, priority(child))

    @atos.task(workload=children)
    def grow_and_send(worker, item, i, begin, first, seen, other, halt):  # type: ignore[no-untyped-def]
        child = begin + i
        stop_at(worker, child, halt)
        worker.push(child, priority(child))
        other.push((child, child + 0.5))

    @atos.task
    def fork(worker, item, first, seen, joins, halt):  # type: ignore[no-untyped-def]
        if worker.rank == 0:
            v = item.node
            atos.atomic_add(seen, v, 1)
            stop_at(worker, v, halt)
            j = worker.open(joins, first[v + 1] - first[v] + 1, parent=item.up)
            for child in range(first[v], first[v + 1]):
                worker.push((child, j), priority(child))
            worker.arrive_at(joins, j, v)

    return {
        "one": grow,
        "records": grow_record,
        "groups": grow_in_groups,
        "two kinds": (grow_or_settle, settle),
        "two queues": grow_and_send,
        "joins": fork,
    }


TASKS = {False: make_tasks(no_priority), True: make_tasks(some_priority)}


def look(worker, first, seen, aside, halt):  # type: ignore[no-untyped-def]
    """Push what was put aside; when no worker has anything to do, or between rounds."""
    for v in worker.split(aside.size):
        if aside[v] == 1 and atos.atomic_exch(aside, v, 0) == 1:
            worker.push(v)


def tree(nodes: int, most: int, hub: int, seed: int) -> np.ndarray:
    """Return where the children of each node begin; node 0 has `hub` of them, the others up to `most`."""
    number = np.random.default_rng(seed).integers(0, most, nodes, endpoint=True)
    number[0] = hub
    first, end = np.empty(nodes + 1, np.int64), 1
    for v in range(nodes):
        first[v] = end
        end = min(nodes, end + max(int(number[v]), int(end == v + 1)))
    first[nodes] = nodes
    return first


SMALL = tree(9, 0, 8, 0)  # a root and its children
TREES = [tree(1, 1, 0, 0), tree(40, 1, 1, 0), tree(300, 3, 3, 1), tree(700, 2, 30, 2), tree(6000, 3, 5000, 3)]


@dataclass
class Progress:
    """What all threads have come to."""

    left: int
    end: float = math.inf  # when no more launches begin, by the monotonic clock
    nodes: float = math.inf  # that a tree has at most
    rows: dict[tuple[str, ...], Counter[str]] = field(default_factory=dict)
    running: dict[int, tuple[float, tuple[str, ...], Any]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> bool:
        """Whether there is another launch to do."""
        with self.lock:
            self.left -= 1
            return self.left >= 0 and time.monotonic() < self.end

    def add(self, row: tuple[str, ...], **counts: int) -> None:
        """Count in a row of the table."""
        with self.lock:
            self.rows.setdefault(row, Counter()).update(counts)


class Places:
    """The trees and counters of one thread on one device; `seen` goes on from launch to launch."""

    def __init__(self, device: atos.Device, file: Path, nodes: float) -> None:
        self.trees = [first for first in TREES if len(first) - 1 <= nodes]
        self.first = [atos.asarray(first, device=device, readonly=True) for first in self.trees]
        self.seen = [atos.zeros(len(first) - 1, dtype=np.int32, device=device) for first in self.trees]
        self.aside = [atos.zeros(len(first) - 1, dtype=np.int32, device=device) for first in self.trees]
        self.nothing = atos.zeros(1, dtype=np.int32, device=device)
        self.joins, self.joined = atos.Joins(1, device=device), 0  # and what has arrived at the root so far
        self.halt = atos.zeros(1, dtype=np.int64, device=device)
        self.times = [0] * len(self.trees)
        self.queues: dict[tuple[Any, ...], atos.Queue] = {}
        self.file = file

    def queue(self, chance: random.Random, device: atos.Device, nodes: int, dtype: np.dtype[Any], order: str) -> atos.Queue:
        """Return an empty queue of some size, which may have served before."""
        size = chance.choice((1, 8, nodes // 4 + 1, nodes, 2 * nodes))
        most = chance.choice((size, 3 * size, None))  # how far it grows
        how: dict[str, Any] = {"take": "newest" if order == "newest first" else "oldest"}
        if order == "priorities":
            how = {"buckets": chance.choice((2, 64)), "delta": chance.choice((1, 90.0, "auto"))}
        key = dtype, size, most, *how.values()
        if len(self.queues) == 24:
            self.queues.clear()
        queue = self.queues.get(key)
        if queue is None or queue.capacity > size:
            queue = atos.Queue(size, dtype=dtype, device=device, max_capacity=most, **how)
            self.queues[key] = queue
        return queue


def feed(run: atos.Run, root: Any, most: int) -> Iterator[int]:
    """Push the root to a launch that runs, and say so each time."""
    for _ in range(most):
        try:
            run.push(root)
        except atos.InvalidArgumentError:  # a task has stopped it
            return
        yield 1


def one(chance: random.Random, device: atos.Device, places: Places, progress: Progress, stream: Any) -> None:
    """Do one random launch, going on as often as the queue fills, the time is over or a task ends it, and check it."""
    worker = chance.choice(("thread", "warp", "cta"))
    ordered = chance.random() < 0.4
    name = chance.choice(("one", *TASKS[ordered]))
    task = TASKS[ordered][name]
    persistent, barrier = chance.choice(tuple(itertools.product((True, False), repeat=2)))
    persistent |= name == "joins"
    started = persistent and not barrier and not ordered and chance.random() < 0.5
    newest = persistent and not barrier and not ordered and chance.random() < 0.5
    order = "priorities" if ordered else "newest first" if newest else ""
    number = chance.randrange(len(places.trees))
    nodes = len(places.trees[number]) - 1
    looks = name == "one" and not started and nodes < 1000 and chance.random() < 0.4
    row = (
        str(device),
        name,
        "started" if started else "persistent" if persistent else "discrete",
        " and ".join([order] * bool(order) + ["barrier"] * barrier) or "relaxed",
    )
    queue = places.queue(chance, device, nodes, DTYPES.get(name, np.dtype(np.uint32)), order)
    root = ROOTS.get(name, [0])
    options: dict[str, Any] = {
        "fetch_size": chance.choice((1, 7, 32, 128)),
        "num_blocks": chance.choice((1, 2, 5, None)),
        "num_threads": chance.choice((32, 128, 256)),
        "stream": stream,
    }
    if looks:
        options["each_round" if barrier and chance.random() < 0.5 else "idle"] = look
    places.halt[0] = chance.randrange(1, 2 * nodes + 1)
    third: Any = places.joins if name == "joins" else places.aside[number] if looks else places.nothing
    saved = {"joins": places.joins} if name == "joins" else {}
    other = None
    if name == "two queues":
        size = chance.choice((1, nodes, 4 * nodes))
        third = other = atos.Queue(size, max_capacity=chance.choice((size, None)), dtype=RECORD, device=device)
    arguments = (places.first[number], places.seen[number], third, places.halt)
    schedule = {"persistent": persistent, "barrier": barrier}
    timeout = None if started else chance.choice((None, None, 0.001))
    times = 1 - started
    if times:
        queue.push(root)
    tasks = filled = stopped = restored = 0
    while True:
        progress.running[threading.get_ident()] = (time.monotonic(), row, options)
        try:
            ended = started and chance.random() < 0.3
            if started:
                started = False
                with queue.start(task, *arguments, worker=worker, **options) as run:
                    for pushed in feed(run, root, chance.randrange(1, 4)):
                        times += pushed
                    if ended:
                        run.stop()
                stats = run.wait()
            else:
                stats = queue.launch(task, *arguments, worker=worker, timeout=timeout, **schedule, **options)
            tasks += stats.tasks_run
            if not stats.stopped and not ended:
                break
            stopped += 1
        except atos.QueueFullError as error:
            filled += 1
            if error.lost:
                progress.add(row, lost=error.lost)
                queue.clear()
                break
            if other is not None and len(other) > other.max_capacity:
                other.max_capacity = 2 * len(other)
            else:
                queue.resize(max(error.pending, queue.capacity + queue.capacity // 2 + 1))
        except atos.LaunchTimeoutError as error:
            if error.stuck:
                raise
            stopped += 1
            timeout = None  # the rest may take its time
        finally:
            progress.running.pop(threading.get_ident(), None)
        if chance.random() < 0.1:
            queue.save(places.file, **saved)
            queue.clear()
            queue = atos.Queue.load(places.file, device=device, **saved)
            restored += 1
    places.times[number] += times
    seen = places.seen[number].to_numpy()
    in_one = not filled and not stopped  # so that its statistics are of all tasks
    wrong = int(np.any(seen != places.times[number]) or (in_one and tasks != nodes * times) or len(queue) != 0)
    if other is not None:
        sent = np.sort(other.peek(), order="node")
        expected = np.repeat(np.arange(1, nodes), times)
        wrong |= not np.array_equal(sent["node"], expected) or not np.array_equal(sent["check"], expected + 0.5)
    if name == "joins":
        places.joined += times * nodes * (nodes - 1) // 2
        wrong |= places.joins.result != places.joined or places.joins.pending != 0
    if wrong:
        places.joins.reset()
        places.joined = 0
        places.seen[number][:] = 0
        places.times[number] = 0
        places.aside[number][:] = 0
        queue.clear()
    counts = {"filled": filled, "stopped": stopped, "restored": restored, "wrong": wrong}
    progress.add(row, launches=1, tasks=nodes * times, **counts)


def stream_of_thread(device: atos.Device) -> Any:
    """Return a stream of this thread's own, where something that makes streams is installed; else the default stream."""
    if device.kind == "cpu":
        return None
    try:
        from cuda.core import Device
    except ImportError:
        return None
    there = Device(device.index)
    there.set_current()
    return there.create_stream()


def work(seed: int, device: atos.Device, progress: Progress) -> None:
    """Do launches until there are enough."""
    chance, stream = random.Random(seed), stream_of_thread(device)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "queue.atos"
        places = Places(device, file, progress.nodes)
        while progress.take():
            try:
                one(chance, device, places, progress, stream if chance.random() < 0.7 else None)
            except Exception as error:
                print(f"{device}: {error!r}", file=sys.stderr, flush=True)
                progress.add((str(device), "", "", ""), failed=1)
                places = Places(device, file, progress.nodes)


def table(progress: Progress) -> str:
    """Return the table in Markdown."""
    lines = [f"| device | tasks | schedule | order | {' | '.join(COUNTS)} |", "| --- " * (4 + len(COUNTS)) + "|"]
    total: Counter[str] = Counter()
    for row, counts in sorted(progress.rows.items()):
        total.update(counts)
        lines.append(f"| {' | '.join(row)} | {' | '.join(f'{counts[name]:,}' for name in COUNTS)} |")
    lines.append(f"| all | | | | {' | '.join(f'{total[name]:,}' for name in COUNTS)} |")
    return "\n".join(lines)


def launch_all(device: atos.Device, progress: Progress, threads: int, seed: int, patience: float) -> bool:
    """Run launches until there are enough; whether all went well. If one hangs, print the table and end the process."""
    workers = [threading.Thread(target=work, args=(seed + k, device, progress), daemon=True) for k in range(threads)]
    for thread in workers:
        thread.start()
    while alive := [thread for thread in workers if thread.is_alive()]:
        alive[0].join(0.2)
        for since, row, options in list(progress.running.values()):
            if time.monotonic() - since > patience:
                progress.add(row, launches=1, hung=1)
                print(table(progress), f"\nhung: {row} {options}", flush=True)
                os._exit(2)  # nothing can end the launch, nor the thread that waits for it
    return not any(counts[name] for counts in progress.rows.values() for name in ("wrong", "lost", "hung", "failed"))


def stress(
    device: atos.Device,
    launches: int,
    threads: int,
    seed: int,
    patience: float,
    seconds: float = math.inf,
    nodes: float = math.inf,
) -> bool:
    """Run the launches, as many as begin within so many seconds, and print the table; whether all went well."""
    begin = time.monotonic()
    progress = Progress(launches, begin + seconds, nodes)
    right = launch_all(device, progress, threads, seed, patience)
    print(table(progress), f"\n\n{threads} threads, {time.monotonic() - begin:.0f} s, seed {seed}", flush=True)
    return right


def resident_bytes() -> int:
    """Memory of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def leak(device: atos.Device, launches: int) -> bool:
    """Print how much memory many small launches take: on the host, and on the device; whether it is next to nothing.

    Now and then another queue takes over, and a thread that launches once and ends.
    """
    first, seen, nothing = (
        atos.asarray(SMALL, device=device, readonly=True),
        atos.zeros(len(SMALL) - 1, dtype=np.int32, device=device),
        atos.zeros(1, dtype=np.int32, device=device),
    )
    halt = atos.full(1, -1, dtype=np.int64, device=device)
    grow = TASKS[False]["one"]
    queue = atos.Queue(100, device=device)
    before: tuple[int, int] | None = None

    def grown() -> tuple[float, float]:
        host, there = before or (resident_bytes(), device.memory[0])
        return (resident_bytes() - host) / 2**20, (there - device.memory[0]) / 2**20

    def launch(number: int) -> None:
        queue.push([0])
        queue.launch_warp(grow, first, seen, nothing, halt, num_blocks=2, fetch_size=4, persistent=number % 4 != 0)

    for number in range(launches):
        if number == launches // 10:
            before = resident_bytes(), device.memory[0]
        if number % 100_000 == 0:
            print("{:,} launches; MB of host and device: {:.2f}, {:.2f}".format(number, *grown()), file=sys.stderr, flush=True)
        if number % 1000 < 999:
            launch(number)
        else:
            thread = threading.Thread(target=launch, args=(number,))
            thread.start()
            thread.join()
            queue = atos.Queue(100, device=device)
    host, there = grown()
    right = bool(np.all(seen.to_numpy() == launches))
    print("| device | launches | host memory grew by | device memory grew by | all right |", "| --- " * 5 + "|", sep="\n")
    # The free memory of a CPU is the machine's, which others use as well.
    on_device = "-" if device.kind == "cpu" else f"{there:.2f} MB"
    print(f"| {device} | {launches:,} | {host:.2f} MB | {on_device} | {right} |")
    return right and host < 16 and (device.kind == "cpu" or there < 16)


def main() -> None:
    """Parse the options; exit with 1 if anything went wrong, with 2 if a launch hung."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", nargs="+", help="all there are, by default")
    parser.add_argument("--launches", type=int, default=2000, help="for each device")
    parser.add_argument("--threads", type=int, default=3, help="that launch side by side, each on queues of its own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=float, default=20, help="seconds after which a launch counts as hung")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which no more launches begin")
    parser.add_argument("--nodes", type=int, default=10_000, help="that a tree has at most")
    parser.add_argument("--leak", type=int, metavar="LAUNCHES", help="look for leaks in so many small launches instead")
    options = parser.parse_args()
    right = True
    for device in map(atos.device, options.device) if options.device else atos.devices():
        if options.leak:
            right &= leak(device, options.leak)
        else:
            how = options.launches, options.threads, options.seed, options.patience, options.seconds, options.nodes
            right &= stress(device, *how)
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
