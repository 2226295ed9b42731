"""The rules of the protocol, each with what breaks it: a model is worth something only if it catches every one."""

from __future__ import annotations

from model.source import Change

in_queue = in_ring = in_worker = in_share = Change

EARLY, STUCK, LOST, TWICE = "leaves early", "no way leads to the end", "was lost", "ran twice"
BEYOND, NO_REPORT = "beyond the end of an array", "the report is not complete"


class Rule:
    """A rule: what breaks it, the scenario that catches it, and part of what is said then."""

    def __init__(self, *broken_by: Change, caught_in: str, found: str = "") -> None:
        self.broken_by = broken_by
        self.caught_in = caught_in
        self.found = found


BROKEN = {
    # Slots.
    "claim is one addition": Rule(
        in_queue(
            r"return add\(&counters->head, n\);", "uint64_t h = load(&counters->head); store(&counters->head, h + n); return h;"
        ),
        caught_in="full, two workers",
    ),
    "reserve is one addition": Rule(
        in_queue(
            r"return add\(&counters->published, n\);",
            "uint64_t p = load(&counters->published); store(&counters->published, p + n); return p;",
        ),
        caught_in="full, two workers",
    ),
    "publish looks at the turn": Rule(in_queue(r"!slot\.has\(place\.turn\)", "false"), caught_in="full, two workers"),
    "turns tell laps apart": Rule(in_ring(r"return \{index, 2 \* lap\};", "return {index, 0};"), caught_in="full, two workers"),
    "get before retire": Rule(
        in_worker(
            r"if \(got == 0\) return 0;",
            r"\g<0> for (unsigned k = 0; k < got; ++k)"
            r" ring.template slot<bytes>(ring.at(first + k).index).retire(ring.at(first + k).turn);",
        ),
        caught_in="full, large items",
        found=TWICE,
    ),
    "a batch uses up its own tickets": Rule(
        in_worker(r"consumer\.first = first \+ got;", "consumer.first = first + got - (got > 1);"),
        caught_in="several tickets, not filled yet",
        found=STUCK,
    ),
    "no more is claimed than there is room for": Rule(
        in_worker(r"part < launch\.fetch \? part : launch\.fetch", "part"),
        caught_in="barrier, several tickets",
        found=BEYOND,
    ),
    # Stops.
    "spill_one keeps the item": Rule(
        in_queue(r"if \(at < spill_size\)", "if (false)"), caught_in="full, two workers", found=LOST
    ),
    "spill_one asks for a stop": Rule(
        in_queue(r"store\(&counters->stop, kStopFull\);", ""), caught_in="full, two workers", found=STUCK
    ),
    "while_waiting sees the stop": Rule(
        in_worker(r"if \(stop != kRun\) return Action::kLeave;(\s*header->consumer\.look_for_ring)", r"\1"),
        caught_in="full, two workers",
        found=STUCK,
    ),
    "no round follows a stop": Rule(
        in_worker(r"queue\(\)\.stopped\(\) \? kNever : tickets_of", "tickets_of"), caught_in="stopped from outside, barrier"
    ),
    "a check that fails asks for a stop": Rule(
        in_queue(r"store\(&counters->stop, kStopTask\);", ""), caught_in="a check fails"
    ),
    "the first failure is kept": Rule(
        in_queue(r"if \((add\(&counters->failures, uint64_t\(1\)\)) == 0\)", r"\1;"),
        caught_in="weak, checks fail",
        found="unordered stores to failure",
    ),
    # The end.
    "finish after publishing": Rule(
        in_worker(
            r"producer\.reserve\(queue\(\), given\);",
            r"{ if (header->step == Action::kItems && header->counted)"
            r" queue().finish(header->step.count()), header->counted = 0; \g<0> }",
        ),
        caught_in="full, two workers",
        found=EARLY,
    ),
    "ended reads finished first": Rule(
        in_queue(r"(const uint64_t finished = [^;]*;)\s*fence\(\);(\s*\*published = [^;]*;)", r"\2 \1"),
        in_queue(r"add\(&counters->published, 0\)", "*published"),  # which would read it last
        caught_in="full, two workers",
        found=EARLY,
    ),
    "ended confirms": Rule(
        in_queue(r"add\(&counters->published, 0\)", "*published"), caught_in="weak, small items", found=EARLY
    ),
    "owed is flushed": Rule(
        in_worker(r"queue\(\)\.finish\(header->owed\);\s*header->owed = 0;", ""), caught_in="kept", found=STUCK
    ),
    "owed waits for what is kept": Rule(
        in_worker(
            r"const uint32_t kept = header->kept;(\s*bool)",
            r"const uint32_t kept = header->kept; if (kept && header->owed) queue().finish(header->owed), header->owed = 0; \1",
        ),
        caught_in="kept",
        found=EARLY,
    ),
    # What is kept, and what is given.
    "kept items have no ticket": Rule(in_worker(r"header->counted = kept == 0;", "header->counted = 1;"), caught_in="kept"),
    "what is kept runs once": Rule(in_worker(r"header->kept = 0;", ""), caught_in="kept", found=TWICE),
    "what is kept is not given": Rule(
        in_worker(r"worker\.buffer \+ kept, n - kept", "worker.buffer, n - kept"), caught_in="kept"
    ),
    "no more is kept than there is room for": Rule(
        in_worker(r"launch\.fetch / 2 \+ 1;", "launch.fetch / 2 + 2;"), caught_in="kept", found=BEYOND
    ),
    "what is given is not kept": Rule(in_worker(r"header->kept = n - given;", "header->kept = n;"), caught_in="gift"),
    "what is given has tickets": Rule(
        in_worker(r"if \(given && !producer\.reserved\) producer\.reserve\(queue\(\), given\);", ""), caught_in="gift"
    ),
    "what the buffer did not hold is not handed on again": Rule(
        in_worker(r"header->pushes < launch\.buffer \? header->pushes : launch\.buffer;", "header->pushes;"),
        caught_in="small buffer, two launches",
    ),
    # Statistics.
    "every task of a batch is counted": Rule(
        in_worker(r"header->ran \+= step\.count\(\);", "header->ran += 1;"),
        caught_in="several tickets, report",
        found=NO_REPORT,
    ),
    "what is kept was pushed": Rule(
        in_worker(r"header->pushed \+= pushes;", "header->pushed += given;"),
        caught_in="several tickets, report",
        found=NO_REPORT,
    ),
    # Steps.
    "handing on is no step": Rule(
        in_worker(r"return Action::kHandOn;", "return header->step = Action::kHandOn;"),
        caught_in="handed on by all",
        found=STUCK,
    ),
    "a step is concluded once": Rule(
        in_worker(r"return Action::kHandOn;", "return conclude(), Action::kHandOn;"), caught_in="handed on by all"
    ),
    "a chunk belongs to the batch before": Rule(
        in_worker(r"if \(verdict == Action::kItems\) (header->counted = kept == 0;)", r"\1"), caught_in="kept, then shared"
    ),
    "a chunk does not end a round": Rule(in_worker(r" && verdict != Action::kChunk", ""), caught_in="barrier, shares"),
    # Idle.
    "who pushes in idle is not quiet": Rule(
        in_worker(r"pushes \? kNever : header->candidate", "header->candidate"),
        in_queue(r" && tickets_of\(load\(&counters->published\)\) == published;", ";"),
        caught_in="idle, two workers",
        found=EARLY,
    ),
    "a late registration undoes nothing": Rule(
        in_queue(r"if \(newer < 0\) return;", ""), caught_in="idle, two workers", found=STUCK
    ),
    "all have to be quiet": Rule(
        in_queue(r"load\(&counters->quiet\) == \(published << kQuietBits\) \+ workers && ", ""),
        caught_in="idle, two workers",
        found=EARLY,
    ),
    "idle is called in every quiet round": Rule(
        in_worker(r"header->idle_called = 0;", ""), caught_in="barrier, idle again", found=EARLY
    ),
    # Barriers.
    "blocks wait for each other": Rule(in_worker(r"while \(load\(&counters->phase\) == phase\) \{\}", ""), caught_in="barrier"),
    "the last block decides": Rule(
        in_worker(
            r"const uint64_t next = load\(&counters->round_end\);",
            "const uint64_t next = queue().stopped() ? kNever : load(&counters->published);",
        ),
        caught_in="stopped from outside, barrier",
    ),
    "arrivals are counted anew in each launch": Rule(
        in_worker(r"&counters->direct, &counters->arrived, ", "&counters->direct, "),
        caught_in="barrier, idle again",
        found=STUCK,
    ),
    "claims of a round end with it": Rule(
        in_worker(r"end - first < want \? end - first : want;", "want;"), caught_in="barrier, several tickets"
    ),
    "head goes back to the end of a round": Rule(in_worker(r"store\(&counters->head, end\);", ""), caught_in="barrier"),
    # Shares.
    "the bit is set before chunks": Rule(
        in_share(r"set_bit\(&counters->open, at\);", ""),
        in_share(r"store\(&share\.chunks, kChunkBias \+ chunks\);", r"\g<0> set_bit(&counters->open, at);"),
        caught_in="shares of one chunk",
        found="the counters are not as",
    ),
    "direct is counted before chunks": Rule(
        in_share(r"if \(!has_ticket\) add\(&counters->direct, 1\);", ""),
        in_share(r"store\(&share\.chunks, kChunkBias \+ chunks\);", r"\g<0> if (!has_ticket) add(&counters->direct, 1);"),
        caught_in="kept, then shared",
        found=EARLY,
    ),
    "a chunk is published before it is done": Rule(
        in_worker(
            r"producer\.reserve\(queue\(\), given\);",
            r"{ int32_t &at = header->chunk.share;"
            r" header->owed += at >= 0 && chunk_done(static_cast<Share *>(launch.shares), at);"
            r" at = -1; \g<0> }",
        ),
        caught_in="shares",
        found=EARLY,
    ),
    "a place is free when all chunks are done": Rule(
        in_share(r"clear_bit\(&counters->open, at\);", r"{ \g<0> store(&share.busy, 0); }"), caught_in="shares"
    ),
    "a shared item is counted once": Rule(
        in_worker(r"header->owed \+= header->batch - header->shared;", "header->owed += header->batch;"), caught_in="shares"
    ),
    "what is shared is not run as well": Rule(
        in_worker(r"if \(length >= kLong\) any_long", "if (length > kLong) any_long"),
        caught_in="shares, several of a batch",
        found=TWICE,
    ),
    "nothing is kept beside a long item": Rule(in_worker(r" && !header->any_long;", ";"), caught_in="kept beside a long item"),
    # Growth.
    "a growth is one addition": Rule(
        in_queue(
            r"add\(&counters->published, kGrowth\)",
            "[&] { uint64_t p = load(&counters->published); store(&counters->published, p + kGrowth); return p; }()",
        ),
        caught_in="grows",
    ),
    "one worker sees to a growth": Rule(
        in_queue(r"exchange_if\(&counters->starts\[k \+ 1\], before, kGrowing\)", "true"), caught_in="grows"
    ),
    "memory comes first": Rule(in_queue(r"if \(k >= allowed\)", "if (false)"), caught_in="grows", found="without memory"),
    "more may be allowed than was asked for": Rule(
        in_queue(
            r"uint64_t wanted = load.*?if \(wanted <= k && exchange_if\(&counters->wanted, wanted, k \+ 1\)\)",
            "uint64_t wanted = k; if (exchange_if(&counters->wanted, wanted, k + 1))",
        ),
        caught_in="grows, ring after ring",
        found=STUCK,
    ),
    "a start is known before it is used": Rule(
        in_queue(r"if \(start >= kGrown\) return start", "return start"), caught_in="grows"
    ),
    "growths are no tasks": Rule(
        in_queue(r"if \(finished != tickets_of\(\*published\)", "if (finished != *published"), caught_in="grows", found=STUCK
    ),
    "who waits looks for a new ring": Rule(
        in_worker(r"look_for_ring\(queue\(\), published\);", "next_start = kNever;"), caught_in="grows", found=STUCK
    ),
    "who waits in a round does so too": Rule(
        in_worker(r"look_for_ring\(queue\(\), load\(&queue\(\)\.counters->published\)\);", "next_start = kNever;"),
        caught_in="grows, barrier",
        found=STUCK,
    ),
    "who has older tickets stays": Rule(
        in_worker(r"return ticket >= next_start;", "return ticket, next_start != kNever;"), caught_in="grows"
    ),
    "the ring after the next is not looked for before its time": Rule(
        in_worker(r"(\+\+growths, next_start\);)\s*next_start = kNever;", r"\1"), caught_in="grows, shares"
    ),
    "tickets in turn are handed on once": Rule(
        in_worker(r"header->pushes = producer\.reserved = 0", "header->pushes = 0"),
        caught_in="grows, kept",
        found=EARLY,
    ),
    "nobody waits for memory that will not come": Rule(
        in_queue(r"allowed & kNoMore && \(allowed & ~kNoMore\) <= k", "false"), caught_in="grows, no memory", found=STUCK
    ),
    # Memory order.
    "fence between put and fill": Rule(in_queue(r"slot\.put\(item\);\s*fence\(\);", "slot.put(item);"), caught_in="weak"),
    "fence between full and get": Rule(in_worker(r"(if \(got == 0\) return 0;)\s*fence\(\);", r"\1"), caught_in="weak"),
    "fence in hand_on": Rule(
        in_worker(r"if \(!local\) fence\(\);.*?\n", ""), caught_in="weak, small items", found="does not see"
    ),
    "fence in hand_on, some kept": Rule(
        in_worker(r"if \(local\) fence\(\);", ""), caught_in="weak, kept", found="does not see"
    ),
    "fence in push": Rule(
        in_worker(r"fence\(\);(\s*const uint64_t published = queue\(\)\.reserve\(1\))", r"\1"),
        caught_in="weak, small buffer",
        found="does not see",
    ),
    "fence in ended": Rule(
        in_queue(r"fence\(\);(\s*\*published = )", r"\1"),
        in_queue(r"add\(&counters->published, 0\)", "*published"),  # beside which the fence does not matter
        caught_in="weak, kept",
        found=EARLY,
    ),
    "fence in grid_barrier": Rule(in_worker(r"last\(\);\s*fence\(\);", "last();"), caught_in="weak, barrier"),
    "fence in open_share": Rule(in_share(r"fence\(\);(\s*store\(&share\.chunks)", r"\1"), caught_in="weak, shares"),
    "fence in claim_chunk": Rule(
        in_share(r"fence\(\); // behind the opener's writes, also of the bit", ""), caught_in="weak, shares"
    ),
    "fence before a place is used again": Rule(
        in_share(r"fence\(\); // who used the place before has read it", ""),
        caught_in="weak, a share after another",
        found="unordered stores to",
    ),
    "fence before a place is free": Rule(
        in_share(r"fence\(\);(\s*store\(&shares\[at\]\.busy, 0\))", r"\1"),
        caught_in="weak, a share after another",
        found="unordered stores to",
    ),
    "fence in grow": Rule(
        in_queue(r"fence\(\); // the memory was there before it was allowed", ""),
        caught_in="weak, grows",
        found="does not know of its memory",
    ),
    "fence before a block says that it left": Rule(
        in_worker(r"fence\(\);(\s*if \(add\(&counters->gone)", r"\1"), caught_in="weak, report", found=NO_REPORT
    ),
    "fence behind what the last block finds": Rule(
        in_worker(r"(gridDim\.x - 1\) return;)\s*fence\(\);", r"\1"), caught_in="weak, report", found=NO_REPORT
    ),
}
