"""Launch random task trees over several devices, of one process or of several; print a table of what went wrong.

Trees are numbered at random, so that tasks push from any device to any other. Items are numbers or records, for one task or for
two, or have priorities. With barriers some are left to a function between rounds. Queues grow or fill, launches run out of time
or are stopped by a task, and go on. Every launch is checked: each task ran exactly once. One that does not end is reported, and
the processes are ended.

    python benchmarks/stress_devices.py --launches 10000 --devices 8
    python benchmarks/stress_devices.py --launches 10000 --device cuda
    python benchmarks/stress_devices.py --launches 10000 --processes 4
    python benchmarks/stress_devices.py --launches 1000 --processes 2 --device cuda
    python benchmarks/stress_devices.py --kill 25 --processes 4

With --device cuda they are the GPUs that there are, each of which may count as several devices of one process; of several
processes each has a GPU. The last one kills one of 2 to 4 processes at a random moment, in a launch or between two, each time.
The others have to raise an error, and print how long that took.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from typing import Any

import numpy as np

import atos_py as atos

RECORD = np.dtype([("node", np.uint32), ("parent", np.uint32), ("check", np.float64)])
COUNTS = ("launches", "tasks", "grown", "filled", "stopped", "wrong", "lost")


@atos.task
def grow(worker, v, number, node, first, seen, halt):  # type: ignore[no-untyped-def]
    """Count a node, and push its children."""
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)
        if v == halt:
            worker.stop()
    for child in worker.split(range(first[node[v]], first[node[v] + 1])):
        worker.push(number[child])


@atos.task
def grow_record(worker, item, number, node, first, seen, halt):  # type: ignore[no-untyped-def]
    """As `grow`; a record that is not whole counts a thousand times."""
    v = item.node
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1 if item.check == v + 0.5 else 1000)
        if v == halt:
            worker.stop()
    for child in worker.split(range(first[node[v]], first[node[v] + 1])):
        worker.push((number[child], v, number[child] + 0.5))


@atos.task
def grow_ordered(worker, v, number, node, first, seen, halt):  # type: ignore[no-untyped-def]
    """As `grow`, with priorities that have no order in the tree, or many children of one priority."""
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1)
        if v == halt:
            worker.stop()
    for child in worker.split(range(first[node[v]], first[node[v] + 1])):
        worker.push(number[child], priority=number[child] % 97 if node.size % 2 == 0 else child // 100 - 20)


def grow_kind(worker, v, number, node, first, seen, halt, kind):  # type: ignore[no-untyped-def]
    """As `grow`, for nodes that leave `kind`; others count a thousand times."""
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1 if node[v] % 2 == kind else 1000)
        if v == halt:
            worker.stop()
    for child in worker.split(range(first[node[v]], first[node[v] + 1])):
        if child % 2 == 0:
            worker.push(number[child], task=grow_even)
        else:
            worker.push(number[child], task=grow_odd)


@atos.task
def grow_even(worker, v, number, node, first, seen, halt):  # type: ignore[no-untyped-def]
    """Count a node of even number, and push its children."""
    grow_kind(worker, v, number, node, first, seen, halt, 0)


@atos.task
def grow_odd(worker, v, number, node, first, seen, halt):  # type: ignore[no-untyped-def]
    """Count a node of odd number, and push its children."""
    grow_kind(worker, v, number, node, first, seen, halt, 1)


@atos.task
def grow_aside(worker, v, number, node, first, seen, halt, later):  # type: ignore[no-untyped-def]
    """As `grow`, but each third child is left to the function between rounds, which tells the number of the round."""
    if worker.rank == 0:
        atos.atomic_add(seen, v, 1 if worker.mode == worker.round else 1000)
        if v == halt:
            worker.stop()
    for child in worker.split(range(first[node[v]], first[node[v] + 1])):
        if child % 3 == 0:
            later[number[child]] = 1
        else:
            worker.push(number[child])


def push_later(worker, number, node, first, seen, halt, later):  # type: ignore[no-untyped-def]
    """Push the nodes that were left, and set the mode to the number of the next round."""
    worker.set_mode(worker.round + 1)
    for v in worker.split(node.size):
        if later[v] == 1:
            later[v] = 0
            worker.push(v)


@atos.task
def pass_on(worker, v, processes):  # type: ignore[no-untyped-def]
    """Push for ever, to one process after the other."""
    worker.push((v + 1) % processes)


def tree(chance: random.Random, most_nodes: int) -> np.ndarray:
    """Return where the children of each node begin."""
    (size, children), first = chance.choice(((1, 1), (50, 2), (700, 3), (5000, 1), (5000, 9))), chance.choice((0, 300))
    nodes = min(size, most_nodes)
    number = np.random.default_rng(chance.getrandbits(32)).integers(0, children, nodes, endpoint=True)
    number[0] = max(first, 1)
    ends = np.minimum(1 + np.cumsum(np.maximum(number, 1)), nodes)
    return np.concatenate([[1], ends]).astype(np.uint32)


def some_devices(chance: random.Random, most: int, kind: str) -> list[str]:
    """Return names of devices: CPU devices, or GPUs, of which each comes up to four times."""
    if kind == "cpu":
        return [f"cpu:{k}" for k in range(chance.randrange(2, most + 1))]
    gpus = [str(device) for device in atos.devices() if device.kind == "cuda"]
    times = chance.choice((1, 1, 1, 2, 4)) if len(gpus) > 1 else chance.choice((2, 3, 4))
    return chance.sample(gpus * times, len(gpus) * times)[: max(most, 2)]


def one(
    chance: random.Random, most: int, most_nodes: int, kind: str, group: Any, counts: Counter[str], alive: list[float]
) -> None:
    """Run one tree several times, going on as often as the queue fills, the time is over or a task ends it, and check it.

    `alive` gets the time of each launch.
    """
    first = tree(chance, most_nodes)
    nodes = len(first) - 1
    graph = atos.Graph.from_edges([], [], num_vertices=nodes, device="cpu")
    parts = graph.partition(None if group else some_devices(chance, most, kind))
    number = np.random.default_rng(chance.getrandbits(32)).permutation(nodes).astype(np.uint32)
    node = np.argsort(number).astype(np.uint32)
    own = group.device if group else parts.devices[0]
    arrays = [atos.asarray(array, device=own, readonly=True) for array in (number, node, first)]
    seen = atos.full(nodes, 0, dtype=np.int32, partition=parts)
    records, capacity = chance.random() < 0.4, chance.choice((1, 30, 2 * nodes))
    tasks = grow_record if records else chance.choice((grow, (grow_odd, grow_even), grow_aside, grow_ordered))
    arguments: list[Any] = [*arrays, seen, nodes]
    if tasks is grow_aside:
        arguments.append(atos.full(nodes, 0, dtype=np.int32, partition=parts))
    limit = chance.choice((None, capacity, capacity + nodes))
    ordered: dict[str, Any] = {}
    if tasks is grow_ordered:
        ordered = {"buckets": chance.choice((2, 16, 64)), "delta": chance.choice(("auto", 1, 40))}
    queue = atos.Queue(capacity, max_capacity=limit, dtype=RECORD if records else np.uint32, owner=parts, **ordered)
    for turn in range(1, 4):
        root = np.array([(number[0], 0, number[0] + 0.5)], RECORD) if records else number[:1]
        timeout, halt = chance.choice((60.0, 60.0, 0.001)), chance.choice((nodes, nodes, chance.randrange(nodes)))
        options = {
            "barrier": tasks is grow_aside or chance.random() < 0.5,
            "fetch_size": chance.choice((1, 7, 64)),
            "num_blocks": chance.choice((1, 2) if kind == "cpu" else (1, 2, 20, None)),
        }
        worker = "thread" if kind == "cpu" else chance.choice(("thread", "warp", "cta"))
        if group is None:
            options |= chance.choice(({}, {}, {"trace": 10}, {"progress": lambda *now: None}))
        if tasks is grow_aside:
            options["each_round"] = push_later
        arguments[4] = halt
        queue.push(root, task=grow_even if isinstance(tasks, tuple) else None)
        counts["launches"] += 1
        while True:
            before = seen.to_numpy().sum() if group is None else 0
            alive[0] = time.monotonic()
            try:
                stats = queue.launch(tasks, *arguments, worker=worker, timeout=timeout, **options)
                counts["grown"] += stats.grown
                counts["wrong"] += sum(stats.tasks_run_by.values()) != stats.tasks_run
                if not stats.stopped:
                    counts["wrong"] += group is None and stats.tasks_run != seen.to_numpy().sum() - before
                    break
                counts["stopped"] += 1
                arguments[4] = nodes
            except atos.LaunchTimeoutError as error:
                if error.stuck:
                    raise
                counts["stopped"] += 1
                timeout = 60.0
            except atos.QueueFullError as error:
                counts["filled"] += 1
                counts["lost"] += error.lost
                queue.resize(max(len(queue), 2 * queue.capacity))
        counts["tasks"] += nodes
        counts["wrong"] += int((seen.to_numpy() != turn).any()) + (len(queue) != 0)
        if group is not None:
            group.barrier()  # before others write to it again


def work(
    launches: int,
    most: int,
    most_nodes: int,
    kind: str,
    seed: int,
    patience: float,
    seconds: float = math.inf,
    group: Any = None,
) -> Counter[str]:
    """Do launches until there are enough, or the time is over; end the process where one hangs."""
    chance, counts, begin = random.Random(seed), Counter[str](), time.monotonic()
    alive = [time.monotonic()]

    def watch() -> None:
        while time.monotonic() - alive[0] < patience:
            time.sleep(0.2)
        print(f"hung after {counts['launches']:,} launches, seed {seed}", flush=True)
        os._exit(2)

    threading.Thread(target=watch, daemon=True).start()
    while counts["launches"] < launches and time.monotonic() - begin < seconds:
        one(chance, most, most_nodes, kind, group, counts, alive)
    counts["seconds"] = round(time.monotonic() - begin)
    return counts


def die(seed: int, group: Any) -> None:
    """Launch until a process is killed, which is this one or another; print the seconds until the error."""
    chance = random.Random(seed)
    victim, seconds = chance.randrange(group.world_size), 0.5 * chance.random()
    graph = atos.Graph.from_edges([], [], num_vertices=group.world_size, device="cpu")
    queue = atos.Queue(chance.choice((1, 30)), owner=graph.partition())
    queue.push(range(group.world_size))
    begin, barrier = 0.0, chance.random() < 0.5
    try:
        while True:
            with contextlib.suppress(atos.LaunchTimeoutError):
                queue.launch_thread(pass_on, group.world_size, barrier=barrier, timeout=chance.choice((0.02, 5)))
            if begin == 0.0:  # it is compiled
                group.barrier()
                begin = time.monotonic()
                if victim == group.rank:
                    threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGKILL]).start()
    except atos.DistributedError:
        print(max(time.monotonic() - begin - seconds, 0.0))


def kill(times: int, most: int, kind: str, seed: int, patience: float) -> bool:
    """Start processes of which one is killed; whether all others have raised the error, and soon."""
    worst, wrong = 0.0, 0
    for turn in range(seed, seed + times):
        size, job = random.Random(turn).randrange(2, most + 1), uuid.uuid4().hex
        command = [sys.executable, __file__, "--kill", "1", "--seed", str(turn), "--processes", str(size)]
        command += ["--device", kind, "--job", job]
        ranks = [subprocess.Popen([*command, "--rank", str(k)], stdout=subprocess.PIPE, text=True) for k in range(size)]
        try:
            said = [process.communicate(timeout=patience)[0] for process in ranks]
            wrong += sorted(process.returncode for process in ranks) != [-signal.SIGKILL, *[0] * (size - 1)]
            worst = max(worst, *[float(each) for each in said if each])
        except subprocess.TimeoutExpired:
            wrong += 1
            for process in ranks:
                process.kill()
    print(f"{times} times a process was killed: {wrong} wrong, at most {worst:.2f} s until all others knew", flush=True)
    return not wrong


def show(where: str, counts: Counter[str]) -> bool:
    """Print the table; whether all went well."""
    print(f"| devices | {' | '.join(COUNTS)} |\n{'| --- ' * (len(COUNTS) + 1)}|")
    print(f"| {where} | {' | '.join(f'{counts[name]:,}' for name in COUNTS)} |\n\n{counts['seconds']} s", flush=True)
    return not counts["wrong"] and not counts["lost"]


def main() -> None:
    """Parse the options; exit with 1 if anything went wrong, with 2 if a launch hung."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=8, help="of one process: any number from 2 to this")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what kind of devices")
    parser.add_argument("--processes", type=int, help="processes of one device each, in place of devices of one process")
    parser.add_argument("--kill", type=int, metavar="TIMES", help="kill processes instead, of 2 to --processes")
    parser.add_argument("--nodes", type=int, default=5000, help="of a tree, at most: chains of 5,000 take most of the time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="end after so long, of one process, with the launches done by then")
    parser.add_argument("--patience", type=float, default=120, help="seconds after which a launch counts as hung")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kill:
        options.processes = options.processes or 4
    if options.processes is None:
        given = options.launches, options.devices, options.nodes, options.device, options.seed, options.patience
        counts = work(*given, options.seconds or math.inf)
        sys.exit(not show(f"2 to {options.devices} {options.device} in one process", counts))
    if options.rank is None and options.kill:
        sys.exit(not kill(options.kill, options.processes, options.device, options.seed, options.patience))
    if options.rank is None:
        job = uuid.uuid4().hex
        ranks = [
            subprocess.Popen([sys.executable, *sys.argv, "--rank", str(k), "--job", job]) for k in range(options.processes)
        ]
        sys.exit(max(abs(process.wait()) for process in ranks))
    group = atos.distributed.init(options.rank, options.processes, device=options.device, job=options.job)
    if options.kill:
        die(options.seed, group)
        return
    given = options.launches, options.devices, options.nodes, options.device, options.seed, options.patience
    counts = work(*given, group=group)
    told = group.gather(b"%d" % (counts["wrong"] + counts["lost"]))
    right = show(f"{options.processes} processes, {options.device}", counts) if group.rank == 0 else True
    sys.exit(not right or any(int(each) for each in told))


if __name__ == "__main__":
    main()
