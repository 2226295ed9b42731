"""Small faults of the core, each of which the tests have to notice, or there is a reason why they cannot.

A fault replaces a text that occurs once in its file. `survives` says why one goes unnoticed: it is equivalent to the code as
it is, or out of any test's reach, or shows on a GPU only, where `run.py --gpu` tries it.
"""

from __future__ import annotations

from typing import NamedTuple

GPU = "GPU only: "
SAME = "equivalent: "
RARE = "out of reach: "


class Mutant(NamedTuple):
    """A fault: the file of csrc it is in, what is wrong then, the text that it replaces, and by what."""

    file: str
    what: str
    old: str
    new: str = ""
    survives: str = ""


LOAD, STORE, RELAXED = "__ATOMIC_ACQUIRE); }", "__ATOMIC_RELEASE", "__ATOMIC_RELAXED"
ADD, EXCHANGE = "(p, v, __ATOMIC_ACQ_REL)", "false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE"

ATOMIC = {
    "A01": Mutant("protocol/atomic.cuh", "loads relaxed", LOAD, "__ATOMIC_RELAXED); }"),
    "A02": Mutant("protocol/atomic.cuh", "stores relaxed", STORE, RELAXED),
    "A03": Mutant("protocol/atomic.cuh", "add relaxed", ADD, "(p, v, __ATOMIC_RELAXED)"),
    "A04": Mutant("protocol/atomic.cuh", "exchange relaxed", EXCHANGE, "false, __ATOMIC_RELAXED, __ATOMIC_RELAXED"),
    "A05": Mutant("protocol/atomic.cuh", "add without release", ADD, "(p, v, __ATOMIC_ACQUIRE)"),
    "A06": Mutant("protocol/atomic.cuh", "add without acquire", ADD, "(p, v, __ATOMIC_RELEASE)"),
    "A07": Mutant("protocol/atomic.cuh", "exchange without release", EXCHANGE, "false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE"),
    "A08": Mutant(
        "protocol/atomic.cuh",
        "exchange without acquire",
        EXCHANGE,
        "false, __ATOMIC_RELEASE, __ATOMIC_RELAXED",
        SAME + "on the CPU what an exchange tells of is read behind another load",
    ),
    "A09": Mutant(
        "protocol/atomic.cuh",
        "failed exchange relaxed",
        EXCHANGE,
        "false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED",
        SAME + "a worker that fails tries again or does nothing",
    ),
    "A10": Mutant("protocol/atomic.cuh", "product shifted by 63", ">> 64", ">> 63"),
    "A11": Mutant("protocol/atomic.cuh", "product of 64 bits", "static_cast<wide>(a) * b", "static_cast<wide>(a * b)"),
    "A12": Mutant(
        "protocol/atomic.cuh", "GPU: fence does nothing", 'ATOS_SCOPED("fence.acq_rel", ";", :: : "memory");', "", GPU + "order"
    ),
    "A13": Mutant(
        "protocol/atomic.cuh",
        "GPU: fence within the block only",
        'ATOS_SCOPED("fence.acq_rel", ";", :: : "memory");',
        'asm volatile("fence.acq_rel.cta;" ::: "memory");',
        GPU + "order",
    ),
    "A14": Mutant(
        "protocol/atomic.cuh",
        "GPU: clear_bit clears the others",
        '"l"(~(uint64_t(1) << bit))',
        '"l"(uint64_t(1) << bit)',
        GPU + "PTX",
    ),
    "A15": Mutant(
        "protocol/atomic.cuh", "GPU: exchange says that it succeeded", "return expected == wanted;", "return true;", GPU + "PTX"
    ),
}

RING = {
    "R01": Mutant(
        "protocol/ring.cuh", "first generation one ticket too long", "ticket - start < size;", "ticket - start <= size;"
    ),
    "R02": Mutant(
        "protocol/ring.cuh", "estimate of the quotient not corrected at equality", "if (index >= size)", "if (index > size)"
    ),
    "R03": Mutant(
        "protocol/slot.cuh",
        "release gives the slot to the same generation",
        "store(&sequence, expected + 2)",
        "store(&sequence, expected)",
    ),
    "R04": Mutant(
        "protocol/slot.cuh",
        "is_ready: later generations count as ours",
        "return is_free(expected + 1);",
        "return load(&sequence) >= expected + 1;",
    ),
    "R05": Mutant(
        "protocol/slot.cuh", "get loses the second word", "value.word[i] = load(&item[i])", "value.word[i] = load(&item[0])"
    ),
    "R06": Mutant(
        "protocol/slot.cuh", "put loses the second word", "store(&item[i], value.word[i])", "store(&item[0], value.word[i])"
    ),
    "R07": Mutant(
        "protocol/slot.cuh",
        "commit is a generation ahead, small items",
        "join(value.word, expected + 1)",
        "join(value.word, expected + 3)",
    ),
    "R08": Mutant(
        "protocol/slot.cuh",
        "commit is a generation ahead, large items",
        "{ store(&sequence, expected + 1); }",
        "{ store(&sequence, expected + 3); }",
    ),
    "R09": Mutant(
        "protocol/slot.cuh",
        "turns of small items compared beyond 32 bits",
        "static_cast<uint32_t>(load(&word) >> 32) == static_cast<uint32_t>(expected);",
        "load(&word) >> 32 == expected;",
    ),
    "R10": Mutant("protocol/slot.cuh", "small items: later generations count as ours", "(seen >> 32) ==", "(seen >> 32) >="),
    "R11": Mutant(
        "protocol/slot.cuh", "release gives a small slot to the same generation", "join(0, expected + 2)", "join(0, expected)"
    ),
    "R12": Mutant(
        "protocol/slot.cuh", "small items lose a bit", "sequence << 32 | value", "sequence << 32 | (value & 0x7fffffff)"
    ),
    "R13": Mutant("protocol/ring.cuh", "generation not corrected with the index", "++generation;"),
    "R14": Mutant("protocol/ring.cuh", "tickets counted from the first ring", "ticket -= start;"),
    "R15": Mutant(
        "protocol/ring.cuh", "a sequence number for each generation, not two", "{index, 2 * generation}", "{index, generation}"
    ),
    "R16": Mutant(
        "protocol/ring.cuh",
        "first generation forgets where the ring begins",
        "return ticket - start < size;",
        "return ticket < size;",
    ),
}

QUEUE = {
    "Q01": Mutant("protocol/growth.cuh", "address of later rings", "((size << k) - 2 * size)", "((size << k) - size)"),
    "Q02": Mutant("protocol/growth.cuh", "the whole ring is spare", "int64_t(ring.size / 2)", "int64_t(ring.size)"),
    "Q03": Mutant("protocol/growth.cuh", "a crowded ring is seen when it is full", "need <= space / 2", "need <= space"),
    "Q04": Mutant("protocol/growth.cuh", "a stop does not end the wait for room", "if (no_more || stopped())", "if (no_more)"),
    "Q05": Mutant(
        "protocol/growth.cuh",
        "one growth too many is waited for",
        "k >= growths ||",
        "k > growths ||",
        SAME + "no ring is added: the pusher waits until its tries are used up",
    ),
    "Q06": Mutant("protocol/growth.cuh", "growth without memory", "if (k >= growths_granted)", "if (k > growths_granted)"),
    "Q07": Mutant(
        "protocol/growth.cuh",
        "more are let in than fit",
        "need <= space - space / 8",
        "need <= space + space / 8",
        SAME + "what does not fit spills, and the queue grows by a stop",
    ),
    "Q08": Mutant("protocol/growth.cuh", "start of a ring", "kGrowth)) + kGrown", "kGrowth)) + kGrown + 1"),
    "Q09": Mutant("protocol/growth.cuh", "no fence in grow", "fence(); // the memory was", "// the memory was"),
    "Q10": Mutant(
        "protocol/queue_ref.cuh",
        "no fence before a slot is used again",
        "if (used) fence();",
        "",
        SAME + "in the model: load buffering is argued",
    ),
    "Q11": Mutant(
        "protocol/queue_ref.cuh", "no fence between put and fill, bulk", ".put(items[i]);\n      fence();", ".put(items[i]);"
    ),
    "Q12": Mutant("protocol/queue_ref.cuh", "sequence number in a bulk publish", "commit(items[i], 0)", "commit(items[i], 2)"),
    "Q13": Mutant("protocol/queue_ref.cuh", "claims beyond the tail", "tail - head < n ? tail - head : n;", "n;"),
    "Q14": Mutant(
        "protocol/queue_ref.cuh",
        "no fence in finish",
        "fence();\n    fetch_add(&counters->finished, n);",
        "fetch_add(&counters->finished, n);",
        SAME + "beside the confirmation in ended",
    ),
    "Q15": Mutant("protocol/queue_ref.cuh", "ended confirms without untracked", " + fetch_add(&counters->untracked, 0)"),
    "Q16": Mutant(
        "protocol/queue_ref.cuh",
        "the first registration counts one too many",
        "(counted << kQuiescentBits) + lanes :",
        "(counted << kQuiescentBits) + lanes + 1 :",
    ),
    "Q17": Mutant(
        "protocol/queue_ref.cuh",
        "all_quiescent does not read the tail",
        " &&\n           tickets_of(load(&counters->tail)) + load(&counters->untracked) == counted",
    ),
    "Q18": Mutant("protocol/queue_ref.cuh", "the spill area overflows", "at < spill_size", "at <= spill_size"),
    "Q20": Mutant(
        "protocol/queue_ref.cuh",
        "ended does not confirm",
        "*tail = fetch_add(&counters->tail, 0)",
        "*tail = load(&counters->tail)",
    ),
    "Q21": Mutant("protocol/growth.cuh", "reciprocal of later rings", "reciprocal >> k", "reciprocal"),
    "Q22": Mutant(
        "protocol/queue_ref.cuh", "publish does not read the sequence number", "!slot.is_free(place.sequence)", "false"
    ),
    "Q23": Mutant(
        "protocol/queue_ref.cuh",
        "every slot counts as used",
        "const bool used = !ring.first_generation(ticket);",
        "const bool used = true;",
        SAME + "a pusher looks at a slot more, which is empty",
    ),
    "Q24": Mutant("protocol/queue_ref.cuh", "a late registration counts", "if (newer < 0) return;"),
    "Q25": Mutant("protocol/growth.cuh", "a start is used before it is known", "start >= kGrown)", "start >= kGrowing)"),
    "Q26": Mutant(
        "protocol/growth.cuh", "memory is asked for too late", "if (growths_requested <= k &&", "if (growths_requested < k &&"
    ),
    "Q27": Mutant(
        "protocol/growth.cuh",
        "a worker that waited in vain does not tell the others",
        "compare_exchange(&counters->growths_granted, growths_granted, growths_granted | kNoMore);",
        "(void)growths_granted;",
        SAME + "the others wait as long",
    ),
    "Q28": Mutant(
        "protocol/growth.cuh",
        "room is not asked for what is pushed",
        "tail) + n - load(&counters->head)",
        "tail) - load(&counters->head)",
    ),
    "Q29": Mutant(
        "protocol/growth.cuh",
        "tickets behind those that were reserved",
        "tail + n)) return tail;",
        "tail + n)) return tail + n;",
    ),
    "Q30": Mutant("protocol/queue_ref.cuh", "claims the ticket after", "*first = head;", "*first = head + 1;"),
    "Q31": Mutant(
        "protocol/queue_ref.cuh",
        "the last failure is kept",
        "uint64_t(1)) == 0) store_plain(&counters->failure",
        "uint64_t(1)) != ~0ull) store_plain(&counters->failure",
    ),
    "Q32": Mutant("protocol/queue_ref.cuh", "a failure is no reason to stop", "set_bits(&counters->stop, kStopTask);"),
    "Q33": Mutant("protocol/queue_ref.cuh", "one sample more than there is room for", "if (at < most)", "if (at <= most)"),
    "Q34": Mutant("protocol/queue_ref.cuh", "a sample does not count what it follows", "before + ran,", "before,"),
    "Q35": Mutant("protocol/counters.h", "growths count as tickets", "tail & (kGrowth - 1)", "tail"),
    "Q36": Mutant(
        "protocol/queue_ref.cuh",
        "one is quiescent from the start",
        "{ return counted << kQuiescentBits; }",
        "{ return (counted << kQuiescentBits) + 1; }",
    ),
    "Q37": Mutant(
        "protocol/queue_ref.cuh",
        "no fence in ended",
        "fence();\n    *tail = load",
        "*tail = load",
        SAME + "beside the confirmation",
    ),
    "Q38": Mutant(
        "protocol/queue_ref.cuh",
        "later generations are put with the first",
        "i < n && ring.first_generation(first + i)",
        "i < n",
    ),
    "Q39": Mutant("protocol/growth.cuh", "a worker that cannot grow asks for room", "growths ? int64_t", "true ? int64_t"),
    "Q40": Mutant(
        "protocol/queue_ref.cuh",
        "one item that spills is no reason to stop",
        "set_bits(&counters->stop, kStopFull);",
        "if (at) set_bits(&counters->stop, kStopFull);",
    ),
    "Q41": Mutant(
        "protocol/queue_ref.cuh",
        "claim is two operations",
        "return fetch_add(&counters->head, n);",
        "uint64_t h = load(&counters->head); store(&counters->head, h + n); return h;",
    ),
    "Q42": Mutant(
        "protocol/growth.cuh",
        "reserve is two operations",
        "return fetch_add(&counters->tail, n);",
        "uint64_t h = load(&counters->tail); store(&counters->tail, h + n); return h;",
    ),
    "Q43": Mutant(
        "protocol/queue_ref.cuh",
        "finish counts one",
        "fetch_add(&counters->finished, n);",
        "fetch_add(&counters->finished, 1);",
    ),
    "Q44": Mutant(
        "protocol/growth.cuh",
        "kNoMore is overlooked",
        "growths_granted & kNoMore && (growths_granted & ~kNoMore) <= k",
        "false",
    ),
    "Q45": Mutant(
        "protocol/queue_ref.cuh", "a large item is filled before it is put", "slot.put(item);\n      fence();", "fence();"
    ),
    "Q46": Mutant("protocol/queue_ref.cuh", "a task's stop does nothing", "set_bits(&counters->stop, kStopCalled);"),
    "Q47": Mutant(
        "protocol/queue_ref.cuh",
        "a full ring hides a task's stop",
        "set_bits(&counters->stop, kStopFull);",
        "store(&counters->stop, kStopFull);",
    ),
    "Q48": Mutant(
        "protocol/far_items.cuh",
        "far items that no worker has opened are missing in a round",
        "load(&counters->finished) + unopened ==",
        "load(&counters->finished) ==",
    ),
}

SHARE = {
    "S01": Mutant("protocol/split_item.cuh", "the last chunk is lost", "(length + chunk - 1) / chunk", "length / chunk"),
    "S02": Mutant(
        "protocol/split_item.cuh",
        "the last chunk is too long",
        "number * chunk + chunk < length ? number * chunk + chunk : length",
        "number * chunk + chunk",
    ),
    "S03": Mutant(
        "protocol/split_item.cuh",
        "claims a chunk that is not there",
        "if (unclaimed <= kChunkBias)",
        "if (unclaimed < kChunkBias)",
    ),
    "S04": Mutant(
        "protocol/split_item.cuh",
        "the bit is never cleared",
        "if (unclaimed == kChunkBias + 1) clear_bit(&counters->splits_open, at);",
    ),
    "S05": Mutant(
        "protocol/split_item.cuh",
        "no fence before left",
        "fence();\n  if (fetch_add(&split_items[at].left",
        "if (fetch_add(&split_items[at].left",
        SAME + "beside the confirmation in ended",
    ),
    "S06": Mutant(
        "protocol/split_item.cuh", "no fence before a place is free", "!= 1) return false;\n  fence();", "!= 1) return false;"
    ),
    "S07": Mutant(
        "protocol/split_item.cuh",
        "no fence before an entry is used again",
        "fence(); // before the words are",
        "// the words are",
    ),
    "S08": Mutant(
        "protocol/split_item.cuh", "no fence before chunks", "fence();\n  store(&split.chunks", "store(&split.chunks"
    ),
    "S09": Mutant("protocol/split_item.cuh", "no fence in claim_chunk", "fence(); // after the writes", "// after the writes"),
    "S10": Mutant("protocol/split_item.cuh", "the bit is not set", "set_bit(&counters->splits_open, at);"),
    "S11": Mutant(
        "protocol/split_item.cuh",
        "an item without a ticket is not counted",
        "if (!counted) fetch_add(&counters->untracked, 1);",
    ),
    "S12": Mutant("protocol/split_item.cuh", "a place is never free again", "store(&split_items[at].busy, 0);"),
    "S13": Mutant(
        "protocol/split_item.cuh", "values of another item", "values[i] = load(&split.values[i])", "(void)split.values[i]"
    ),
    "S14": Mutant(
        "protocol/split_item.cuh",
        "the wrong place is looked at",
        "(__ffsll(rotated) - 1 + rotation) % kSplitItems",
        "(__ffsll(rotated) - 1) % kSplitItems",
    ),
    "S15": Mutant(
        "protocol/split_item.cuh",
        "the last chunk but one frees the place",
        "~uint64_t(0)) != 1) return false;",
        "~uint64_t(0)) > 2) return false;",
    ),
    "S16": Mutant("protocol/split_item.cuh", "claims without a look", "if (load(&split.chunks) <= kChunkBias) continue;"),
    "S17": Mutant(
        "protocol/split_item.cuh",
        "a place that is taken is given",
        "if (!compare_exchange(&split.busy, busy, owner)) return false;",
        "compare_exchange(&split.busy, busy, owner);",
    ),
}

WORKER = {
    "W01": Mutant("protocol/consumer.cuh", "a share may exceed fetch", "part < launch.fetch ? part : launch.fetch", "part"),
    "W02": Mutant(
        "protocol/consumer.cuh", "claims of a round run past its end", "end - first < want ? end - first : want", "want"
    ),
    "W03": Mutant("device/bsp_rounds.cuh", "idle is called in the first quiescent round only", "header->idle_called = 0;"),
    "W04": Mutant(
        "device/push_buffer.cuh", "keeps although tickets are reserved", "may_keep && !producer.reserved", "may_keep"
    ),
    "W05": Mutant(
        "device/push_buffer.cuh",
        "keeps one more than there is room for",
        "launch.local_items - kept;",
        "launch.local_items + 1 - kept;",
    ),
    "W06": Mutant(
        "device/group_worker.cuh",
        "first ticket after a batch",
        "consumer.first = first + got;",
        "consumer.first = first + got - (got > 1);",
    ),
    "W07": Mutant(
        "protocol/consumer.cuh",
        "looks for a ring that is not there",
        "growths_of(tail) > growths",
        "growths_of(tail) >= growths",
    ),
    "W08": Mutant("device/push_buffer.cuh", "the buffer overflows", "if (at < launch->buffer)", "if (at <= launch->buffer)"),
    "W09": Mutant("device/push_buffer.cuh", "reserves twice", "if (given && !producer.reserved)", "if (given)"),
    "W10": Mutant(
        "device/host_report.cuh",
        "leave does not count the unreported tasks",
        "header->end.report(queue());\n      if (header->consumer.claimed",
        "if (header->consumer.claimed",
        "equivalent: after a stop or a round `finished` is set by others",
    ),
    "W12": Mutant(
        "device/group_worker.cuh",
        "no fence between get and retire",
        ".get({});\n      fence();",
        ".get({});",
        SAME + "in the model: load buffering is argued",
    ),
    "W13": Mutant(
        "device/bsp_rounds.cuh", "no fence before arrived", "fence_device();\n  uint64_t arrived =", "uint64_t arrived ="
    ),
    "W14": Mutant(
        "device/bsp_rounds.cuh", "no fence behind a barrier", "}\n  fence_device();\n  return true;", "}\n  return true;"
    ),
    "W15": Mutant(
        "device/thread_worker.cuh",
        "thread workers: a lane takes more than was claimed",
        "total - before < want ? total - before : want",
        "want",
        RARE + "other warps have to claim nearly all of a round between a load and the instruction after it",
    ),
    "W16": Mutant(
        "device/thread_worker.cuh",
        "thread workers: what idle pushed is not flushed",
        "if (pushes) this->template",
        "if (pushes && lanes) this->template",
        GPU + "lanes",
    ),
    "W17": Mutant(
        "device/thread_worker.cuh",
        "thread workers: claim despite a stop",
        "if (stop == kRun && relaxed)",
        "if (relaxed)",
        GPU + "lanes",
    ),
    "W18": Mutant(
        "device/group_worker.cuh",
        "local items of a split batch are counted",
        "header->batch - header->first_counted - header->num_split",
        "header->batch - header->num_split",
    ),
    "W19": Mutant(
        "device/host_report.cuh",
        "no fence before gone",
        "fence();\n    if (fetch_add(&counters->gone",
        "if (fetch_add(&counters->gone",
    ),
    "W20": Mutant(
        "protocol/termination.cuh",
        "a worker that pushed in idle registers as quiescent",
        "pushes ? kNever : candidate",
        "candidate",
    ),
    "W21": Mutant("device/bsp_rounds.cuh", "no fence before the last block decides", "if (is_last) fence();"),
    "W22": Mutant("device/host_report.cuh", "no fence behind gone", "- 1) return;\n    fence();", "- 1) return;"),
    "W23": Mutant(
        "protocol/producer.cuh",
        "spare of the first ring",
        "ring = queue.ring(0, 0);\n    headroom = queue.headroom_of(ring);",
        "ring = queue.ring(0, 0);",
        SAME + "it asks for room earlier than it has to",
    ),
    "W24": Mutant(
        "protocol/consumer.cuh",
        "the next ring is looked for twice",
        "++growths, next_start);\n    next_start = kNever;",
        "++growths, next_start);",
    ),
    "W25": Mutant(
        "device/work_sharing.cuh",
        "an item of just kLong is run by nobody",
        "if (lengths[k] < kLong) continue;",
        "if (lengths[k] <= kLong) continue;",
    ),
    "W26": Mutant(
        "device/load_balance.cuh",
        "an item of just kLong is not seen",
        "if (length >= kLong) any_long",
        "if (length > kLong) any_long",
    ),
    "W60": Mutant(
        "device/load_balance.cuh",
        "groups of a warp run the same iteration",
        "base + lane_id() / threads_of_iteration",
        "base",
        GPU + "groups",
    ),
    "W61": Mutant(
        "device/load_balance.cuh",
        "groups leave iterations out",
        "Group::size() / threads_of_iteration; }",
        "Group::size(); }",
        GPU + "groups",
    ),
    "W62": Mutant(
        "device/work_sharing.cuh",
        "the threads of a group run other iterations of a chunk",
        "int64_t i = from + Group::rank() / threads_of_iteration",
        "int64_t i = from + Group::rank()",
        GPU + "groups",
    ),
    "W64": Mutant(
        "device/load_balance.cuh",
        "threads go on before a flush within a step is over",
        "this->template flush_pushes<Group>(false, this->relaxed(), nullptr);\n    Group::sync();",
        "this->template flush_pushes<Group>(false, this->relaxed(), nullptr);",
        GPU + "several warps",
    ),
    "W65": Mutant(
        "device/bsp_rounds.cuh",
        "an arrival that completes a barrier is taken back",
        "~uint64_t(0)) >= kComplete;",
        "~uint64_t(0)) >= kComplete && false;",
    ),
    "W66": Mutant(
        "device/bsp_rounds.cuh",
        "a block helps and counts as arrived",
        "if (chunks && take_back_arrival(counters, phase)) return false;",
        "if (chunks) return false;",
    ),
    "W67": Mutant("device/push_buffer.cuh", "a worker runs local items for ever", " || turn || waiting", ""),
    "W68": Mutant("device/group_worker.cuh", "far items come before the ring for ever", " && !takes_ticket", ""),
    "W63": Mutant(
        "device/group.cuh",
        "a group waits for all lanes of its warp",
        "kAll >> (kWarpSize - size) << (lane_id() & ~(size - 1));",
        "size ? kAll : 0;",
        GPU + "groups",
    ),
    "W27": Mutant("device/load_balance.cuh", "scan is inclusive", "total + inclusive - mine", "total + inclusive"),
    "W28": Mutant(
        "device/load_balance.cuh",
        "an iteration belongs to the item before",
        "if (scan[middle] <= e)",
        "if (scan[middle] < e)",
    ),
    "W29": Mutant(
        "device/push_buffer.cuh",
        "after a stop workers keep",
        "stop != kRun || turn",
        "turn",
        SAME + "local items run before its worker leaves",
    ),
    "W30": Mutant("protocol/producer.cuh", "tickets reserved with space are forgotten", "reserved = 1;"),
    "W31": Mutant(
        "device/push_buffer.cuh",
        "tickets reserved with space are kept",
        "header->pushes = producer.reserved = 0",
        "header->pushes = 0",
    ),
    "W32": Mutant("device/push_buffer.cuh", "what idle pushed is not known", "header->flushed = pushes;"),
    "W33": Mutant(
        "device/group_worker.cuh", "tasks run are counted as steps", "header->ran += step.count();", "header->ran += 1;"
    ),
    "W34": Mutant(
        "device/push_buffer.cuh",
        "pushes are counted without local items",
        "header->pushed += pushes;",
        "header->pushed += given;",
    ),
    "W35": Mutant(
        "device/push_buffer.cuh",
        "no fence in push",
        "launch->barrier);\n    fence();",
        "launch->barrier);",
    ),
    "W36": Mutant(
        "device/host_report.cuh", "untracked is not reset", "{&counters->untracked, &counters->phase", "{&counters->phase"
    ),
    "W37": Mutant(
        "device/bsp_rounds.cuh",
        "arrived is not reset",
        "fetch_add(&counters->arrived, 0 - blocks);",
        "",
    ),
    "W38": Mutant(
        "device/host_report.cuh",
        "claims of a stream are not reset",
        "store(&counters->claims[launch.stream], 0);",
        "",
        GPU + "discrete kernels",
    ),
    "W39": Mutant("device/host_report.cuh", "gone is not reset", "store(&counters->gone[launch.stream], 0);"),
    "W40": Mutant("device/host_report.cuh", "the report says no stop", "record->stop = stop;", "record->stop = kRun;"),
    "W41": Mutant("device/bsp_rounds.cuh", "a round opens despite a stop", "stopped ? end | kLastRound : tail", "tail"),
    "W42": Mutant(
        "device/bsp_rounds.cuh",
        "idle in every round of a discrete launch",
        "idle = idle && launch.idle_round;",
        "",
        GPU + "discrete kernels",
    ),
    "W43": Mutant(
        "device/push_buffer.cuh",
        "local items are flushed as well",
        "worker.buffer + local_items, n - local_items",
        "worker.buffer, n - local_items",
    ),
    "W44": Mutant(
        "device/termination.cuh",
        "a round looks for no ring",
        "header->consumer.look_for_ring(queue(), load(&queue().counters->tail));",
    ),
    "W45": Mutant(
        "device/thread_worker.cuh",
        "thread workers: a ticket is taken twice",
        "++first;\n      --claimed;",
        "--claimed;",
        GPU + "lanes",
    ),
    "W46": Mutant(
        "device/group_worker.cuh",
        "all lanes begin at the first slot",
        "got + u * kWarpSize + lane_id();",
        "got + u * kWarpSize;",
        GPU + "lanes",
    ),
    "W47": Mutant(
        "device/group.cuh",
        "a CTA's scan forgets the warps before",
        "all - mine, threadIdx.x / 32",
        "0u, threadIdx.x / 32",
        GPU + "lanes",
    ),
    "W80": Mutant(
        "device/work_sharing.cuh",
        "a borrowed item of 32 bytes lies in the header, on top of its values",
        "if (bytes > kHeaderItemBytes) place = reinterpret_cast<unsigned char *>(header) + kHeaderBytes;",
    ),
    "W49": Mutant(
        "device/bsp_rounds.cuh",
        "an interrupted round is followed by the function between rounds",
        "is_last && ran_round(end)",
        "is_last",
    ),
    "W50": Mutant(
        "device/bsp_rounds.cuh",
        "what the function between rounds pushed stays in the buffer",
        "        this->template flush_pushes<Group>(false, false, nullptr);\n",
    ),
    "W81": Mutant(
        "device/bsp_rounds.cuh",
        "a worker that claims nothing because of a stop says nothing",
        "if (has_each_round) fetch_add(&queue().counters->arrived, kMark);",
    ),
    "W82": Mutant(
        "device/bsp_rounds.cuh",
        "a round that a stop has met counts as interrupted, though all of it ran",
        " || this->first_of_kernel() + load(this->claims_of_kernel()) >= end;",
        ";",
    ),
    "W83": Mutant(
        "device/worker_state.cuh",
        "a worker keeps to itself that time is over",
        "set_bits(&queue().counters->stop, kStopAsked);",
        ";",
    ),
    "W84": Mutant(
        "device/worker_state.cuh", "pushes that 32 bits may not hold are not counted", "atomicAdd(&header->pushed, 1ull);", ";"
    ),
    "W51": Mutant(
        "device/bsp_rounds.cuh",
        "arrivals of a discrete kernel are counted on",
        "          store(&counters->arrived, 0); // for the next kernel\n",
        "",
        GPU + "discrete kernels",
    ),
    "W48": Mutant(
        "device/bsp_rounds.cuh",
        "head stays ahead of a round",
        "lower_to(&counters->head, end);",
    ),
    "W85": Mutant(
        "device/bsp_rounds.cuh",
        "head goes to the end of a round that was interrupted",
        "lower_to(&counters->head, end);",
        "store(&counters->head, end);",
    ),
    "W86": Mutant(
        "device/bsp_rounds.cuh",
        "the end of an interrupted round is forgotten",
        "stopped ? end | kLastRound",
        "stopped ? kLastRound",
    ),
    "W87": Mutant(
        "device/host_report.cuh",
        "claims of a discrete kernel are not reported",
        "record->claims = load(&counters->claims[launch.stream]);",
        "record->claims = 0;",
        GPU + "discrete kernels",
    ),
}

HOST = {
    "C01": Mutant(
        "host/launch.cpp",
        "a launch starts although pending exceeds the capacity",
        "if (storage.over_capacity() && !storage.ensure_capacity(storage.num_pending()))\n",
        "if (false)\n",
    ),
    "C02": Mutant(
        "host/recovery.cpp",
        "a level is not forgotten after a run",
        "  in_lists = ring_used = false;\n  level = 0;",
        "  in_lists = ring_used = false;",
    ),
    "C03": Mutant("host/launch.cpp", "lost is reported again", "storage.lost = 0;"),
    "C04": Mutant(
        "host/launch.cpp",
        "an interrupted level is not finished first",
        "launch.barrier && storage.level ? counters.head",
        "false ? counters.head",
    ),
    "C05": Mutant(
        "host/queue_storage.cpp",
        "no growth to max_capacity itself",
        "first_size <= max_size >> (most + 1)",
        "first_size < max_size >> (most + 1)",
    ),
    "C06": Mutant("host/queue_storage.cpp", "grows beyond max_capacity", "if (total > max_size) return false;"),
    "C07": Mutant(
        "host/queue_storage.cpp",
        "more growths than memory",
        "std::min(most, growths_within(run.ring_bytes, growable->mapped))",
        "most",
        "GPU only: a CPU's room is there",
    ),
    "C08": Mutant(
        "host/queue_storage.cpp",
        "a slot is not emptied",
        "used = std::min(first_size, tickets_of(counters.tail));",
        "used = std::min(first_size, tickets_of(counters.tail)) / 2;",
    ),
    "C09": Mutant(
        "host/queue_storage.cpp",
        "a level one too large",
        "level = std::min(of_level, fit)",
        "level = std::min(of_level + 1, fit)",
    ),
    "C10": Mutant(
        "host/queue_storage.cpp",
        "an item that fits is overflow as well",
        "items + fit * item_bytes, items + n",
        "items + (fit - 1) * item_bytes, items + n",
    ),
    "C11": Mutant(
        "host/recovery.cpp", "recover_pending forgets the level", "run.launch.barrier ? tickets_of(counters.round_end) : 0", "0"
    ),
    "C12": Mutant(
        "host/queue_storage.cpp", "a level larger than the ring", "level = std::min(of_level, fit)", "level = of_level"
    ),
    "C13": Mutant("host/recovery.cpp", "what is lost is not counted", "lost += dropped;", ""),
    "C14": Mutant("host/fork_safe_mutex.h", "a forked child waits for ever", "if (owner && owner != getpid())", "if (false)"),
    "C15": Mutant(
        "host/fork_safe_mutex.h",
        "no waiting thread is woken",
        "unlocked.notify_one();",
        "",
        SAME + "its wait ends after 20 ms, and then finds the mutex free",
    ),
    "C16": Mutant(
        "host/queue.cpp",
        "what an abandoned launch left is not recovered",
        "if (storage.disordered) storage.recover_pending(*abandoned);",
        "",
    ),
    "C17": Mutant("host/queue.cpp", "restore forgets the level", "state.pending, state.level", "state.pending, 0"),
    "C18": Mutant(
        "host/queue_storage.cpp", "resize forgets the level", "all.size() / item_bytes, level);", "all.size() / item_bytes, 0);"
    ),
    "C19": Mutant(
        "host/spill_area.cpp", "what spilled is not copied", "std::memcpy(one.item, &spilled.item, sizeof spilled.item);", ""
    ),
    "C20": Mutant(
        "host/launch.cpp", "a stop that finds nothing left is an error", "!over && (stats->pending || run.launch.idle)", "!over"
    ),
    "C21": Mutant("host/recovery.cpp", "tickets of a queue that grew go on", "if (growths) collapse_rings();\n}", "}"),
    "C99": Mutant(
        "host/launch.cpp",
        "the word of a pool is any",
        "given.pool_words[k] >= given.argument_words",
        "given.pool_words[k] > 255",
    ),
    "C22": Mutant(
        "host/recovery.cpp",
        "untracked is not reset",
        "tickets_of(counters.tail);\n  counters.untracked = 0;",
        "tickets_of(counters.tail);",
        "equivalent: the last block resets it, and on the CPU only an inbox counts there, behind which drain_inbox does",
    ),
    "C23": Mutant(
        "host/queue_storage.cpp",
        "an item that does not fit is dropped",
        "items + n * item_bytes);\n",
        "items + (n - (n > fit)) * item_bytes);\n",
    ),
    "C24": Mutant(
        "host/queue_storage.cpp",
        "what was pushed counts as finished",
        "counters.finished = counters.head;",
        "counters.finished = counters.tail;",
    ),
    "C25": Mutant("host/recovery.cpp", "the ring after growth is half as large", "make_ring(size);", "make_ring(size / 2);"),
    "C26": Mutant(
        "host/queue_storage.cpp",
        "peek misses a ticket of the first ring",
        "counters.ring_first_ticket[of] - kGrown :",
        "counters.ring_first_ticket[of] - kGrown - 1 :",
    ),
    "C27": Mutant(
        "host/recovery.cpp",
        "one growth is forgotten",
        "if (growths) collapse_rings();\n}",
        "if (growths > 1) collapse_rings();\n}",
    ),
    "C28": Mutant("host/queue.cpp", "a queue that is stuck may be used", "if (in_use())", "if (false)"),
    "C29": Mutant(
        "host/recovery.cpp",
        "generations in the wrong order",
        "std::map<uint64_t, std::vector<unsigned char>> older",
        "std::map<uint64_t, std::vector<unsigned char>, std::greater<uint64_t>> older",
    ),
    "C31": Mutant(
        "host/launch.cpp", "statistics are not summed", "total_ran += stats->tasks_run", "total_ran = stats->tasks_run"
    ),
    "C32": Mutant("host/recovery.cpp", "growths are not counted", "grown += now - growths;", ""),
    "C33": Mutant("host/queue.cpp", "a progress function may use its queue", 'StopMonitor::refuse_in_callback("use a queue");'),
    "C34": Mutant(
        "host/queue.cpp", "the capacity is no limit", "limit && limit < storage.size", "limit && limit + 1 < storage.size"
    ),
    "C35": Mutant("host/queue.cpp", "any number may be pushed", "n > UINT64_MAX - pending || "),
    "C36": Mutant("host/queue.cpp", "a fixed queue may grow after a resize", "fixed ? capacity : std::max", "std::max"),
    "C37": Mutant(
        "host/queue_storage.cpp",
        "the device's counters are not renewed",
        "counters.finished = counters.head;\n  stale = true;",
        "counters.finished = counters.head;",
        GPU + "a CPU's are copied at each run",
    ),
    "C38": Mutant(
        "host/recovery.cpp",
        "a ticket behind the end of a level counts as one of it",
        "earlier += ticket < level_end;",
        "earlier += ticket <= level_end;",
    ),
    "C39": Mutant(
        "host/launch.cpp", "samples of the launch before", "counters.ran_so_far = counters.next_sample = counters.sampled = 0;"
    ),
    "C43": Mutant("host/launch.cpp", "an interrupted round counts twice", "if (interrupted) --counters.rounds;"),
    "C45": Mutant(
        "cpu/worker.h",
        "a worker of the CPU runs its last items for ever",
        "++local_steps % (given.newest ? kMostStackSteps : kMostLocalSteps) == 0",
        "false",
    ),
    "C44": Mutant("host/queue_storage.cpp", "the mode is lost where the queue grows", "fresh.mode = counters.mode;"),
    "C41": Mutant("host/launch.cpp", "a launch goes on after a task's stop", "stats->stopped || run.monitor", "run.monitor"),
    "C42": Mutant("host/launch.cpp", "a task's stop is an error", "if (stats->stopped) return;"),
    "C46": Mutant(
        "host/recovery.cpp",
        "recovery in place forgets the level",
        "level = level_end - std::min(level_end, recovery.head);",
    ),
    "C48": Mutant(
        "host/receivers.cpp",
        "a receiver without room forgets its level",
        "recover(level ? counters.head + level : 0, true)",
        "recover(0, true)",
    ),
    "C47": Mutant(
        "host/recovery.cpp",
        "items of older generations are not read",
        "} else if (distance < 0 && distance % 2) {",
        "} else if (false) {",
    ),
    "C51": Mutant(
        "host/recovery.cpp",
        "items of older generations come behind the others",
        "result->insert(result->begin() + ptrdiff_t(before), items",
        "result->insert(result->end(), items",
    ),
    "C52": Mutant(
        "host/queue_storage.cpp",
        "slots that nothing is written to keep what they had",
        "if (capacity == first_size) reset(fit);",
        "if (capacity == first_size) reset(capacity);",
    ),
    "C40": Mutant(
        "host/queue.cpp",
        "a waiting launch ignores its timeout",
        "if (!monitor || monitor->poll()) throw Failure(ATOS_HELD",
        "if (!monitor) throw Failure(ATOS_HELD",
    ),
}

CPU = {
    "B01": Mutant(
        "cpu/worker.h",
        "release before get",
        "items[got++] = slot.get(seen);\n      slot.release(place.sequence);",
        "slot.release(place.sequence);\n      items[got++] = slot.get(seen);",
    ),
    "B02": Mutant(
        "cpu/worker.h",
        "finished before the pushes are flushed",
        "flush_pushes();\n    if (timed)",
        "queue.finish(got), unreported -= got;\n    flush_pushes();\n    if (timed)",
    ),
    "B03": Mutant(
        "cpu/worker.h",
        "unreported is not counted at the end",
        "end.report(queue);\n  }",
        "}",
        SAME + "`finished` is set by the host",
    ),
    "B50": Mutant(
        "cpu/worker.h",
        "an interrupted round is followed by the function between rounds",
        "if (program.each_round && ran) call_each_round(round_end);",
        "if (program.each_round) call_each_round(round_end);",
    ),
    "B51": Mutant("cpu/worker.h", "rounds have no numbers", "++view.worker.round;"),
    "B52": Mutant(
        "cpu/worker.h",
        "no report before the end of a round",
        "if (program.each_round) end.report(queue);\n      if constexpr (several)",
        "if constexpr (several)",
    ),
    "B53": Mutant(
        "cpu/backend.cpp",
        "an empty queue has no round",
        "pending == 0 && opened == 0 && run.launch.each_round && counters.rounds == 0",
        "false",
    ),
    "B54": Mutant(
        "cpu/worker.h", "the mode is not kept", "else store(&queue.counters->mode, uint64_t(view.worker.next_mode));"
    ),
    "B55": Mutant("cpu/worker.h", "items that wait are not counted", "else view.worker.pending = int64_t(tail() - round_end);"),
    "B04": Mutant("cpu/backend.cpp", "barrier counters are not reset", "run.counters->arrived = run.counters->phase = 0;"),
    "B05": Mutant("cpu/worker.h", "rounds go on after a stop", "stopped ? round_end | kLastRound : next", "next"),
    "B56": Mutant(
        "cpu/worker.h",
        "head goes to the end of a round that was interrupted",
        "lower_to(&queue.counters->head, round_end);",
        "store(&queue.counters->head, round_end);",
    ),
    "B57": Mutant(
        "cpu/worker.h",
        "the end of an interrupted round is forgotten",
        "stopped ? round_end | kLastRound",
        "stopped ? kLastRound",
    ),
    "B06": Mutant(
        "cpu/worker.h",
        "leaves a ring although it has older tickets",
        "if (consumer.is_past_ring(consumer.first)) consumer",
        "if (consumer.next_start != kNever) consumer",
    ),
    "B07": Mutant(
        "protocol/termination.cuh",
        "registers as quiescent although tasks are unfinished",
        "candidate = done ? counted : kNever;",
        "candidate = counted;",
    ),
    "B08": Mutant(
        "cpu/worker.h",
        "a round does not look for a new ring",
        "} else {\n        consumer.look_for_ring(queue, load(&queue.counters->tail));",
        "} else {",
    ),
    "B09": Mutant(
        "cpu/backend.cpp",
        "idle only if something is pending",
        "run.kernel.idle_round && !run.launch.idle",
        "run.kernel.idle_round",
    ),
    "B10": Mutant("cpu/backend.cpp", "head stays ahead of a discrete round", "counters.head = std::min(counters.head, end);"),
    "B58": Mutant(
        "cpu/backend.cpp",
        "head goes to the end of a discrete round that was interrupted",
        "counters.head = std::min(counters.head, end);",
        "counters.head = end;",
    ),
    "B59": Mutant("cpu/backend.cpp", "the end of a discrete round is not told", "counters.round_end = end;"),
    "B11": Mutant(
        "cpu/backend.cpp",
        "ends after an idle round that pushed",
        "run.kernel.idle_round && counters.tail == tail",
        "run.kernel.idle_round",
    ),
    "B12": Mutant(
        "cpu/backend.cpp",
        "a stop asked for between runs is forgotten",
        "if (run.asked) run.counters->stop |= kStopAsked;",
        "",
        SAME + "the stop is asked for again and again",
    ),
    "B13": Mutant(
        "cpu/backend.cpp",
        "the thread of a stuck launch is joined",
        "(void)thread.release();\n      }\n      throw;",
        "}\n      throw;",
    ),
    "B14": Mutant(
        "cpu/backend.cpp",
        "the child of a fork uses the launch thread of its parent",
        "if (owner != getpid()) (void)thread.release();",
    ),
    "B15": Mutant(
        "cpu/backend.cpp",
        "the counters of a run stay live",
        "run.live = nullptr;",
        "",
        SAME + "what is asked of them after their run comes too late",
    ),
    "B16": Mutant("cpu/program.h", "a failure stays in the thread", "failure = atos_failure{};"),
    "B17": Mutant("cpu/worker.h", "batches are never made shorter", "longest = std::max(got / 2, 1u);", "longest = got;"),
    "B18": Mutant("cpu/worker.h", "failures in idle are not reported at once", "report_failure<bytes>(queue, nullptr);"),
    "B19": Mutant(
        "protocol/termination.cuh",
        "one worker need not be quiescent",
        "all_quiescent(counted, workers)",
        "all_quiescent(counted, workers - 1)",
    ),
    "B20": Mutant(
        "protocol/termination.cuh", "a worker that waits does not see a stop", "if (stop != kRun) return Waiting::kLeave;"
    ),
    "B21": Mutant(
        "cpu/backend.cpp",
        "fair batches for workers that are not there",
        "run.kernel.workers = run.blocks;",
        "",
        SAME + "workers take less at a time",
    ),
    "B23": Mutant(
        "cpu/worker.h",
        "a worker goes on after the others have left",
        "(!several && next == round_end && !opened) || next & kLastRound",
        "!several && next == round_end && !opened",
    ),
    "B25": Mutant(
        "cpu/backend.cpp",
        "discrete: an interrupted level is not finished first",
        "counters.head < run.first_end ? run.first_end : tail",
        "tail",
    ),
    "B26": Mutant(
        "cpu/backend.cpp",
        "persistent: an interrupted level is not finished first",
        "run.kernel.round_end = run.first_end;",
        "run.kernel.round_end = run.counters->tail;",
    ),
    "B27": Mutant(
        "cpu/worker.h", "batches are never made longer", "longest = std::min(2 * got, launch.fetch);", "longest = got;"
    ),
    "B28": Mutant(
        "cpu/worker.h",
        "arrivals are relaxed",
        "fetch_add(&meeting()->arrived, uint64_t(1))",
        "__atomic_fetch_add(&meeting()->arrived, 1, __ATOMIC_RELAXED)",
    ),
    "B29": Mutant(
        "cpu/worker.h",
        "the phase is relaxed",
        "store(&counters->phase, phase + 1)",
        "__atomic_store_n(&counters->phase, phase + 1, __ATOMIC_RELAXED)",
        SAME + "all read round_end behind it, which the last one has stored",
    ),
    "B30": Mutant("cpu/worker.h", "what was pushed is pushed again", "view.worker.count = int64_t(left);"),
    "B31": Mutant("cpu/worker.h", "pushes are not counted", "pushed += uint64_t(view.worker.count) - kept;"),
    "B33": Mutant("cpu/worker.h", "tasks are not counted", "ran += got;"),
    "B34": Mutant(
        "protocol/producer.cuh", "later pushes go to the first ring", "ring = queue.ring(k, queue.first_ticket_of(k));"
    ),
    "B35": Mutant(
        "cpu/backend.cpp",
        "the workers come one by one",
        "pool.start(run.launch.blocks);",
        "",
        SAME + "`ThreadPool::run` starts them; a task may have run when one is refused",
    ),
    "B36": Mutant(
        "cpu/backend.cpp",
        "progress of a launch is not signalled",
        "if (!run.launch.progress) return false;",
        "return false;",
    ),
    "B37": Mutant(
        "cpu/worker.h",
        "scratch is one for all",
        "view.worker.scratch = scratch.unsized();",
        "static unsigned char one[1 << 20];\n    view.worker.scratch = one;",
    ),
    "B39": Mutant(
        "cpu/scratch.h", "the first region overlaps the launch's scratch", "begin((unsized_bytes + 15) / 16 * 16)", "begin(0)"
    ),
    "B40": Mutant("cpu/scratch.h", "regions of scratch overlap", "begin += (bytes + 15) / 16 * 16;", "begin += bytes / 2;"),
    "B41": Mutant("cpu/scratch.h", "each call has another region", "if (known == place) return", "if (known != place) return"),
    "B42": Mutant("cpu/worker.h", "all workers are the first", "run.first_worker + number;", "0;"),
    "B38": Mutant("cpu/worker.h", "the high-water mark counts for one flush only", "producer.reserved = 0;"),
}

THREADS = {
    "X01": Mutant("cpu/thread_pool.h", "one thread too many works", "if (number >= num_active)", "if (number > num_active)"),
    "X02": Mutant(
        "cpu/thread_pool.h", "the end of the last thread is not signalled", "if (--left == 0) done.notify_one();", "--left;"
    ),
    "X03": Mutant(
        "cpu/thread_pool.h",
        "a new thread does the last work again",
        "seen = generation] {",
        "seen = uint64_t(0)] {",
        SAME + "the number of a new thread is beyond what was wanted before",
    ),
    "X04": Mutant("cpu/thread_pool.h", "threads are not woken", "++generation;\n      wake.notify_all();", "++generation;"),
    "X05": Mutant("cpu/launch_thread.h", "what a job throws is lost", "if (failure) std::rethrow_exception(failure);"),
    "X06": Mutant(
        "cpu/thread_pool.h", "the caller does not wait for the threads", "done.wait(lock, [&] { return left == 0; });"
    ),
    "X07": Mutant(
        "cpu/thread_pool.h",
        "the threads are not told of the end",
        "closing = true;\n    }\n    wake.notify_all();",
        "closing = true;\n    }",
    ),
    "X08": Mutant("cpu/thread_pool.h", "all threads work", "num_active = count;", "num_active = 1u << 20;"),
    "X09": Mutant(
        "cpu/thread_pool.h",
        "a thread that is refused ends all",
        "catch (const std::system_error &error)",
        "catch (const std::bad_alloc &error)",
    ),
    "X10": Mutant(
        "cpu/thread_pool.h",
        "what a thread throws is lost",
        "if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));",
    ),
    "X11": Mutant("cpu/thread_pool.h", "what the caller's part throws ends the wait", "attempt(f, 0);", "f(0);"),
    "V01": Mutant("host/stop_monitor.h", "a limit of centuries overflows", " && launch.timeout < 1e9", ""),
    "V02": Mutant(
        "host/stop_monitor.h",
        "a worker that does not stop is waited for",
        "if (grace <= Clock::duration::zero())",
        "if (false)",
    ),
    "V03": Mutant("host/stop_monitor.h", "questions at every look", "next_callback = now + kPollInterval;"),
    "V04": Mutant(
        "host/stop_monitor.h",
        "no timeout",
        "stop = now >= deadline ||",
        "stop =",
        RARE + "workers then stop by their own clock, a tenth of a second later, and no test asserts a time",
    ),
    "V05": Mutant("host/stop_monitor.h", "no time of grace", "duration grace = kGrace;", "duration grace{};"),
    "V06": Mutant("host/stop_monitor.h", "a worker that is asked may use a queue", "in_callback() = true;"),
    "V07": Mutant("host/stop_monitor.h", "once asked, nobody may use a queue", "in_callback() = false;"),
    "V08": Mutant("host/stop_monitor.h", "the answer is ignored", "poll_callback(state) != 0", "poll_callback(state) > 1"),
    "V09": Mutant(
        "host/stop_monitor.h", "workers have no limit of their own", ": deadline + kOwnPatience;", ": Clock::time_point::max();"
    ),
    "V10": Mutant(
        "host/stop_monitor.h",
        "workers that stop by their clock are started again",
        "if (!(reasons & kStopAsked) || stop)",
        "if (true)",
    ),
    "V11": Mutant(
        "cpu/time_limit.h", "a worker keeps to itself that time is over", "set_bits(&queue.counters->stop, kStopAsked);", ";"
    ),
}

KEPT = {
    "Y01": Mutant("cpu/memory.cpp", "what is kept comes again as it was", "std::memset(begin + i * page, 0, page);", ";"),
    "Y02": Mutant("cpu/memory.cpp", "a forked child keeps memory", "is_first_process() && madvise", "madvise"),
    "Y03": Mutant(
        "cpu/memory.cpp", "a forked child takes its parent's locks", "  if (!is_first_process()) return;\n  for", "  for"
    ),
    "Y04": Mutant("cpu/memory.cpp", "any block is large enough", "take(bytes, bytes)", "take(0, UINT64_MAX)"),
    "Y05": Mutant(
        "cpu/memory.cpp",
        "nothing goes back to the system",
        "take_all()) munmap(range.begin, range.bytes);",
        "take_all()) (void)range;",
    ),
    "Y06": Mutant("host/kept_ranges.h", "any number is kept", "if (ranges.size() <= most) return {};", "return {};"),
    "Y07": Mutant("host/kept_ranges.h", "the size is no matter", "found.bytes < least || found.bytes > greatest", "false"),
    "Y08": Mutant("host/kept_ranges.h", "all is handed out twice", "ranges.clear();"),
    "Y09": Mutant("host/kept_ranges.h", "one is handed out twice", "      ranges.erase(ranges.begin() + std::ptrdiff_t(i));\n"),
}

INBOX, HOST_INBOX, STARTED = "protocol/inbox.cuh", "host/inbox.cpp", "host/launch.cpp"
INBOX_MUTANTS = {
    "M01": Mutant(INBOX, "an open inbox is finished", "delivery.last = sent & kClosed && ", "delivery.last = "),
    "M02": Mutant(INBOX, "an inbox with items is finished", " && delivery.count == there;", ";"),
    "M03": Mutant(INBOX, "two workers have the inbox", "if (state & kInboxHeld || ", "if ("),
    "M04": Mutant(INBOX, "places are not given back", "store_system(&inbox->taken, delivery.first + delivery.count);"),
    "M05": Mutant(
        INBOX, "an older look finds items", "items > delivery.first ? items - delivery.first : 0", "items - delivery.first"
    ),
    "M06": Mutant(INBOX, "an item again and again", "(delivery.first + i) % kInboxItems", "delivery.first % kInboxItems"),
    "M07": Mutant(
        INBOX, "the inbox is kept", "else store(&queue.counters->inbox", "else if (delivery.count) store(&queue.counters->inbox"
    ),
    "M08": Mutant(
        INBOX,
        "a ring is filled",
        "(ring.size + 1) / 2",
        "ring.size",
        SAME + "what finds its slot occupied is spilled, and the launch goes on",
    ),
    "M09": Mutant(
        INBOX,
        "a slot is not looked at",
        "ring.first_generation(last) || ",
        "true || ",
        SAME + "what finds its slot occupied is spilled, and the launch goes on",
    ),
    "M10": Mutant(HOST_INBOX, "closing is not told", "asked |= kClosed;"),
    "M11": Mutant(HOST_INBOX, "a closed inbox takes items", "if (asked & kClosed) throw", "if (false) throw"),
    "M12": Mutant(HOST_INBOX, "an inbox takes items after its end", "if (state == State::kEnded) throw", "if (false) throw"),
    "M13": Mutant(
        HOST_INBOX, "items are overwritten", "kInboxItems - (sent - load_system(&memory.ring->taken))", "kInboxItems"
    ),
    "M14": Mutant(HOST_INBOX, "items are not told", "sent += some;\n  tell();", "sent += some;"),
    "M15": Mutant(HOST_INBOX, "what was taken is left too", "taken = load_system(&memory.ring->taken);", "taken = 0;"),
    "M16": Mutant(HOST_INBOX, "a launch without the queue has begun", "&& !begun) throw", "&& false) throw"),
    "M17": Mutant(STARTED, "a recovery forgets what was taken", "inbox_state = counters.inbox;"),
    "M18": Mutant(
        STARTED, "an inbox does not count", "counters.untracked = !(inbox_state & kInboxHeld);", "counters.untracked = 0;"
    ),
    "M19": Mutant("host/launch.cpp", "the rest is dropped", "inbox->take_rest(&storage.overflow);", ""),
    "M20": Mutant(STARTED, "nobody learns of the begin", "launch.inbox->begin();"),
    "M21": Mutant(STARTED, "nobody learns of the end", "if (inbox) inbox->end();"),
    "M22": Mutant(STARTED, "a stopped inbox goes on counting", "storage.counters.untracked = 0;"),
    "M23": Mutant(
        "host/recovery.cpp", "what exceeds the queue is dropped", "spill.keep(recovery.tail, last.end, spilled);", ""
    ),
    "M24": Mutant("host/stop_monitor.h", "an inbox stops nothing", "inbox && inbox->stop_asked", "false"),
    "M25": Mutant("cpu/worker.h", "idle workers do not look", "if (launch.inbox) take_from_inbox();"),
    "M26": Mutant(
        "cpu/worker.h", "busy workers do not look", "if (launch.inbox && ++steps % kStepsBetweenLooks == 0) take_from_inbox();"
    ),
    "M27": Mutant("device/inbox.cuh", "nothing is delivered too", "if (delivery.count == 0) return;"),
    "M28": Mutant(INBOX, "a stop is not read", "if (sent & kStopSent) set_bits(&counters->stop, kStopAsked);"),
    "M29": Mutant(HOST_INBOX, "a stop is not told", "asked |= kStopSent;"),
}

FAR = {
    "F01": Mutant("protocol/far_items.cuh", "far items are not unfinished", "fetch_add(&queue.counters->untracked, n);"),
    "F02": Mutant(
        "protocol/far_items.cuh",
        "a list opens while chunks run",
        "all_done = load(&state().left) == 0;",
        "all_done = true;",
        RARE + "`open` has looked at it before",
    ),
    "F03": Mutant(
        "protocol/far_items.cuh",
        "all chunks are one",
        "chunks = ((begin + n - 1) >> shift) - (begin >> shift) + 1;",
        "chunks = 1;",
    ),
    "F04": Mutant(
        "protocol/far_items.cuh",
        "blocks are never free again",
        "fetch_add(&free_blocks()[block / 64], uint64_t(1) << block % 64);",
    ),
    "F05": Mutant(
        "protocol/far_items.cuh",
        "a block is free too early",
        "fetch_add(&unread()[block], 0 - n) == n",
        "fetch_add(&unread()[block], 0 - n) >= n",
    ),
    "F06": Mutant(
        "protocol/far_items.cuh", "a block takes the place of another", "load(word) ? kNoBlock : take_block", "take_block"
    ),
    "F07": Mutant("protocol/far_items.cuh", "a place in the directory is never free", "store(word, 0);"),
    "F08": Mutant("protocol/far_items.cuh", "the window does not move down", "if (ahead < 0) move_window_down(bucket);"),
    "F09": Mutant("protocol/far_items.cuh", "the window does not move on", "window.current += float(i);"),
    "F10": Mutant(
        "protocol/far_items.cuh", "the lowest level beyond is not known", "least == kEmpty ? window", "true ? window"
    ),
    "F11": Mutant(
        "protocol/far_items.cuh",
        "no limit of the width",
        "inverse_width > kMostScale || inverse_width < 1 / kMostScale",
        "false",
    ),
    "F12": Mutant(
        "protocol/far_items.cuh",
        "lists of another width are not known",
        "store(&state().misplaced, misplaced);",
        "",
    ),
    "F13": Mutant(
        "protocol/far_items.cuh", "without a block an item is lost", "else queue.spill_one(item, far_ticket(list, ticket));", ""
    ),
    "F14": Mutant(
        "protocol/far_items.cuh",
        "without a block nobody stops",
        "return set_bits(&queue.counters->stop, kStopFull);",
        "return;",
    ),
    "F15": Mutant(
        "protocol/far_layout.cuh",
        "what is no number comes first",
        "level == level ? level : INFINITY",
        "level == level ? level : -INFINITY",
    ),
    "F16": Mutant("protocol/far_layout.cuh", "an entry is not emptied, small items", "store(&word, kEmpty);"),
    "F17": Mutant(
        "protocol/far_layout.cuh",
        "large items lose a word",
        "store(&item[i], value.word[i]);",
        "store(&item[0], value.word[i]);",
    ),
    "F18": Mutant("protocol/far_items.cuh", "the first tickets of a list come again", "store(&lists()[list].head, begin + n);"),
    "F19": Mutant("host/prioritized.cpp", "far items of the host are not unfinished", "counters.untracked += num_far;"),
    "F20": Mutant("host/prioritized.cpp", "lists are not made empty", "far_memory().empty();"),
    "F21": Mutant("host/far_memory.cpp", "blocks of the host's items are free", "free &= free - 1;"),
    "F22": Mutant(
        "host/far_memory.cpp",
        "far items are not recovered",
        "if (!entries[i].take(&value, &one.level)) continue;",
        "continue;",
    ),
    "F44": Mutant(
        "host/far_memory.cpp",
        "far items of the host's first blocks are lost",
        "store(run), run.first = place;",
        "run.entries.clear(), run.first = place;",
    ),
    "F45": Mutant(
        "host/far_memory.cpp", "what nobody claimed of an open list is lost", "its->lists[its->open].head = its->unclaimed;"
    ),
    "F46": Mutant(
        "host/far_memory.cpp",
        "the blocks of claimed chunks are lost",
        "its.free_blocks[block / 64] |= uint64_t(1) << block % 64;",
    ),
    "F47": Mutant(
        "host/far_memory.cpp",
        "the rest of a claimed block never becomes free",
        "its.unread[block] = end <= its.unclaimed ? kBlockItems : end - its.unclaimed;",
    ),
    "F48": Mutant(
        "host/far_memory.cpp",
        "items that came to the host stay in their chunk",
        "backend.fill(memory + at.items_at + entry_at(word, from) * entry_words * 8, &ones, 8, n * entry_words);",
    ),
    "F49": Mutant(
        "host/far_memory.cpp",
        "a list is cut before a block that came too late",
        "if (word) return false; // a block that came too late",
        "(void)word;",
        RARE + "a block would have to become free while the last workers leave",
    ),
    "F23": Mutant(
        "host/prioritized.cpp",
        "a shortage of blocks does not grow the memory",
        "spilled && size < max_size ?",
        "false ?",
        RARE + "the next try may have blocks",
    ),
    "F24": Mutant("cpu/worker.h", "far items that were pushed again are not finished", "end.unreported += taken;"),
    "F25": Mutant(
        "cpu/worker.h", "a round ends although a bucket was opened", "next == round_end && !opened)", "next == round_end)"
    ),
    "F26": Mutant(
        "cpu/backend.cpp",
        "a round of idle calls that pushed far items ends all",
        " && counters.far.stored == far) return;",
        ") return;",
    ),
    "F27": Mutant(
        "protocol/queue_ref.cuh",
        "far items do not end quiescence",
        "tickets_of(load(&counters->tail)) + load(&counters->untracked) == counted",
        "tickets_of(load(&counters->tail)) <= counted",
    ),
    "F28": Mutant(
        "device/group_worker.cuh",
        "GPU: no fence before far items run",
        "fence(); // what was written before the items were pushed",
        "",
        GPU + "order",
    ),
    "F29": Mutant(
        "device/far_work.cuh",
        "GPU: no fence behind far items that stay",
        "fence(); // some may stay with the worker, and need what was written before they were pushed",
        "",
        GPU + "order",
    ),
    "F30": Mutant("protocol/far_items.cuh", "a list is opened and not said to be open", "store(&state().left, chunks);"),
}

KINDS = {
    "K01": Mutant("host/kinds.cpp", "the queue before goes on", "replaced = true;"),
    "K02": Mutant("host/kinds.cpp", "all items get the first kind", "kinds[from == to ? item[from - 1] : 0]", "kinds[0]"),
    "K03": Mutant("host/kinds.cpp", "an item without kind is kept", "if (now[to - 1] == ATOS_NO_KIND) return false;"),
    "K04": Mutant("host/kinds.cpp", "kinds keep their numbers", "kind < 256 && same", "kind < 0 && same"),
    "K05": Mutant("host/kinds.cpp", "the limit is forgotten", "next->storage.max_size = storage.max_size.load();"),
    "K06": Mutant("host/kinds.cpp", "the tasks that ran are forgotten", "next->total_ran = total_ran;"),
    "K07": Mutant("host/queue.cpp", "the queue before is used", "if (replaced) throw", "if (false) throw"),
    "K08": Mutant(
        "host/launch.cpp",
        "tasks by kind are those of all launches",
        "std::fill(std::begin(counters.ran_by), std::end(counters.ran_by), 0);",
    ),
    "K09": Mutant("cpu/worker.h", "tasks by kind are not counted", "k < given.kinds", "k < 0 * given.kinds"),
    "K10": Mutant("device/load_balance.cuh", "flat tasks beside loops do not run", "if (flat_kinds) run_flat(got);"),
    "K11": Mutant("device/load_balance.cuh", "loops run as flat tasks too", "if (!is_flat(items[k])) continue;"),
    "K12": Mutant(
        "device/load_balance.cuh",
        "a flat task begins before all have left the one before",
        "Group::sync(); // before the space for scans, reductions and scratch is used again",
        "",
        GPU + "threads of one worker",
    ),
    "K13": Mutant(
        "device/worker_state.cuh", "a kind is another byte", "item.word[bytes / 8 - 1] >> 56", "item.word[bytes / 8 - 1] >> 48"
    ),
    "K14": Mutant(
        "device/host_report.cuh",
        "the next launch counts on",
        "for (unsigned k = 0; k < num_kinds; ++k) store(&counters->ran_by[k], 0);",
        "",
        GPU + "the device's counters",
    ),
}

RECEIVE, RECEIVERS = "protocol/receiver.cuh", "host/receivers.cpp"
OTHERS = {
    "O01": Mutant(RECEIVE, "who fills a receiver asks for no stop", "if (full) set_bits", "if (false) set_bits"),
    "O03": Mutant(RECEIVE, "all items have one ticket", "queue.reserve(1)", "queue.reserve(0)"),
    "O04": Mutant(
        "host/receivers.cpp",
        "what was spilled is forgotten",
        "if (counters.spilled) recover(level ? counters.head + level : 0, true);",
        "",
    ),
    "O05": Mutant(RECEIVERS, "what was pushed is forgotten", "backend.copy(&counters, device_counters, sizeof counters);"),
    "O06": Mutant(RECEIVERS, "the receiver's counters are old", "backend.copy(device_counters, &counters, sizeof counters);"),
    "O07": Mutant(RECEIVERS, "a queue may be its own receiver", "given.queue == this || "),
    "O08": Mutant(RECEIVERS, "a receiver may have buckets", "its.has_buckets() ||", "false ||"),
    "O09": Mutant(
        "host/receivers.cpp",
        "a full receiver is no end",
        "room &= !its.lost && (!its.over_capacity() || its.ensure_capacity(its.num_pending()));",
        "",
    ),
    "O10": Mutant(
        RECEIVERS,
        "queues are locked in any order",
        "std::sort(queues.begin(), queues.end(), std::less<atos_queue *>());",
        "",
        RARE + "two launches have to be between their two locks at once",
    ),
    "O11": Mutant("host/launch.cpp", "a full receiver is not reported", "  report_full_receiver(run, stats);\n"),
}

GROUP = "host/process_group.cpp"
PEERS, HOST_PEERS, PUSHES = "protocol/peers.cuh", "host/peers.cpp", "cpu/peer_pushes.h"
DEVICES = {
    "D01": Mutant(PEERS, "a device ends alone", "untracked) && ended()) {", "untracked)) {"),
    "D02": Mutant(
        PEERS, "what is confirmed is read as before", "fetch_add(&peer[k].counters->tail, 0)", "load(&peer[k].counters->tail)"
    ),
    "D03": Mutant(PEERS, "the first device is told the end alone", "tell(kEnded);", "set_bits(&queue.counters->stop, kEnded);"),
    "D04": Mutant(PEERS, "a stop of a device is its own", "tell(kStopElsewhere);", ";"),
    "D05": Mutant(PEERS, "the owner is one too small", "number += key - number * chunk >= chunk;"),
    "D06": Mutant(PEERS, "there are devices beyond the last", "number < count ? number : count - 1", "number"),
    "D07": Mutant(PEERS, "a key of 4 bytes has 8", "key_bytes == 4 ? uint32_t(item.word[0]) : item.word[0]", "item.word[0]"),
    "D08": Mutant(PEERS, "tasks that ran are not reported", "    end.report(queue);\n"),
    "D09": Mutant(
        PEERS,
        "devices go on before all have met",
        "fetch_add(&meeting()->met, uint64_t(1)) + 1 == (before + 1) * count",
        "true",
    ),
    "D10": Mutant(
        PUSHES, "pushes keep their places", "sorted[--ends[owners[i]]] = items[i];", "sorted[i] = items[i], --ends[owners[i]];"
    ),
    "D11": Mutant(
        PUSHES,
        "a queue is asked for space once",
        "    producer.reserved = 0;\n",
        "",
        SAME + "a push without space spills, and its launch goes on",
    ),
    "D12": Mutant(HOST_PEERS, "a queue may be given twice", "locks.size() != all.queues.size()", "false"),
    "D13": Mutant("host/launch.cpp", "queues of a stuck launch can be used", "if (storage.disordered) abandoned = run;", ""),
    "D14": Mutant(HOST_PEERS, "a stop at the end of all is one", "counters.stop = kRun;"),
    "D15": Mutant(HOST_PEERS, "a timeout goes unnoticed", "bool stays = runs[0]->monitor.stopped();", "bool stays = false;"),
    "D16": Mutant(
        HOST_PEERS,
        "all workers have numbers from 0 on",
        "first_worker = std::accumulate(",
        "first_worker = 0 * std::accumulate(",
    ),
    "D18": Mutant(PEERS, "the last device opens a round alone", "more |= tail != load", "more = tail != load"),
    "D19": Mutant(PEERS, "a round follows a stop", "stopped |= stop != kRun;", "(void)stop;"),
    "D20": Mutant(PEERS, "claims of a round go on", "lower_to(&its.head, end);"),
    "D49": Mutant(
        PEERS,
        "head goes to the end of a round that was interrupted",
        "lower_to(&its.head, end);",
        "store(&its.head, end);",
    ),
    "D50": Mutant(PEERS, "the end of an interrupted round is forgotten", "load(&its.round_end) | kLastRound", "kLastRound"),
    "D21": Mutant(
        HOST_PEERS, "devices without a rest of a level go on", "barrier && of_level ?", "barrier && storage(k).level ?"
    ),
    "D22": Mutant(HOST_PEERS, "an interrupted round counts twice", "--rounds;", "(void)rounds;"),
    "D23": Mutant("cpu/worker.h", "devices meet alone", "return to_peers.peers.meeting();", "return queue.counters;"),
    "D17": Mutant("host/peers.cpp", "a full queue is no end", "run.full = storage.over_limit() ||", "run.full = false &&"),
    "D24": Mutant(GROUP, "nobody notices while workers run that a process is gone", "    any |= left[k] != 0;\n"),
    "D25": Mutant(GROUP, "nobody notices in a gather that a process is gone", "  if (!complete) check_complete();\n"),
    "D26": Mutant(
        "cpu/worker.h",
        "workers wait at a barrier for a process that is gone",
        "if (several && load(&queue.counters->stop) & kStopGone) return false;",
        "{}",
    ),
    "D27": Mutant(
        "host/queue.cpp", "queues of a launch that a process left are used", "if (forsaken) throw", "if (false) throw"
    ),
    "D28": Mutant(
        "cpu/shared_range.cpp",
        "memory given back holds what it held",
        "if (!removes || madvise(pointer, size, MADV_REMOVE) != 0) cpu::clear({pointer, size});",
        "(void)size;",
    ),
    "D29": Mutant("cpu/shared_range.cpp", "memory given back is not used again", "  parts.give(at);\n"),
    "D30": Mutant(
        HOST_PEERS, "queues are where their own processes have them", "moved((*table)[k], memory_of(k))", "(*table)[k]"
    ),
    "D31": Mutant(HOST_PEERS, "counters stay in shared memory", "  if (group) storage(0).backend.collect_peers(runs);\n", ""),
    "D38": Mutant(
        HOST_PEERS,
        "a trace goes on where the last has ended",
        "counters.ran_so_far = counters.next_sample = counters.sampled = 0;",
    ),
    "D39": Mutant(HOST_PEERS, "all devices have the samples of the first", " + uint64_t(k) * options.max_samples", ""),
    "D40": Mutant("cpu/backend.cpp", "the progress is that of the last device", "now->ran += load", "now->ran = load"),
    "D32": Mutant(
        PEERS,
        "an interrupted round of several devices is over",
        "ran &= has_buckets ? ran_all_below(&its, end) : load(&its.finished) == end;",
    ),
    "D33": Mutant(PEERS, "the last device alone has run its round", "ran &= has_buckets", "ran = has_buckets"),
    "D34": Mutant(PEERS, "what waits on the last device is what waits", "n += tickets_of", "n = tickets_of"),
    "D35": Mutant(
        PEERS,
        "the first device is told the mode alone",
        "store(&peer[k].counters->mode, mode);",
        "store(&peer->counters->mode, mode);",
    ),
    "D36": Mutant(
        HOST_PEERS,
        "the mode of a launch is that of the one before",
        "counters.rounds = counters.mode = 0",
        "counters.rounds = 0",
    ),
    "D41": Mutant(PEERS, "no round of far items follows on several devices", "if (!more && !stopped) more = open_far();"),
    "D42": Mutant(PEERS, "all devices open their lowest buckets", "level <= least) opened", "true) opened"),
    "D43": Mutant(
        PEERS, "devices at one bucket wait for each other", "load(&its.far.next))) < level", "load(&its.far.next))) <= level"
    ),
    "D44": Mutant(
        PEERS, "a device does not say what it waits for", "store(&peer[own].counters->far.next, uint64_t(bits_of(level)));"
    ),
    "D45": Mutant(
        HOST_PEERS, "far items of other processes are looked for here", "move(peer.spill), move(peer.far);", "move(peer.spill);"
    ),
    "D46": Mutant("cpu/peer_pushes.h", "far items of others stay with the worker", "n += pushes.store();"),
    "D47": Mutant("cpu/peer_pushes.h", "near items of others stay with the worker", "if (n) publish(near.data(), n);"),
    "D48": Mutant(HOST_PEERS, "who shows no progress counts none", "its.progress; });", "false && its.progress; });"),
    "D37": Mutant(
        HOST_PEERS,
        "tasks of earlier launches are counted by kind",
        "    std::fill(std::begin(counters.ran_by), std::end(counters.ran_by), 0);\n",
    ),
}

RECOVERY = {
    "E01": Mutant(
        "protocol/queue_ref.cuh",
        "the last worker to leave tells its tickets, not the one with the lowest",
        "lower_to(&counters->first_left, first);",
        "store(&counters->first_left, first);",
    ),
    "E02": Mutant(
        "cpu/worker.h", "a worker leaves its tickets untold", "if (consumer.claimed) queue.leave_tickets(consumer.first);", ""
    ),
    "E03": Mutant(
        "host/in_place_recovery.h",
        "items of an older generation are not found",
        "distance > 1 || distance % 2 == 0",
        "distance != 1",
    ),
    "E04": Mutant(
        "host/in_place_recovery.h",
        "what was spilled under claimed tickets is dropped",
        "items.left.insert(items.left.end(), items.spilled.begin(), spilled_from(unclaimed));",
        "",
    ),
    "E05": Mutant(
        "host/in_place_recovery.h",
        "what is left takes slots of pending items",
        "tail = std::min(tail, first + ring.size);",
        ";",
    ),
    "E06": Mutant(
        "host/in_place_recovery.h",
        "the same in a ring before the last",
        "else if (first + ring.size < ring.end) return false;",
        "",
    ),
    "E07": Mutant(
        "host/in_place_recovery.h",
        "a spilled item without a slot amid others",
        "if (!finds_its_slot(its.ticket)) return false;",
    ),
    "E08": Mutant(
        "host/in_place_recovery.h",
        "slots of spilled items stay as they were",
        "if (slot.distance() < 2) slot.free_next();",
        "if (slot.distance() == 1) slot.free_next();",
    ),
    "E09": Mutant(
        "host/in_place_recovery.h",
        "slots of the next generation are freed",
        "if (slot.distance() < 2) slot.free_next();",
        "slot.free_next();",
    ),
    "E10": Mutant(
        "host/recovery.cpp",
        "items whose slots others take are dropped",
        "if (!spill.write(counters.spilled, found.displaced)) return false;",
        "",
    ),
    "E11": Mutant(
        "host/in_place_recovery.h",
        "the first of the claimed tickets is not looked at",
        "std::max({first_left, ring.start, newest})",
        "std::max({first_left + 1, ring.start, newest})",
    ),
    "E12": Mutant(
        "host/recovery.cpp",
        "changed slots are not written back",
        "if (changed) queue.backend.copy(at, here, some * queue.slot_bytes);",
        "",
    ),
    "E13": Mutant(
        "host/recovery.cpp",
        "where rings begin is forgotten",
        "std::copy(first_tickets, first_tickets + growths + 1, counters.ring_first_ticket);",
        "",
    ),
    "E14": Mutant(
        "host/recovery.cpp",
        "the memory of rings is taken for new",
        "counters.tail = recovery.tail + growths * kGrowth;",
        "counters.tail = recovery.tail;",
    ),
    "E15": Mutant(
        "host/launch.cpp",
        "a launch that finds no memory at its end forgets what its workers left",
        "if (run->left_behind || run->has_run) storage.note_run();\n  if (storage.disordered) abandoned = run;",
        "if (run->left_behind) abandoned = run;",
    ),
    "E17": Mutant(
        "host/spill_area.cpp",
        "the newest of the spilled items comes first",
        "const uint64_t place = spilled.ticket - kept.begin;",
        "const uint64_t place = (spilled.ticket - kept.begin + (spilled.ticket < kept.end)) % num_kept();",
    ),
    "E19": Mutant(
        "host/spill_area.cpp",
        "items are written over spilled ones",
        "(count + done) * each, staging",
        "(count + done - (count > 0)) * each, staging",
    ),
    "E20": Mutant(
        "host/queue_storage.cpp",
        "what the spill area keeps runs a second time",
        "  spill.forget();\n}\n\n// Adds rings",
        "}\n\n// Adds rings",
    ),
    "E22": Mutant(
        "host/queue_storage.cpp",
        "a cleared queue has what the spill area keeps",
        "  spill.forget();\n  in_lists = false;",
        "  in_lists = false;",
    ),
    "E21": Mutant(
        "host/recovery.cpp",
        "what the spill area keeps is not read",
        "spill.read_kept(&result[result.size() - kept * item_bytes]);",
        "",
    ),
    "E18": Mutant(
        "host/queue_storage.cpp",
        "rings that are added begin one ticket late",
        "counters.ring_first_ticket[ring] = tickets + kGrown;",
        "counters.ring_first_ticket[ring] = tickets + kGrown + 1;",
    ),
}

#: Workers of several threads on a CPU.
TEAM = {
    "T01": Mutant("cpu/team.cpp", "threads that wait at two places meet", " && member->site == site;", ";"),
    "T02": Mutant(
        "cpu/team.cpp",
        "a group meets threads that wait for the worker",
        " && member->group == group && member->site",
        " && member->site",
        SAME + "a site is that of one call, so threads that wait there wait for one group or for the worker",
    ),
    "T03": Mutant(
        "cpu/team.cpp",
        "nobody reports that threads do not come",
        "    atos_cpu_fail(one.site, elsewhere, came, int64_t(size));\n",
        "",
    ),
    "T04": Mutant(
        "cpu/team.cpp",
        "threads that wait in vain go on",
        "members[k]->state = Member::kRuns, members[k]->met = false;",
        "members[k]->state = Member::kRuns, members[k]->met = true;",
    ),
    "T05": Mutant(
        "cpu/team.cpp",
        "scratch keeps what an earlier iteration wrote",
        "if (filled != iteration) std::memset(at, 0xff, bytes);",
        "",
    ),
    "T06": Mutant(
        "cpu/team.cpp",
        "scratch keeps what an earlier task wrote",
        "    std::memset(at, 0xff, bytes);\n    return at;",
        "    return at;",
    ),
    "T07": Mutant("cpu/team.cpp", "groups share a region", "place += current / size_of(group) * 0x9e3779b97f4a7c15;", ""),
    "T08": Mutant("cpu/team.cpp", "a thread goes on until it waits", "if (threads && draw() % kTurns == 0) end_turn();", ""),
    "T09": Mutant("cpu/team.cpp", "all items have one order", "seed = mix(seed + word);", ""),
    "T10": Mutant("cpu/team.cpp", "a NaN wins in a group", "      if (group && op != ATOS_SUM)", "      if (false)"),
    "T11": Mutant(
        "cpu/team.cpp",
        "groups of all sizes have one word",
        "const unsigned level = group ? unsigned(__builtin_ctz(group)) : 0, first",
        "const unsigned level = 0, first",
    ),
    "T12": Mutant(
        "cpu/team.cpp",
        "threads of a group begin iterations alone",
        "    return meet(group, kNoSite);\n",
        "    return group == 0 || true;\n",
    ),
    "T13": Mutant("cpu/team.cpp", "all threads are said to have come", "++came;", "came = size;"),
}

MUTANTS = {
    **ATOMIC,
    **RING,
    **QUEUE,
    **SHARE,
    **WORKER,
    **HOST,
    **CPU,
    **THREADS,
    **KEPT,
    **INBOX_MUTANTS,
    **FAR,
    **KINDS,
    **OTHERS,
    **DEVICES,
    **RECOVERY,
    **TEAM,
}
