"""Programs of split items and of far items."""

from __future__ import annotations

from litmus.form import Program
from litmus.row import Row
from litmus.rows_of_queue import waiter

ROWS = [
    Row(
        ("split", "claim a chunk"),
        Program(
            "a claim sees the item, and the bit is clear when no chunk is left",
            {
                "owner, block 0": """
                    st.relaxed.gpu item, 7           ~ split_item store(split.item)
                    red.relaxed.gpu.or open, 1       ~ split_item set_bit
                    fence.acq_rel.gpu                @ split_item fence#2
                    st.relaxed.gpu chunks, 1         ~ split_item store(split.chunks)
                """,
                "helper, block 1": """
                    k = atom.relaxed.gpu.add chunks, -1    ~ claim_chunk fetch_add(split.chunks)
                    need k > 0
                    fence.acq_rel.gpu                @ claim_chunk fence
                    red.relaxed.gpu.and open, 0      ~ claim_chunk clear_bit
                    x = ld.relaxed.gpu item          ~ claim_chunk load(split.item)
                """,
            },
            never="x != 7 or k > 0 and [open] == 1",
        ),
    ),
    Row(
        ("split",),
        Program(
            "a split item is counted before its chunks can finish",
            {
                "owner, block 0": """
                    a = atom.relaxed.gpu.add untracked, 1    ~ split_item fetch_add(untracked)
                    fence.acq_rel.gpu                @ split_item fence#2
                    st.relaxed.gpu chunks, 1         ~ split_item store(split.chunks)
                """,
                "helper, block 1": """
                    k = atom.relaxed.gpu.add chunks, -1    ~ claim_chunk fetch_add(split.chunks)
                    need k > 0
                    fence.acq_rel.gpu                ~ claim_chunk fence
                    fence.acq_rel.gpu                ~ finish fence
                    b = atom.relaxed.gpu.add finished, 1    ~ finish fetch_add(finished)
                """,
                "waiter, block 2": waiter("untracked"),
            },
            never="f == c",
            init={"untracked": 1},
        ),
    ),
    Row(
        ("finish a chunk",),
        Program(
            "what a chunk has pushed is counted before the item finishes",
            {
                "helper, block 0": """
                    a = atom.relaxed.gpu.add tail, 1     ~ reserve fetch_add(tail)
                    fence.acq_rel.gpu                    @ finish_chunk fence#1
                    l = atom.relaxed.gpu.add left, -1    ~ finish_chunk fetch_add(left)
                """,
                "last, block 1": """
                    m = atom.relaxed.gpu.add left, -1    ~ finish_chunk fetch_add(left)
                    need m == 1
                    fence.acq_rel.gpu                    ~ finish_chunk fence#2
                    fence.acq_rel.gpu                    ~ finish fence
                    b = atom.relaxed.gpu.add finished, 1    ~ finish fetch_add(finished)
                """,
                "waiter, block 2": waiter("tail"),
            },
            never="f == c",
            init={"left": 2, "tail": 1},
        ),
    ),
    Row(
        ("finish a chunk", "last chunk", "reuse of a place"),
        Program(
            "a place is not overwritten while a chunk reads it",
            {
                "helper, block 0": """
                    x = ld.relaxed.gpu item              ~ claim_chunk load(split.item)
                    fence.acq_rel.gpu                    @ finish_chunk fence#1
                    l = atom.relaxed.gpu.add left, -1    ~ finish_chunk fetch_add(left)
                """,
                "last, block 1": """
                    m = atom.relaxed.gpu.add left, -1    ~ finish_chunk fetch_add(left)
                    need m == 1
                    fence.acq_rel.gpu                    @ finish_chunk fence#2
                    st.relaxed.gpu busy, 0               ~ finish_chunk store(busy)
                """,
                "next owner, block 2": """
                    b = atom.relaxed.gpu.cas busy, 0, 1    ~ split_item compare_exchange(busy)
                    need b == 0
                    fence.acq_rel.gpu                    @ split_item fence#1
                    st.relaxed.gpu item, 8               ~ split_item store(split.item)
                """,
            },
            never="x == 8",
            init={"item": 7, "left": 2, "busy": 1},
        ),
    ),
    Row(
        ("far push", "take a far item"),
        Program(
            "a task sees what was written before its far push",
            {
                "pusher, block 0": """
                    st.weak data, 1
                    fence.acq_rel.gpu            @ FarItems::put fence
                    st.relaxed.gpu entry, 1      ~ FarItem::put store_pair
                """,
                "taker, block 1": """
                    r = ld.relaxed.gpu entry     ~ FarItem::take load_pair
                    need r == 1
                    fence.acq_rel.gpu            @ take_far_chunk fence, run_far fence
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
        ("far push",),
        Program(
            "a far push beyond the buffer has two fences",
            {
                "pusher, block 0": """
                    st.weak data, 1
                    fence.acq_rel.gpu            @ push_with_level fence
                    a = atom.relaxed.gpu.add untracked, 1    ~ count fetch_add(untracked)
                    fence.acq_rel.gpu            ~ FarItems::put fence
                    st.relaxed.gpu entry, 1      ~ FarItem::put store_pair
                """,
                "taker, block 1": """
                    r = ld.relaxed.gpu entry     ~ FarItem::take load_pair
                    need r == 1
                    fence.acq_rel.gpu            ~ take_far_chunk fence, run_far fence
                    x = ld.weak data
                """,
            },
            never="x == 0",
        ),
        spare={
            "push_with_level fence": "the fence of `FarItems::put` comes behind it, before the item is stored. It could go; "
            "few pushes come there"
        },
    ),
    Row(
        ("far push",),
        Program(
            "a far item is counted before it can finish",
            {
                "pusher, block 0": """
                    a = atom.relaxed.gpu.add untracked, 1    ~ count fetch_add(untracked)
                    fence.acq_rel.gpu            @ FarItems::put fence
                    st.relaxed.gpu entry, 1      ~ FarItem::put store_pair
                """,
                "taker, block 1": """
                    r = ld.relaxed.gpu entry     ~ FarItem::take load_pair
                    need r == 1
                    fence.acq_rel.gpu            ~ take_far_chunk fence, run_far fence
                    fence.acq_rel.gpu            ~ finish fence
                    b = atom.relaxed.gpu.add finished, 1    ~ finish fetch_add(finished)
                """,
                "waiter, block 2": waiter("untracked"),
            },
            never="f == c",
            init={"untracked": 1},
        ),
    ),
    Row(
        ("far push, items of 16 bytes and more", "take a far item"),
        Program(
            "an entry with a level has its item",
            {
                "pusher, block 0": """
                    st.relaxed.gpu item, 7       ~ FarItem::put store(item)
                    fence.acq_rel.gpu            @ FarItem::put fence
                    st.relaxed.gpu level, 1      ~ FarItem::put store(level)
                """,
                "taker, block 1": """
                    r = ld.relaxed.gpu level     ~ FarItem::take load(level)
                    need r == 1
                    fence.acq_rel.gpu            @ FarItem::take fence#1
                    x = ld.relaxed.gpu item      ~ FarItem::take load(item)
                """,
            },
            never="x != 7",
        ),
    ),
    Row(
        ("open a list", "claim of far items"),
        Program(
            "a claim sees the words of the list",
            {
                "opener, block 0": """
                    st.relaxed.gpu begin, 5      ~ open_list store(.begin)
                    fence.acq_rel.gpu            @ open_list fence
                    st.relaxed.gpu chunks, 1     ~ open_list store(.chunks)
                """,
                "helper, block 1": """
                    k = atom.relaxed.gpu.add chunks, -1    ~ FarItems::claim_chunk fetch_add(chunks)
                    need k > 0
                    fence.acq_rel.gpu            @ FarItems::claim_chunk fence
                    x = ld.relaxed.gpu begin     ~ FarItems::claim_chunk load(.begin)
                """,
            },
            never="x != 5",
        ),
    ),
    Row(
        ("finish far items", "new block", "far push"),
        Program(
            "a new block is empty",
            {
                "taker, block 0": """
                    st.relaxed.gpu entry, 0              ~ FarItem::take store_pair
                    fence.acq_rel.gpu                    @ FarItems::finish_chunk fence#1
                    u = atom.relaxed.gpu.add unread, -1  ~ FarItems::finish_chunk fetch_add(unread)
                """,
                "last, block 1": """
                    v = atom.relaxed.gpu.add unread, -1  ~ FarItems::finish_chunk fetch_add(unread)
                    need v == 1
                    fence.acq_rel.gpu                    @ FarItems::finish_chunk fence#2
                    w = atom.relaxed.gpu.add free, 1     ~ FarItems::finish_chunk fetch_add(free_blocks)
                """,
                "who finds the block, block 2": """
                    b = atom.relaxed.gpu.cas free, 1, 0  ~ take_block compare_exchange
                    need b == 1
                    fence.acq_rel.gpu                    @ take_block fence
                    st.relaxed.gpu place, 1              ~ begin_block store
                """,
                "pusher, block 3": """
                    p = ld.relaxed.gpu place             ~ find load(place_of_block)
                    need p == 1
                    fence.acq_rel.gpu                    @ FarItems::put fence
                    st.relaxed.gpu entry, 8              ~ FarItem::put store_pair
                """,
            },
            never="p == 1 and [entry] == 0",
            init={"entry": 7, "unread": 2},
        ),
    ),
    Row(
        ("finish far items", "new block", "far push, items of 16 bytes and more"),
        Program(
            "an entry is not overwritten while it is read",
            {
                "taker, block 0": """
                    x = ld.relaxed.gpu item              ~ FarItem::take load(item)
                    fence.acq_rel.gpu                    @ FarItem::take fence#2
                    st.relaxed.gpu level, 0              ~ FarItem::take store(level)
                    fence.acq_rel.gpu                    ~ FarItems::finish_chunk fence#1
                    u = atom.relaxed.gpu.add unread, -1  ~ FarItems::finish_chunk fetch_add(unread)
                    need u == 1
                    fence.acq_rel.gpu                    ~ FarItems::finish_chunk fence#2
                    w = atom.relaxed.gpu.add free, 1     ~ FarItems::finish_chunk fetch_add(free_blocks)
                """,
                "pusher, block 1": """
                    b = atom.relaxed.gpu.cas free, 1, 0  ~ take_block compare_exchange
                    need b == 1
                    fence.acq_rel.gpu                    ~ take_block fence
                    st.relaxed.gpu item, 8               ~ FarItem::put store(item)
                """,
            },
            never="x == 8",
            init={"item": 7, "level": 1, "unread": 1},
        ),
        spare={
            "FarItem::take fence#2": "an entry is used again only when its block was freed, behind the fences of "
            "`FarItems::finish_chunk`; no push looks for an empty level. It could go"
        },
    ),
    Row(
        ("contents of a block",),
        Program(
            "a taker does not see what was in a block before",
            {
                "last taker, block 0": """
                    st.relaxed.gpu entry, 0              ~ FarItem::take store_pair
                    fence.acq_rel.gpu                    ~ FarItems::finish_chunk fence#1
                    fence.acq_rel.gpu                    ~ FarItems::finish_chunk fence#2
                    w = atom.relaxed.gpu.add free, 1     ~ FarItems::finish_chunk fetch_add(free_blocks)
                """,
                "who finds the block, block 1": """
                    b = atom.relaxed.gpu.cas free, 1, 0  ~ take_block compare_exchange
                    need b == 1
                    fence.acq_rel.gpu                    @ take_block fence
                    st.relaxed.gpu place, 1              ~ begin_block store
                """,
                "taker, block 2": """
                    p = ld.relaxed.gpu place             ~ find load(place_of_block)
                    need p == 1
                    fence.acq_rel.gpu                    @ entries fence
                    r = ld.relaxed.gpu entry             ~ FarItem::take load_pair
                """,
            },
            never="r == 5",
            init={"entry": 5},
        ),
    ),
    Row(
        ("next list",),
        Program(
            "the words of a list are not overwritten while a claim reads them",
            {
                "helper, block 0": """
                    x = ld.relaxed.gpu begin             ~ FarItems::claim_chunk load(.begin)
                    fence.acq_rel.gpu                    ~ FarItems::finish_chunk fence#1
                    l = atom.relaxed.gpu.add left, -1    ~ FarItems::finish_chunk fetch_add(left)
                """,
                "opener, block 1": """
                    b = atom.relaxed.gpu.cas busy, 0, 1  ~ open compare_exchange(busy)
                    need b == 0
                    fence.acq_rel.gpu                    ~ open fence#1
                    z = ld.relaxed.gpu left              ~ open load(left)#2
                    need z == 0
                    fence.acq_rel.gpu                    @ open fence#2
                    st.relaxed.gpu begin, 9              ~ open_list store(.begin)
                """,
            },
            never="x == 9",
            init={"begin": 5, "left": 1},
        ),
    ),
    Row(
        ("next list",),
        Program(
            "the next opener sees that the list is not worked off",
            {
                "opener, block 0": """
                    st.relaxed.gpu left, 1               ~ open_list store(.left)
                    fence.acq_rel.gpu                    ~ open_list fence
                    st.relaxed.gpu chunks, 1             ~ open_list store(.chunks)
                    fence.acq_rel.gpu                    ~ open fence#3
                    st.relaxed.gpu busy, 0               ~ open store(busy)
                """,
                "next opener, block 1": """
                    b = atom.relaxed.gpu.cas busy, 0, 1  ~ open compare_exchange(busy)
                    need b == 0
                    fence.acq_rel.gpu                    @ open fence#1
                    z = ld.relaxed.gpu left              ~ open load(left)#2
                """,
            },
            never="z == 0",
            init={"busy": 1},
        ),
    ),
    Row(
        ("next list",),
        Program(
            "the next opener sees what one has written that opened nothing",
            {
                "opener, block 0": """
                    st.relaxed.gpu misplaced, 0          ~ open_locked store(misplaced)#1
                    fence.acq_rel.gpu                    @ open fence#3
                    st.relaxed.gpu busy, 0               ~ open store(busy)
                """,
                "next opener, block 1": """
                    b = atom.relaxed.gpu.cas busy, 0, 1  ~ open compare_exchange(busy)
                    need b == 0
                    fence.acq_rel.gpu                    ~ open fence#1
                    z = ld.relaxed.gpu left              ~ open load(left)#2
                    need z == 0
                    fence.acq_rel.gpu                    ~ open fence#2
                    m = ld.relaxed.gpu misplaced         ~ open_locked load(misplaced)
                """,
            },
            never="m == 3",
            init={"busy": 1, "misplaced": 3},
        ),
    ),
]
