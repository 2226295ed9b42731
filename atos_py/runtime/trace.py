"""Trace of a launch: samples of tasks run, items waiting and idle workers over time, and what is computed from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.array import Array

__all__ = ["TRACE", "compute_throughput", "format_digits", "format_rate", "join_traces", "make_trace", "trace_of"]

TRACE = np.dtype([("milliseconds", np.float64), ("tasks_run", np.int64), ("waiting", np.int64), ("idle", np.float64)])


def make_trace(samples: NDArray[np.uint64], workers: int | None, begin: int | None = None) -> NDArray[Any]:
    """Return the trace that the core's samples make, in the order of time, from `begin` or the first of them on.

    A worker that finds the queue empty claims the one ticket whose item it will wait for. So the tickets claimed beyond those
    that were given to items are the idle among so many `workers`; None where workers do not wait for items.
    """
    samples = samples[np.argsort(samples[:, 0], kind="stable")].astype(np.int64)
    trace = np.zeros(len(samples), TRACE)
    if len(samples):
        trace["milliseconds"] = (samples[:, 0] - (samples[0, 0] if begin is None else begin)) / 1e6
        trace["tasks_run"] = np.maximum.accumulate(samples[:, 1])
        waiting = samples[:, 2] - samples[:, 3]
        trace["waiting"] = np.maximum(waiting, 0)
        trace["idle"] = np.clip(-waiting / workers, 0, 1) if workers else np.nan
    return trace


def join_traces(traces: Sequence[NDArray[Any]], workers: Sequence[int]) -> NDArray[Any]:
    """Return the trace of several devices together: each sample is added to the latest one of every other device.

    Samples are taken by workers that run tasks, so a device without any so far has run nothing.
    """
    total = np.zeros(sum(map(len, traces)), TRACE)
    total["milliseconds"] = np.sort(np.concatenate([trace["milliseconds"] for trace in traces]))
    for trace, its_workers in zip(traces, workers, strict=True):
        latest = np.searchsorted(trace["milliseconds"], total["milliseconds"], "right")
        for name, before in ("tasks_run", 0), ("waiting", 0), ("idle", 1.0):
            values = np.concatenate([[before], trace[name]])[latest]
            total[name] += values * (its_workers / sum(workers)) if name == "idle" else values
    return total


def trace_of(samples: Array, stats: Any, devices: Sequence[Any], waits_for_items: bool) -> NDArray[Any]:
    """Return the trace of a launch whose workers may wait for items, by its samples or by what each device has of them."""
    if devices:
        return join_traces([each.trace for each in devices], [each.num_workers for each in devices])
    return make_trace(samples[: stats.samples], stats.workers if waits_for_items else None)


def compute_throughput(trace: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the middles of about 100 equal spans of time, in ms, and the tasks run in each, in millions a second."""
    end = float(trace["milliseconds"][-1]) if len(trace) else 0.0
    if end <= 0:
        return np.zeros(0), np.zeros(0)
    edges = np.linspace(0, end, min(100, len(trace)) + 1)
    done = np.interp(edges, trace["milliseconds"], trace["tasks_run"])
    return (edges[:-1] + edges[1:]) / 2, np.diff(done) / np.diff(edges) / 1e3


def format_digits(value: float) -> str:
    """Return a number with three digits, zeros at the end among them, or as many as it has before the point."""
    return f"{value:.0f}" if value >= 999.5 else f"{value:#.3g}".rstrip(".")


def format_rate(rate: float) -> str:
    """Return tasks a second with their unit, in millions where they are at least one million."""
    return f"{format_digits(rate / 1e6)} million tasks/s" if rate >= 999_500 else f"{rate:,.0f} tasks/s"
