"""Programs of the host's inbox, of barriers, and of what a launch reports."""

from __future__ import annotations

from litmus.form import Program
from litmus.row import Row
from litmus.rows_of_queue import waiter

ROWS = [
    Row(
        ("inbox, host", "inbox, look"),
        Program(
            "who sees that items were sent sees the items",
            {
                "sender, host": """
                    st.weak item, 7
                    st.release.sys sent, 1           @ tell store_system
                """,
                "first lane, block 0": """
                    s = ld.relaxed.sys sent          ~ begin_delivery load_system(sent)
                    need s == 1
                    fence.acq_rel.sys                @ begin_delivery fence_system
                    bar.sync look  ~ take_from_inbox __syncwarp#1
                """,
                "other lane, block 0": """
                    bar.sync look  ~ take_from_inbox __syncwarp#1
                    fence.acq_rel.gpu                ~ take_from_inbox fence
                    x = ld.relaxed.sys item          ~ deliver load_system
                """,
            },
            never="x != 7",
        ),
        instead={"a fence of one GPU": ("fence.acq_rel.sys", "fence.acq_rel.gpu")},
    ),
    Row(
        ("inbox, push",),
        Program(
            "a task sees what the host has written before it sent the item",
            {
                "sender, host": """
                    st.weak data, 1
                    st.release.sys sent, 1           ~ tell store_system
                """,
                "first lane, block 0": """
                    s = ld.relaxed.sys sent          ~ begin_delivery load_system(sent)
                    need s == 1
                    fence.acq_rel.sys                ~ begin_delivery fence_system
                    bar.sync look  ~ take_from_inbox __syncwarp#1
                """,
                "other lane, block 0": """
                    bar.sync look  ~ take_from_inbox __syncwarp#1
                    fence.acq_rel.gpu                @ take_from_inbox fence
                    st.relaxed.gpu slot, 1           ~ publish commit
                """,
                "taker, block 1": """
                    r = ld.relaxed.gpu slot          ~ take_ready is_ready, take is_ready
                    need r == 1
                    fence.acq_rel.gpu                ~ take_ready fence_of_items#1, take fence_of_items#1
                    x = ld.weak data
                """,
            },
            never="x == 0",
        ),
    ),
    Row(
        ("inbox, places",),
        Program(
            "the host overwrites no item that is read",
            {
                "other lane, block 0": """
                    x = ld.relaxed.sys item          ~ deliver load_system
                    bar.sync moved  ~ take_from_inbox __syncwarp#2
                """,
                "first lane, block 0": """
                    bar.sync moved  ~ take_from_inbox __syncwarp#2
                    fence.acq_rel.sys                @ end_delivery fence_system#1
                    st.relaxed.sys taken, 1          ~ end_delivery store_system(taken)
                """,
                "sender, host": """
                    t = ld.acquire.sys taken         @ atos_inbox::put load_system(taken)
                    need t == 1
                    st.weak item, 8
                """,
            },
            never="x == 8",
            init={"item": 7},
        ),
    ),
    Row(
        ("inbox, next worker", "inbox, look"),
        Program(
            "no end before what came from the host",
            {
                "worker, block 0": """
                    a = atom.relaxed.gpu.add tail, 1       ~ reserve fetch_add(tail)
                    fence.acq_rel.sys                      @ end_delivery fence_system#2
                    st.relaxed.gpu inbox, 2                ~ end_delivery store(inbox)
                """,
                "next worker, block 1": """
                    b = atom.relaxed.gpu.cas inbox, 2, 3   ~ begin_delivery compare_exchange(inbox)
                    need b == 2
                    fence.acq_rel.sys                      ~ begin_delivery fence_system
                    fence.acq_rel.gpu                      ~ finish fence
                    d = atom.relaxed.gpu.add finished, 1   ~ finish fetch_add(finished)
                """,
                "waiter, block 2": waiter("tail"),
            },
            never="f == c",
            init={"tail": 1, "inbox": 1},
        ),
    ),
    Row(
        ("inbox, next worker",),
        Program(
            "the number of taken items only grows",
            {
                "worker, block 0": """
                    st.relaxed.sys taken, 1                ~ end_delivery store_system(taken)
                    fence.acq_rel.sys                      @ end_delivery fence_system#2
                    st.relaxed.gpu inbox, 2                ~ end_delivery store(inbox)
                """,
                "next worker, block 1": """
                    b = atom.relaxed.gpu.cas inbox, 2, 3   ~ begin_delivery compare_exchange(inbox)
                    need b == 2
                    fence.acq_rel.sys                      @ begin_delivery fence_system
                    st.relaxed.sys taken, 2                ~ end_delivery store_system(taken)
                """,
            },
            never="b == 2 and [taken] == 1",
            init={"inbox": 1},
        ),
    ),
    Row(
        ("grid barrier",),
        Program(
            "the last block sees the round, and the others what it decides",
            {
                "thread, block 0": """
                    st.weak data, 1
                    fence.acq_rel.gpu                      @ arrive fence_device
                    a = atom.relaxed.gpu.add arrived, 1    ~ arrive fetch_add(arrived)#1
                    p = ld.relaxed.gpu phase               ~ open_or_wait load(phase)
                    need p == 1
                    fence.acq_rel.gpu                      @ open_or_wait fence_device
                    r = ld.relaxed.gpu end                 ~ look_at_round load(round_end)
                """,
                "last thread, block 1": """
                    b = atom.relaxed.gpu.add arrived, 1    ~ arrive fetch_add(arrived)#1
                    need b == 1
                    fence.acq_rel.gpu                      @ grid_barrier fence
                    x = ld.weak data
                    st.relaxed.gpu end, 5
                    fence.acq_rel.gpu                      @ open_or_wait fence#1
                    st.relaxed.gpu phase, 1                ~ open_or_wait store(phase)
                """,
            },
            never="x == 0 or r != 5",
        ),
    ),
    Row(
        ("grid barrier",),
        Program(
            "a block sees the round of a third one",
            {
                "first, block 0": """
                    st.weak data, 1
                    fence.acq_rel.gpu                      @ arrive fence_device
                    a = atom.relaxed.gpu.add arrived, 1    ~ arrive fetch_add(arrived)#1
                """,
                "last, block 1": """
                    b = atom.relaxed.gpu.add arrived, 1    ~ arrive fetch_add(arrived)#1
                    need b == 2
                    fence.acq_rel.gpu                      ~ grid_barrier fence
                    fence.acq_rel.gpu                      ~ open_or_wait fence#1
                    st.relaxed.gpu phase, 1                ~ open_or_wait store(phase)
                """,
                "second, block 2": """
                    d = atom.relaxed.gpu.add arrived, 1    ~ arrive fetch_add(arrived)#1
                    p = ld.relaxed.gpu phase               ~ open_or_wait load(phase)
                    need p == 1
                    fence.acq_rel.gpu                      @ open_or_wait fence_device
                    x = ld.weak data
                """,
            },
            never="x == 0",
        ),
    ),
    Row(
        ("grid barrier",),
        Program(
            "who takes an arrival back when the barrier is over sees that it has opened",
            {
                "last, block 0": """
                    st.relaxed.gpu phase, 1                ~ open_or_wait store(phase)
                    fence.acq_rel.gpu                      @ open_or_wait fence#2
                    a = atom.relaxed.gpu.add arrived, -10  ~ open_or_wait fetch_add(arrived)
                """,
                "helper, block 1": """
                    b = atom.relaxed.gpu.add arrived, -1   ~ take_back_arrival fetch_add(arrived)#1
                    need b < 10
                    fence.acq_rel.gpu                      @ take_back_arrival fence_device
                    p = ld.relaxed.gpu phase               ~ take_back_arrival load(phase)
                """,
            },
            never="p == 0",
            init={"arrived": 10},
        ),
    ),
    Row(
        ("grid barrier", "between rounds"),
        Program(
            "the last GPU to meet sees the round of the others",
            {
                "thread, block 0 of GPU 1": """
                    st.weak data, 1
                    fence.acq_rel.gpu                      @ arrive fence_device
                    a = atom.relaxed.sys.add arrived, 1    ~ arrive fetch_add(arrived)#1
                """,
                "last thread, block 1 of GPU 1": """
                    b = atom.relaxed.sys.add arrived, 1    ~ arrive fetch_add(arrived)#1
                    need b == 1
                    fence.acq_rel.sys                      @ meet fence
                    m = atom.relaxed.sys.add met, 1        ~ meet fetch_add(met)
                """,
                "last of all, block 0": """
                    n = atom.relaxed.sys.add met, 1        ~ meet fetch_add(met)
                    need n == 1
                    fence.acq_rel.sys                      @ grid_barrier fence
                    x = ld.weak data
                """,
            },
            never="x == 0",
        ),
        instead={"fences of one GPU": ("fence.acq_rel.sys", "fence.acq_rel.gpu")},
    ),
    Row(
        ("grid barrier",),
        Program(
            "blocks of another GPU see what was decided at a meeting",
            {
                "last of all, block 0": """
                    st.relaxed.sys data, 1
                    fence.acq_rel.sys                      @ open_or_wait fence#3
                    st.relaxed.sys meetings, 1             ~ end_meeting store(meetings)
                """,
                "last thread, block 0 of GPU 1": """
                    m = ld.relaxed.sys meetings            ~ has_met load(meetings)
                    need m == 1
                    fence.acq_rel.sys                      @ open_or_wait fence#1
                    st.relaxed.sys phase, 1                ~ open_or_wait store(phase)
                """,
                "thread, block 1 of GPU 1": """
                    p = ld.relaxed.sys phase               ~ open_or_wait load(phase)
                    need p == 1
                    fence.acq_rel.gpu                      @ open_or_wait fence_device
                    x = ld.relaxed.sys data
                """,
            },
            never="x == 0",
        ),
        instead={"fences of one GPU": ("fence.acq_rel.sys", "fence.acq_rel.gpu")},
    ),
    Row(
        ("between rounds",),
        Program(
            "the function between rounds sees a whole round",
            {
                "thread, block 0": """
                    st.weak data, 1
                    d = atom.relaxed.gpu.add finished, 1   ~ finish fetch_add(finished)
                    fence.acq_rel.gpu                      @ arrive fence_device
                    a = atom.relaxed.gpu.add arrived, 1    ~ arrive fetch_add(arrived)#1
                """,
                "last thread, block 1": """
                    b = atom.relaxed.gpu.add arrived, 1    ~ arrive fetch_add(arrived)#1
                    need b == 1
                    fence.acq_rel.gpu                      @ grid_barrier fence, next_round fence
                    n = ld.relaxed.gpu finished
                    bar.sync all  ~ run_each_round __syncthreads_or
                """,
                "function, block 1": """
                    bar.sync all  ~ run_each_round __syncthreads_or
                    x = ld.weak data
                """,
            },
            never="n == 0 or x == 0",
        ),
    ),
    Row(
        ("leave",),
        Program(
            "the last block reports what all have counted",
            {
                "thread, block 0": """
                    a = atom.relaxed.gpu.add ran, 1        ~ leave fetch_add(ran_by)
                    bar.sync left  ~ leave __syncthreads
                """,
                "first thread, block 0": """
                    bar.sync left  ~ leave __syncthreads
                    fence.acq_rel.gpu                      @ leave fence#1
                    g = atom.relaxed.gpu.add gone, 1       ~ leave fetch_add(gone)
                """,
                "last, block 1": """
                    h = atom.relaxed.gpu.add gone, 1       ~ leave fetch_add(gone)
                    need h == 1
                    fence.acq_rel.gpu                      @ leave fence#2
                    n = ld.relaxed.gpu ran                 ~ leave load(ran_by)
                """,
            },
            never="n == 0",
        ),
    ),
    Row(
        ("completion",),
        Program(
            "the host reads a complete record",
            {
                "last block, block 0": """
                    st.relaxed.sys tail, 5
                    fence.acq_rel.sys                      @ leave __threadfence_system
                    st.relaxed.sys sequence, 1
                """,
                "monitor, host": """
                    s = ld.acquire.sys sequence
                    need s == 1
                    x = ld.weak tail
                """,
            },
            never="x != 5",
        ),
        instead={
            "the host reads without order": ("s = ld.acquire.sys sequence", "s = ld.relaxed.sys sequence"),
            "a fence of one GPU": ("fence.acq_rel.sys", "fence.acq_rel.gpu"),
        },
    ),
]
