"""Programs of slots, of the end of a launch, and of growth."""

from __future__ import annotations

from litmus.form import Program
from litmus.row import Row


def waiter(counted: str, scope: str = "gpu") -> str:
    """Return the waiter that looks for the end: `f` is what has finished, `c` what was counted; equal, the waiter leaves."""
    return f"""
        f = ld.relaxed.{scope} finished         ~ ended load(finished)
        fence.acq_rel.{scope}                   ~ ended fence
        u = ld.relaxed.{scope} {counted}        ~ ended load({counted})
        need f == u
        c = atom.relaxed.{scope}.add {counted}, 0    ~ ended fetch_add({counted})
    """


ROWS = [
    Row(
        ("push", "pop"),
        Program(
            "a task sees what was written before its push",
            {
                "writer, block 0": """
                    st.weak data, 1
                    bar.sync step  ~ work Group::sync#2
                """,
                "pusher, block 0": """
                    bar.sync step  ~ work Group::sync#2
                    fence.acq_rel.gpu           @ flush_pushes fence#1, flush_pushes fence#2, push fence, push_on_stack fence,
                        settle_pushes fence, fence_before_publishing fence_device
                    st.relaxed.gpu slot, 1      ~ publish commit
                """,
                "taker, block 1": """
                    r = ld.relaxed.gpu slot     ~ take_ready is_ready, take is_ready
                    need r == 1
                    fence.acq_rel.gpu           @ take_ready fence_of_items#1, take fence_of_items#1
                    bar.sync batch  ~ work Group::sync#1
                """,
                "task, block 1": """
                    bar.sync batch  ~ work Group::sync#1
                    x = ld.weak data
                """,
            },
            never="x == 0",
        ),
    ),
    Row(
        ("push",),
        Program(
            "a task sees what was written before its push on another GPU",
            {
                "pusher, block 0": """
                    st.weak data, 1
                    fence.acq_rel.sys           @ fence_before_publishing fence
                    st.relaxed.sys slot, 1      ~ publish commit
                """,
                "taker, block 0 of GPU 1": """
                    r = ld.relaxed.sys slot     ~ take_ready is_ready, take is_ready
                    need r == 1
                    fence.acq_rel.sys           ~ take_ready fence_of_items#1, take fence_of_items#1
                    x = ld.weak data
                """,
            },
            never="x == 0",
        ),
        instead={"a fence of one GPU": ("fence.acq_rel.sys", "fence.acq_rel.gpu")},
    ),
    Row(
        ("push, large items", "pop"),
        Program(
            "a ready slot has its item",
            {
                "pusher, block 0": """
                    st.relaxed.gpu item, 7      ~ publish put, publish_all put
                    fence.acq_rel.gpu           @ publish fence#2, publish_all fence
                    st.relaxed.gpu number, 1    ~ publish commit, publish_all commit
                """,
                "taker, block 1": """
                    r = ld.relaxed.gpu number   ~ take_ready is_ready, take is_ready
                    need r == 1
                    fence.acq_rel.gpu           @ take_ready fence_of_items#1, take fence_of_items#1
                    x = ld.relaxed.gpu item     ~ take_ready get#2, take get
                """,
            },
            never="x != 7",
        ),
    ),
    Row(
        ("pop, large items", "reuse of a slot, large items"),
        Program(
            "a slot is not overwritten while it is read",
            {
                "taker, block 0": """
                    x = ld.relaxed.gpu item     ~ take_ready get#2, take get
                    fence.acq_rel.gpu           @ take_ready fence#1, take fence#1
                    st.relaxed.gpu number, 2    ~ take_ready release, take release
                """,
                "pusher, block 1": """
                    r = ld.relaxed.gpu number   ~ publish is_free
                    need r == 2
                    fence.acq_rel.gpu           @ publish fence#1
                    st.relaxed.gpu item, 8      ~ publish put
                """,
            },
            never="x == 8",
            init={"item": 7, "number": 1},
        ),
    ),
    Row(
        ("pop, large items", "reuse of a slot, large items"),
        Program(
            "a slot is not overwritten by another GPU while it is read",
            {
                "taker, block 0 of GPU 1": """
                    x = ld.relaxed.sys item     ~ take_ready get#2, take get
                    fence.acq_rel.sys           @ take_ready fence#1, take fence#1
                    st.relaxed.sys number, 2    ~ take_ready release, take release
                """,
                "pusher, block 0": """
                    r = ld.relaxed.sys number   ~ publish is_free
                    need r == 2
                    fence.acq_rel.sys           @ publish fence#1
                    st.relaxed.sys item, 8      ~ publish put
                """,
            },
            never="x == 8",
            init={"item": 7, "number": 1},
        ),
        instead={"fences of one GPU": ("fence.acq_rel.sys", "fence.acq_rel.gpu")},
    ),
    Row(
        ("reuse of a slot, large items",),
        Program(
            "the next item of a slot is the one that is read",
            {
                "taker, block 0": """
                    x = ld.relaxed.gpu item     ~ take_ready get#2, take get
                    fence.acq_rel.gpu           @ take_ready fence#1, take fence#1
                    st.relaxed.gpu number, 2    ~ take_ready release, take release
                """,
                "pusher, block 1": """
                    r = ld.relaxed.gpu number   ~ publish is_free
                    need r == 2
                    fence.acq_rel.gpu           @ publish fence#1
                    st.relaxed.gpu item, 8      ~ publish put
                    fence.acq_rel.gpu           @ publish fence#2
                    st.relaxed.gpu number, 3    ~ publish commit
                """,
                "next taker, block 2": """
                    s = ld.relaxed.gpu number   ~ take_ready is_ready, take is_ready
                    need s == 3
                    fence.acq_rel.gpu           @ take_ready fence_of_items#1, take fence_of_items#1
                    y = ld.relaxed.gpu item     ~ take_ready get#2, take get
                """,
            },
            never="x == 8 or y == 7",
            init={"item": 7, "number": 1},
        ),
    ),
    Row(
        ("finish", "end"),
        Program(
            "no end before what a finished task has pushed",
            {
                "runner, block 0": """
                    a = atom.relaxed.gpu.add untracked, 1    ~ count fetch_add(untracked)
                    fence.acq_rel.gpu                        @ finish fence
                    b = atom.relaxed.gpu.add finished, 1     ~ finish fetch_add(finished)
                """,
                "waiter, block 1": """
                    f = ld.relaxed.gpu finished              ~ ended load(finished)
                    fence.acq_rel.gpu                        @ ended fence
                    u = ld.relaxed.gpu untracked             ~ ended load(untracked)
                    need f == u
                    c = atom.relaxed.gpu.add untracked, 0    ~ ended fetch_add(untracked)
                """,
            },
            never="f == c",
            init={"untracked": 1},
        ),
    ),
    Row(
        ("finish", "end"),
        Program(
            "no end before what a finished task has pushed, if another one has finished since",
            {
                "runner, block 0": """
                    a = atom.relaxed.gpu.add untracked, 1    ~ count fetch_add(untracked)
                    fence.acq_rel.gpu                        @ finish fence
                    b = atom.relaxed.gpu.add finished, 1     ~ finish fetch_add(finished)
                """,
                "other runner, block 1": """
                    d = atom.relaxed.gpu.add finished, 1     ~ finish fetch_add(finished)
                """,
                "waiter, block 2": """
                    f = ld.relaxed.gpu finished              ~ ended load(finished)
                    fence.acq_rel.gpu                        @ ended fence
                    u = ld.relaxed.gpu untracked             ~ ended load(untracked)
                    need f == u
                    c = atom.relaxed.gpu.add untracked, 0    ~ ended fetch_add(untracked)
                """,
            },
            never="f == c",
            init={"untracked": 2},
        ),
    ),
    Row(
        ("end",),
        Program(
            "no end before what a running task has pushed, and another worker has taken and finished",
            {
                "runner, block 0": """
                    t = atom.relaxed.gpu.add tail, 1    ~ reserve fetch_add(tail)
                    st.relaxed.gpu slot[t], 1           ~ publish commit
                """,
                "taker, block 1": """
                    r = ld.relaxed.gpu slot[1]          ~ take_ready is_ready, take is_ready
                    need r == 1
                    fence.acq_rel.gpu                   ~ take_ready fence_of_items#1, take fence_of_items#1
                    fence.acq_rel.gpu                   ~ finish fence
                    b = atom.relaxed.gpu.add finished, 1    ~ finish fetch_add(finished)
                """,
                "waiter, block 2": waiter("tail"),
            },
            never="f == c",
            init={"tail": 1},
        ),
        instead={
            "the confirmation is a load": ("c = atom.relaxed.gpu.add tail, 0", "c = ld.relaxed.gpu tail"),
            "the slot does not depend on the ticket": ("st.relaxed.gpu slot[t], 1", "st.relaxed.gpu slot[1], 1"),
        },
    ),
    Row(
        ("end of several devices",),
        Program(
            "no end before what a finished task has pushed to another GPU",
            {
                "runner, block 0 of GPU 1": """
                    a = atom.relaxed.sys.add tail0, 1        ~ reserve fetch_add(tail)
                    fence.acq_rel.sys                        @ finish fence
                    b = atom.relaxed.sys.add finished1, 1    ~ finish fetch_add(finished)
                """,
                "waiter, block 0": """
                    e = ld.relaxed.sys finished0             ~ Peers::ended load(finished)
                    f = ld.relaxed.sys finished1             ~ Peers::ended load(finished)
                    fence.acq_rel.sys                        @ Peers::ended fence
                    u = ld.relaxed.sys tail0                 ~ Peers::ended load(tail)
                    v = ld.relaxed.sys tail1                 ~ Peers::ended load(tail)
                    need e + f == u + v
                    c = atom.relaxed.sys.add tail0, 0        ~ Peers::ended fetch_add(tail)
                    d = atom.relaxed.sys.add tail1, 0        ~ Peers::ended fetch_add(tail)
                """,
            },
            never="e + f == c + d",
            init={"tail1": 1},
        ),
        instead={"fences of one GPU": ("fence.acq_rel.sys", "fence.acq_rel.gpu")},
    ),
    Row(
        ("growth",),
        Program(
            "a ring with a first ticket has memory",
            {
                "mapper, host": """
                    m = ld.weak slot[8]
                    need m < 9
                    st.release.sys granted, 1
                """,
                "pusher that grows, block 0": """
                    g = ld.relaxed.gpu granted           ~ reserve_with_space load(growths_granted)
                    need g == 1
                    fence.acq_rel.gpu                    @ grow fence
                    a = atom.relaxed.gpu.add tail, 8     ~ grow fetch_add(tail)
                """,
                "pusher, block 1": """
                    t = atom.relaxed.gpu.add tail, 1     ~ reserve fetch_add(tail)
                    need t == 8
                    st.relaxed.gpu slot[t], 1            ~ publish commit
                """,
            },
            never="m == 1",
        ),
        spare={
            "grow fence": "each step depends on the one before: the addition on the grant that was read, the address of the "
            "slot on the ticket. It stays: PTX has no word for memory that the driver maps, and growths are rare"
        },
        instead={"the addition does not depend on the grant": ("need g == 1", "need 1 == 1")},
    ),
]
