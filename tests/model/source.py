"""The sources that the model is compiled over: those of csrc, changed in the few places where a model needs something else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

CSRC = Path(__file__).parents[2] / "csrc"


class Change(NamedTuple):
    """A place in a source file, by a regular expression, and what the model has there."""

    file: str
    old: str
    new: str


class ModelError(Exception):
    """The model cannot be made of csrc as it is."""


# Warps of one lane, where a worker could begin anew, chance, the clock, plain stores that all see, limits, the ends of arrays.
# What a worker has concluded it must not conclude again, so the step is forgotten before it waits.
CHANGES = [
    Change("worker.cuh", r"unsigned size\(\) \{ return 32; \}", "unsigned size() { return 1; }"),
    Change("worker.cuh", r"u \* 32 \+ lane_id\(\)", "u"),
    Change("worker.cuh", r"ready\[u\] == kAll \? 32 : __ffs\(~ready\[u\]\) - 1", "ready[u]"),
    Change("worker.cuh", r"more = prefix == 32;", "more = prefix == 1;"),
    Change("worker.cuh", r"k \+= 32\) items", "k += 1) items"),
    Change("worker.cuh", r"k < got; k \+= 32\) \{", "k < got; k += 1) {"),
    Change("worker.cuh", r"stride = \(got \+ 31\) / 32", "stride = got"),
    Change("worker.cuh", r"pushes > kFew && Group::size\(\) > 32", "pushes > kFew && model::bounds.cta"),
    Change("worker.cuh", r"Group::size\(\) > 32 && looks", "model::bounds.cta && looks"),
    Change("worker.cuh", r"Group::size\(\) == 32 && looks", "!model::bounds.cta && looks"),
    Change("worker.cuh", r"hand_on<Warp>\(\);\s*\}", "\\g<0>\n    model::commit();"),
    Change("worker.cuh", r"int verdict = claim\(\);", r"begin_anew(header); \g<0> if (verdict > 0) begin_anew(header);"),
    Change("worker.cuh", r"(int fetch\(\).*?)__nanosleep\(20\);", r"\1begin_anew(header);"),
    Change("worker.cuh", r"const int32_t hungry = .*?: n;", "return uint32_t(model::any(n + 1));"),
    Change("worker.cuh", r'asm volatile\("mov.u64 %0, %globaltimer.*?\);', "now = 0;"),
    Change("worker.cuh", r'asm volatile\("mov.u32 %0, %%ctaid.*?\);', "block = 0;"),
    Change("worker.cuh", r"const bool looks = ", r"\g<0>model::bounds.keep && "),
    Change("worker.cuh", r"const bool may_keep = ", r"\g<0>model::bounds.keep && "),
    Change("worker.cuh", r"static constexpr uint64_t kChunkPart = 16;", "const unsigned &kChunkPart = model::bounds.chunk;"),
    Change("worker.cuh", r"static constexpr int64_t kLong = 4096;", "const unsigned &kLong = model::bounds.long_from;"),
    Change("worker.cuh", r"constexpr int64_t kBacklog = 8;", "const unsigned &kBacklog = model::bounds.backlog;"),
    Change("worker.cuh", r"constexpr unsigned kPatience = 4;", "constexpr unsigned kPatience = 1;"),
    Change("worker.cuh", r"constexpr unsigned kFew = 32;", "const unsigned &kFew = model::bounds.few;"),
    Change("worker.cuh", r"\n  Item<bytes> \*items;", "\n  model::Bounded<Item<bytes>, &model::Bounds::fetch> items;"),
    Change(
        "worker.cuh",
        r"bool may_keep, Item<bytes> \*items",
        "bool may_keep, model::Bounded<Item<bytes>, &model::Bounds::fetch> items",
    ),
    Change("worker.cuh", r"\n  Item<bytes> \*buffer;", "\n  model::Bounded<Item<bytes>, &model::Bounds::buffer> buffer;"),
    Change("worker.cuh", r"\n  int64_t \*lengths;", "\n  model::Bounded<int64_t, &model::Bounds::fetch> lengths;"),
    Change("worker.cuh", r"\n  uint32_t \*scan;", "\n  model::Bounded<uint32_t, &model::Bounds::fetch> scan;"),
    Change("share.cuh", r"kShares = 64;", "kShares = 1;"),
    Change("queue.cuh", r"Ring ring\(unsigned k, uint64_t start\) const \{", r"\g<0> model::uses_ring(k);"),
    Change("queue.cuh", r"spill\[at\] = item;", "store_item(&spill[at], item);"),
    Change("queue.cuh", r"counters->failure = failure;", "store(&counters->failure.failed, failure.failed);"),
]


def copy_changed(directory: Path, changes: Sequence[Change] = ()) -> None:
    """Copy what is in csrc, with these changes and those that every model needs; the atomic operations are the model's own."""
    for file in {*CSRC.glob("*.cuh"), *CSRC.glob("*.h")} - {CSRC / "atomic.cuh"}:
        shutil.copy(file, directory)
    for name, old, new in [*changes, *CHANGES]:
        file = directory / name
        text, times = re.subn(old, new, file.read_text(), flags=re.S)
        if times != 1:
            raise ModelError(f"the model changes {old!r}, which is {times} times in csrc/{name}")
        file.write_text(text)
