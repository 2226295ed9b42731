"""The rules of the protocol, each with what breaks it: a model is worth something only if it catches every one."""

from __future__ import annotations

from model.source import Change

in_queue = in_ring = in_worker = in_share = in_inbox = in_peers = Change

EARLY, STUCK, LOST, TWICE = "leaves early", "no way leads to the end", "was lost", "ran twice"
BEYOND, NO_REPORT = "beyond the end of an array", "the report is not complete"


class Rule:
    """A rule: what breaks it, the scenario that catches it, and part of what is said then."""

    def __init__(self, *broken_by: Change, caught_in: str, found: str = "") -> None:
        self.broken_by = broken_by
        self.caught_in = caught_in
        self.found = found


# Of an item that goes to a list of a device.
counted_late = in_peers(
    r"far\.count\(1\);(.*?far\.put\(list, ticket, item, level\);)",
    r"fetch_add(&far.state().stored, 1); \1 fetch_add(&far.queue.counters->untracked, 1);",
)
counted_by_the_pusher = in_peers(r"far\.count\(1\);", "peers.far_items<BYTES>(peers.own).count(1);")

BROKEN = {
    # Slots.
    "claim is one addition": Rule(
        in_queue(
            r"return fetch_add\(&counters->head, n\);",
            "uint64_t h = load(&counters->head); store(&counters->head, h + n); return h;",
        ),
        caught_in="full, two workers",
    ),
    "reserve is one addition": Rule(
        in_queue(
            r"return fetch_add\(&counters->tail, n\);",
            "uint64_t p = load(&counters->tail); store(&counters->tail, p + n); return p;",
        ),
        caught_in="full, two workers",
    ),
    "publish reads the sequence number": Rule(
        in_queue(r"!slot\.is_free\(place\.sequence\)", "false"), caught_in="full, two workers"
    ),
    "sequence numbers tell generations apart": Rule(
        in_ring(r"return \{index, 2 \* generation\};", "return {index, 0};"), caught_in="full, two workers"
    ),
    "get before release": Rule(
        in_worker(
            r"if \(got == 0\) return 0;",
            r"\g<0> for (unsigned k = 0; k < got; ++k)"
            r" ring.template slot<bytes>(ring.at(first + k).index).release(ring.at(first + k).sequence);",
        ),
        caught_in="full, large items",
        found=TWICE,
    ),
    "a batch uses up its own tickets": Rule(
        in_worker(r"consumer\.first = first \+ got;", "consumer.first = first + got - (got > 1);"),
        caught_in="several tickets, not filled yet",
        found=STUCK,
    ),
    "no more is claimed than fits": Rule(
        in_worker(r"part < launch\.fetch \? part : launch\.fetch", "part"),
        caught_in="barrier, several tickets",
        found=BEYOND,
    ),
    # Stops.
    "spill_one keeps the item": Rule(
        in_queue(r"if \(at < spill_size\)", "if (false)"), caught_in="full, two workers", found=LOST
    ),
    "spill_one asks for a stop": Rule(
        in_queue(r"set_bits\(&counters->stop, kStopFull\);", ""), caught_in="full, two workers", found=STUCK
    ),
    "who leaves at a stop tells its tickets": Rule(
        in_worker(r"queue\(\)\.leave_tickets\(header->consumer\.first\);", "(void)0;"),
        caught_in="stopped from outside",
        found="nobody has told of",
    ),
    "the lowest ticket that was left counts": Rule(
        in_queue(r"lower_to\(&counters->first_left, first\);", "store(&counters->first_left, first);"),
        caught_in="stopped from outside",
        found="nobody has told of",
    ),
    "while_waiting sees the stop": Rule(
        in_worker(r"if \(stop != kRun\) return Waiting::kLeave;(\s*consumer\.look_for_ring)", r"\1"),
        caught_in="full, two workers",
        found=STUCK,
    ),
    "no round follows a stop": Rule(
        in_worker(r"stopped \? end \| kLastRound : tail\);", "tail);"), caught_in="stopped from outside, barrier"
    ),
    "who finds the time limit over stops all": Rule(
        in_worker(r"set_bits\(&queue\(\)\.counters->stop, kStopAsked\);", ""), caught_in="stopped by the clock", found=EARLY
    ),
    "a task stops its launch": Rule(
        in_queue(r"set_bits\(&counters->stop, kStopCalled\);", ""),
        caught_in="stopped by a task",
        found="a stop goes unnoticed",
    ),
    "a full ring hides no other stop": Rule(
        in_queue(r"set_bits\(&counters->stop, kStopFull\);", "store(&counters->stop, kStopFull);"),
        caught_in="stopped by a task, full",
        found="a stop goes unnoticed",
    ),
    "a check that fails asks for a stop": Rule(
        in_queue(r"set_bits\(&counters->stop, kStopTask\);", ""), caught_in="a check fails"
    ),
    "the first failure is kept": Rule(
        in_queue(r"if \((fetch_add\(&counters->failures, uint64_t\(1\)\)) == 0\)", r"\1;"),
        caught_in="weak, checks fail",
        found="unordered stores to failure",
    ),
    # The end.
    "finish after publishing": Rule(
        in_worker(
            r"producer\.reserve\(queue\(\), given\);",
            r"{ if (header->step == Action::kItems && !header->first_counted)"
            r" queue().finish(header->step.count()), header->first_counted = header->step.count(); \g<0> }",
        ),
        caught_in="full, two workers",
        found=EARLY,
    ),
    "ended reads finished first": Rule(
        in_queue(r"(const uint64_t finished = [^;]*;[^;]*;)\s*fence\(\);(\s*\*tail = [^;]*;)", r"\2 \1"),
        in_queue(r"fetch_add\(&counters->tail, 0\)", "*tail"),  # which would read it last
        caught_in="full, two workers",
        found=EARLY,
    ),
    "ended confirms": Rule(in_queue(r"fetch_add\(&counters->tail, 0\)", "*tail"), caught_in="weak, small items", found=EARLY),
    "finished tasks are reported": Rule(
        in_worker(r"queue\.finish\(unreported\);\s*unreported = 0;", ""),
        caught_in="local items",
        found=STUCK,
    ),
    "the report waits for local items": Rule(
        in_worker(
            r"(const uint32_t local_items = header->local_items;)(\s*const bool takes)",
            r"\1 if (local_items) header->end.report(queue()); \2",
        ),
        caught_in="local items",
        found=EARLY,
    ),
    # Local items, and flushed ones.
    "local items have no ticket": Rule(
        in_worker(r"worker\.stack\(\)\.popped : local_items;", "worker.stack().popped : 0;"), caught_in="local items"
    ),
    "local items run once": Rule(in_worker(r"header->local_items = 0;", ""), caught_in="local items", found=TWICE),
    "local items are not flushed": Rule(
        in_worker(r"worker\.buffer \+ local_items, n - local_items", "worker.buffer, n - local_items"), caught_in="local items"
    ),
    "no more items stay local than fit": Rule(
        in_worker(r"launch\.local_items - kept;", "launch.local_items + 1 - kept;"), caught_in="local items", found=BEYOND
    ),
    "local items give way": Rule(
        in_worker(r" \|\| turn \|\| waiting", ""), caught_in="local items wait", found="waits for ever"
    ),
    "local items give way to those in the ring": Rule(
        in_worker(r" && !takes_ticket", ""), caught_in="a local item waits, far items", found="waits for ever"
    ),
    "flushed items are not local": Rule(
        in_worker(r"header->local_items = kept \+ n - given;", "header->local_items = kept + n;"), caught_in="donation"
    ),
    "flushed items have tickets": Rule(
        in_worker(r"if \(given && !producer\.reserved\) producer\.reserve\(queue\(\), given\);", ""), caught_in="donation"
    ),
    "what the buffer did not hold is not flushed again": Rule(
        in_worker(r"header->pushes < launch\.buffer \? header->pushes : launch\.buffer;", "header->pushes;"),
        caught_in="small buffer, two launches",
    ),
    # Statistics.
    "every task of a batch is counted": Rule(
        in_worker(r"header->ran \+= step\.count\(\);", "header->ran += 1;"),
        caught_in="several tickets, report",
        found=NO_REPORT,
    ),
    "local items were pushed": Rule(
        in_worker(r"header->pushed \+= pushes;", "header->pushed += given;"),
        caught_in="several tickets, report",
        found=NO_REPORT,
    ),
    # Steps.
    "a flush is no step": Rule(
        in_worker(r"return Action::kFlush;", "return header->step = Action::kFlush;"),
        caught_in="flushed by all",
        found=STUCK,
    ),
    "a step is accounted for once": Rule(
        in_worker(r"return Action::kFlush;", "return account_step(), Action::kFlush;"), caught_in="flushed by all"
    ),
    "a chunk belongs to the batch before": Rule(
        in_worker(r"if \(action == Action::kItems\) (header->first_counted = )", r"\1"),
        caught_in="local items, then split",
    ),
    "a chunk does not end a round": Rule(
        in_worker(r" \|\| action == Action::kChunk \|\| ", " || "), caught_in="barrier, split items"
    ),
    # Idle.
    "what a counter may not hold is counted elsewhere": Rule(
        in_worker(r"atomicAdd\(&header->pushed, 1ull\);", ""), caught_in="small buffer, report", found=NO_REPORT
    ),
    "a worker that pushes in idle is not quiescent": Rule(
        in_worker(r"pushes \? kNever : candidate", "candidate"),
        in_queue(r" &&\s*tickets_of\(load\(&counters->tail\)\) \+ load\(&counters->untracked\) == counted;", ";"),
        caught_in="idle, two workers",
        found=EARLY,
    ),
    "a late registration undoes nothing": Rule(
        in_queue(r"if \(newer < 0\) return;", ""), caught_in="idle, two workers", found=STUCK
    ),
    "all have to be quiescent": Rule(
        in_queue(r"load\(&counters->quiescent\) == \(counted << kQuiescentBits\) \+ workers &&", ""),
        caught_in="idle, two workers",
        found=EARLY,
    ),
    "idle is called in every quiescent round": Rule(
        in_worker(r"header->idle_called = 0;", ""), caught_in="barrier, idle again", found=EARLY
    ),
    # Barriers.
    "blocks wait for each other": Rule(
        in_worker(r"if \(load\(&counters->phase\) != phase\) break;", "break;"), caught_in="barrier"
    ),
    "a barrier that opens takes no arrival back": Rule(
        in_worker(r">= kComplete;", ">= kComplete && false;"), caught_in="barrier, split items"
    ),
    "a barrier is complete once": Rule(
        in_worker(r"return (compare_exchange\(&counters->arrived, arrived, kComplete \| blocks\))", r"return \1, true"),
        caught_in="barrier, split items",
    ),
    "items are marked before they are split": Rule(
        in_worker(r"(launch\.shares\)) fetch_add\(&queue\(\)\.counters->arrived, kMark\);", r"\1;"),
        caught_in="barrier, split items",
    ),
    "an arrival at a barrier that has opened stays": Rule(
        in_worker(r"if \(load\(&counters->phase\) == phase\) return true;", "return true;"), caught_in="barrier, split items"
    ),
    "a barrier opens before arrivals are counted anew": Rule(
        in_worker(
            r"store\(&counters->phase, phase \+ 1\);\s*if \(!marked\) return;.*?(fetch_add\(&counters->arrived, 0 - .*?;)",
            r"if (marked) \1 store(&counters->phase, phase + 1);",
        ),
        caught_in="barrier, split items",
    ),
    "whoever helps has not arrived": Rule(
        in_worker(r"if \(chunks && take_back_arrival\(counters, phase\)\) return false;", "if (chunks) return false;"),
        caught_in="barrier, split items",
    ),
    "the last block decides": Rule(
        in_worker(
            r"const uint64_t next = load\(&counters->round_end\);",
            "const uint64_t next = queue().stopped() ? kLastRound : load(&counters->tail);",
        ),
        caught_in="stopped from outside, barrier",
    ),
    "claims of a round end with it": Rule(
        in_worker(r"end - first < want \? end - first : want;", "want;"), caught_in="barrier, several tickets"
    ),
    "all shares together are the round": Rule(
        in_worker(r"equal_share\(launch, int64_t\(n \+ launch\.workers - 1\)\)", "equal_share(launch, int64_t(n))"),
        caught_in="barrier, shares",
    ),
    "head goes back to the end of a round": Rule(in_worker(r"lower_to\(&counters->head, end\);", ""), caught_in="barrier"),
    "head stays where the claims of an interrupted round stand": Rule(
        in_worker(r"lower_to\(&counters->head, end\);", "store(&counters->head, end);"),
        caught_in="stopped from outside, barrier",
        found="nobody has told of",
    ),
    "the end of an interrupted round is known": Rule(
        in_worker(r"stopped \? end \| kLastRound", "stopped ? kLastRound"),
        caught_in="stopped from outside, barrier",
    ),
    # Rounds with a function between them.
    "a round ends behind what the function pushed": Rule(
        in_worker(r"store\(&counters->round_end, stopped \? end \| kLastRound : tail\);", r"if (!has_each_round) \g<0>"),
        in_worker(
            r"if \(!idle_called\) (run_each_round\(is_last, calls\);)",
            r"if (is_last) store(&counters->round_end, queue().stopped() ? header->round_end | kLastRound"
            r" : tickets_of(load(&counters->tail)));"
            r" if (!idle_called) \1",
        ),
        caught_in="rounds, quiet",
        found=EARLY,
    ),
    "all have reported what they ran": Rule(
        in_worker(r"if \(reports_rounds\(\) && Group::rank\(\) == 0\) header->end\.report\(queue\(\)\);", ""),
        caught_in="rounds, buckets",
    ),
    "a round of which tickets are left has no call": Rule(
        in_worker(r"\+ load\(this->claims_of_kernel\(\)\) >= end;", "+ end >= end;"),
        caught_in="rounds, stopped from outside",
        found="is called early",
    ),
    "whoever claims nothing because of a stop says so": Rule(
        in_worker(r"if \(has_each_round\) fetch_add\(&queue\(\)\.counters->arrived, kMark\);", ""),
        caught_in="rounds, stopped from outside",
        found="is called early",
    ),
    "a round that was left because of a stop may be over": Rule(
        in_worker(r"return !header->marked \|\| .*? >= end;", "return !header->marked;"),
        caught_in="rounds, stopped by a task",
        found="is called late",
    ),
    "one worker calls the function": Rule(in_worker(r"is_last && ran_round\(end\)", "ran_round(end)"), caught_in="rounds"),
    "a round that was interrupted has no call": Rule(
        in_worker(r"is_last && ran_round\(end\)", "is_last"),
        caught_in="rounds, stopped from outside",
        found="is called early",
    ),
    "a round that is over has its call also after a stop": Rule(
        in_worker(r"is_last && ran_round\(end\)", r"\g<0> && !queue().stopped()"),
        caught_in="rounds, stopped by a task",
        found="is called late",
    ),
    "a call of idle is no round": Rule(
        in_worker(r"if \(!idle_called\) (run_each_round)", r"\1"), caught_in="rounds, idle", found="is called early"
    ),
    "what waits for the next round is what was pushed in this one": Rule(
        in_worker(r"(tickets_of\(load\(&counters->tail\)\)) - end\)", r"\1)"),
        caught_in="rounds",
        found="another number of items",
    ),
    "what the function pushed is flushed": Rule(
        in_worker(
            r"this->template flush_pushes<Group>\(false, false, nullptr\);\s*\}\s*\}\s*__syncthreads", "}} __syncthreads"
        ),
        caught_in="rounds, quiet",
    ),
    # Shares.
    "the bit is set before chunks": Rule(
        in_share(r"set_bit\(&counters->splits_open, at\);", ""),
        in_share(r"store\(&split\.chunks, kChunkBias \+ chunks\);", r"\g<0> set_bit(&counters->splits_open, at);"),
        caught_in="split items of one chunk",
        found="the counters are not as",
    ),
    "untracked is counted before chunks": Rule(
        in_share(r"if \(!counted\) fetch_add\(&counters->untracked, 1\);", ""),
        in_share(r"store\(&split\.chunks, kChunkBias \+ chunks\);", r"\g<0> if (!counted) fetch_add(&counters->untracked, 1);"),
        caught_in="local items, then split",
        found=EARLY,
    ),
    "a chunk is flushed before it is finished": Rule(
        in_worker(
            r"producer\.reserve\(queue\(\), given\);",
            r"{ int32_t &at = header->chunk.split;"
            r" header->end.unreported += at >= 0 && finish_chunk(static_cast<SplitItem *>(launch.split_items), at);"
            r" at = -1; \g<0> }",
        ),
        caught_in="split items",
        found=EARLY,
    ),
    "a place is free when all chunks are finished": Rule(
        in_share(r"clear_bit\(&counters->splits_open, at\);", r"{ \g<0> store(&split.busy, 0); }"), caught_in="split items"
    ),
    "a split item is counted once": Rule(
        in_worker(r"header->batch - header->first_counted - header->num_split;", "header->batch - header->first_counted;"),
        caught_in="split items",
    ),
    "a split item does not run whole": Rule(
        in_worker(r"if \(length >= kLong\) any_long", "if (length > kLong) any_long"),
        caught_in="split items, several of a batch",
        found=TWICE,
    ),
    "nothing stays local beside a long item": Rule(
        in_worker(r"is_batch && !header->any_long", "is_batch"), caught_in="local items beside a long item"
    ),
    # Growth.
    "a growth is one addition": Rule(
        in_queue(
            r"fetch_add\(&counters->tail, kGrowth\)",
            "[&] { uint64_t p = load(&counters->tail); store(&counters->tail, p + kGrowth); return p; }()",
        ),
        caught_in="grows",
    ),
    "one worker grows the queue": Rule(
        in_queue(r"compare_exchange\(&counters->ring_first_ticket\[k \+ 1\], before, kGrowing\)", "true"), caught_in="grows"
    ),
    "memory comes first": Rule(
        in_queue(r"if \(k >= growths_granted\)", "if (false)"), caught_in="grows", found="without memory"
    ),
    "more may be granted than was requested": Rule(
        in_queue(
            r"uint64_t growths_requested = load.*?if \(growths_requested <= k && (compare_exchange\([^()]*\))\)",
            r"uint64_t growths_requested = k; if (\1)",
        ),
        caught_in="grows, ring after ring",
        found=STUCK,
    ),
    "a first ticket is known before it is used": Rule(
        in_queue(r"if \(start >= kGrown\) return start", "return start"), caught_in="grows"
    ),
    "growths are no tasks": Rule(
        in_queue(r"if \(finished != tickets_of\(\*tail\)", "if (finished != *tail"), caught_in="grows", found=STUCK
    ),
    "a waiting worker looks for a new ring": Rule(
        in_worker(r"look_for_ring\(queue, tail\);(\s*if \(!has_idle\))", r"next_start = kNever;\1"),
        caught_in="grows",
        found=STUCK,
    ),
    "a worker that waits in a round does so too": Rule(
        in_worker(r"look_for_ring\(queue\(\), load\(&queue\(\)\.counters->tail\)\);", "next_start = kNever;"),
        caught_in="grows, barrier",
        found=STUCK,
    ),
    "a worker with older tickets stays": Rule(
        in_worker(r"return ticket >= next_start;", "return ticket, next_start != kNever;"), caught_in="grows"
    ),
    "the ring after the next is not looked for too early": Rule(
        in_worker(r"(\+\+growths, next_start\);)\s*next_start = kNever;", r"\1"), caught_in="grows, split items"
    ),
    "tickets reserved with space are used once": Rule(
        in_worker(r"header->pushes = producer\.reserved = 0", "header->pushes = 0"),
        caught_in="grows, local items",
        found=EARLY,
    ),
    "no worker waits for memory that will not come": Rule(
        in_queue(r"growths_granted & kNoMore && \(growths_granted & ~kNoMore\) <= k", "false"),
        caught_in="grows, no memory",
        found=STUCK,
    ),
    # Newest first.
    "a stack leaves at a stop": Rule(
        in_worker(r"this->gives_way\(\) \? stack\.count\(\) \+ this->buffered\(\) : keeps", "keeps"),
        in_worker(r"if \(!stacked\) return fetch\(\);", "if (!stacked || this->gives_way()) return fetch();"),
        caught_in="newest first, stopped from outside",
        found=LOST,
    ),
    "pushes of a chunk leave": Rule(
        in_worker(r"waits_for_space\(header->step == Action::kItems && !header->any_long\)", "waits_for_space(true)"),
        caught_in="newest first, split items",
        found=EARLY,
    ),
    "the bottom of a stack is taken once": Rule(
        in_worker(r"else stack\.bottom \+= given;", "else (void)0;"), caught_in="newest first", found=TWICE
    ),
    "the top of a stack is taken once": Rule(
        in_worker(r"else stack\.top -= n;", "else (void)0;"), caught_in="newest first", found=TWICE
    ),
    "a push finds room on the stack": Rule(
        in_worker(r"\+ at < launch->stack_room", "+ at <= launch->stack_room"), caught_in="newest first, small stack"
    ),
    "items of a stack are not counted": Rule(
        in_worker(r"has_stack \? worker\.stack\(\)\.popped : local_items", "has_stack ? 0 : local_items"),
        caught_in="newest first",
        found=EARLY,
    ),
    "a task is finished when its stack is empty": Rule(
        in_worker(r"if \(!stacked\) return fetch\(\);", r"header->end.report(queue()); \g<0>"),
        caught_in="newest first",
        found=EARLY,
    ),
    "waiting items have their turn beside a stack": Rule(
        in_worker(r"if \(header->steps < kMostStackSteps\) return Turn::kNewest;", "return Turn::kNewest;"),
        caught_in="newest first, items wait",
        found="waits for ever",
    ),
    "thread workers follow the ring only while they have tickets": Rule(
        in_worker(r"if \(taken == 0\) \{", "{"), caught_in="thread workers, newest first, waiting items grow"
    ),
    # Items from the host.
    "an open inbox is unfinished": Rule(
        in_inbox(r"delivery\.last = sent & kClosed && ", "delivery.last = "), caught_in="inbox", found=EARLY
    ),
    "a closed inbox is unfinished until it is empty": Rule(
        in_inbox(r"delivery\.last = sent & kClosed && delivery\.count == there;", "delivery.last = (sent & kClosed) != 0;"),
        caught_in="inbox, several at once",
        found=EARLY,
    ),
    "items of an inbox are counted before it is finished": Rule(
        in_inbox(
            r"if \(delivery\.count\) delivery\.tail = ",
            r"if (sent & kClosed && delivery.count == there) queue.finish(1); \g<0>",
        ),
        in_inbox(r"if \(delivery\.last\) queue\.finish\(1\);", "if (delivery.last) {}"),
        caught_in="inbox",
        found=EARLY,
    ),
    "an inbox is finished once": Rule(
        in_inbox(r"if \(delivery\.last\) queue\.finish\(1\);(.*?)\n\s*else ", r"if (delivery.last) queue.finish(1);\1\n"),
        caught_in="inbox",
        found=EARLY,
    ),
    "one worker has the inbox": Rule(
        in_inbox(
            r"!compare_exchange\(&counters->inbox, state, state \| kInboxHeld\)",
            "(store(&counters->inbox, state | kInboxHeld), false)",
        ),
        caught_in="inbox",
    ),
    "places of an inbox are free when their items were read": Rule(
        in_inbox(
            r"if \(delivery\.count\) delivery\.tail = ",
            r"if (delivery.count) store_system(&inbox->taken, delivery.first + delivery.count); \g<0>",
        ),
        caught_in="inbox",
    ),
    "a stale look at the inbox finds nothing": Rule(
        in_inbox(r"items > delivery\.first \? items - delivery\.first : 0", "items - delivery.first"),
        caught_in="weak, inbox",
    ),
    "a stop in the inbox reaches the workers": Rule(
        in_inbox(r"if \(sent & kStopSent\) set_bits\(&counters->stop, kStopAsked\);", ""),
        caught_in="inbox, stops sent",
        found=STUCK,
    ),
    # Far items.
    "a far item is counted before it can be taken": Rule(
        in_queue(r"fetch_add\(&queue\.counters->untracked, n\);", ""),
        in_worker(
            r"surplus\);\s*this->template store_far<Team>\(worker\.far_buffer\(\), worker\.far_levels\(\), far\);",
            r"\g<0> if (far) fetch_add(&queue().counters->untracked, uint64_t(far));",
        ),
        caught_in="far items, two lists",
        found=EARLY,
    ),
    "a far item counts as unfinished": Rule(
        in_queue(r"fetch_add\(&queue\.counters->untracked, n\);", ""), caught_in="far items", found=EARLY
    ),
    "a flush within a step reserves before the step counts as finished": Rule(
        in_worker(
            r"this->template flush_pushes<Group>\(false, this->relaxed\(\), nullptr\);",
            "header->pushes = worker.far_state()->pushes = 0;",
        ),
        caught_in="far items, flushed within a step",
        found=EARLY,
    ),
    "one worker opens a list": Rule(
        in_queue(r"\|\| !compare_exchange\(&state\(\)\.busy, busy, 1\)", "|| busy"), caught_in="far items, two lists"
    ),
    "a list is open until its chunks are finished": Rule(
        in_queue(r"if \(load\(&state\(\)\.left\) \|\| ", "if ("),
        in_queue(r"all_done = load\(&state\(\)\.left\) == 0;", "all_done = true;"),
        in_queue(r"return left == 0 && stored", "return (void)left, stored"),
        caught_in="far items, two lists",
    ),
    "chunks are claimed once": Rule(
        in_queue(r"if \(unclaimed <= kChunkBias\) return false;\s*fence\(\); // after the writes of the opener", ""),
        caught_in="far items, two lists",
    ),
    "a chunk is finished after its items were taken": Rule(
        in_worker(
            r"(const FarChunk chunk = state\.chunk;)(\s*const FarItems<bytes> far = worker\.far_items\(\);\s*uint32_t got)",
            r"\1 if (!chunk.again) worker.far_items().finish_chunk(chunk);\2",
        ),
        in_worker(r"if \(state\.taken && [^;]*;", ""),
        caught_in="far items of a block",
        found=STUCK,
    ),
    "a block is free when all of its items were taken": Rule(
        in_queue(r"if \(fetch_add\(&unread\(\)\[block\], 0 - n\) == n\)", "fetch_add(&unread()[block], 0 - n);"),
        caught_in="far items of a block",
    ),
    "the level is stored after the item": Rule(
        in_queue(
            r"(for [^;]*;[^;]*;[^;]*store\(&item\[i\], value\.word\[i\]\);\s*fence\(\);)(\s*store\(&level, bits[^;]*;)",
            r"\2 \1",
        ),
        caught_in="far items, large",
    ),
    "an item that has no block is spilled": Rule(
        in_queue(r"else queue\.spill_one\(item, far_ticket\(list, ticket\)\);", ""),
        caught_in="far items, few blocks",
        found="has no block",
    ),
    "a far item has its place also in a stop": Rule(
        in_queue(r"find\(list, ticket, kNoBlocks\);", "find(list, ticket, ~kRun);"),
        in_queue(r"else queue\.spill_one\(item, far_ticket\(list, ticket\)\);", ""),
        caught_in="far items, stopped by a task",
        found="a ticket of a list has no item",
    ),
    "a push waits for no block that nobody finds": Rule(
        in_queue(r"kNoBlocks = kStopFull \|", "kNoBlocks ="), caught_in="far items, few blocks", found=STUCK
    ),
    "who finds no block asks for a stop": Rule(
        in_queue(r"return set_bits\(&queue\.counters->stop, kStopFull\);", "return;"),
        caught_in="far items, few blocks",
        found=STUCK,
    ),
    "items beyond the window are pushed again": Rule(
        in_queue(r"return open_list\(list, again \|\| [^;]*;", "return open_list(list, there, false, workers, largest);"),
        caught_in="far items, barrier",
        found="a level began",
    ),
    "a chunk that is pushed again was counted": Rule(
        in_worker(r"header->end\.unreported \+= state\.taken;", ""),
        caught_in="items beyond the window from the host",
        found=STUCK,
    ),
    "a round follows when a bucket was opened": Rule(
        in_worker(r" && !\(has_buckets && load\(&counters->far\.opened\)\)", ""),
        caught_in="far items, barrier",
        found=EARLY,
    ),
    "a bucket is opened when the one before is worked off": Rule(
        in_worker(r"stopped \|\| tail != end \? 0 :", "stopped ? 0 :"), caught_in="far items, barrier", found="a level began"
    ),
    "far items end quiescence": Rule(
        in_queue(r"\*counted = finished;", "*counted = tickets_of(load(&counters->tail));"),
        in_queue(r" \+ load\(&counters->untracked\) == counted;", " == counted;"),
        caught_in="far items, idle",
    ),
    # Memory order.
    "fence behind a look at the inbox": Rule(
        in_inbox(r"fence_system\(\);(\s*if \(sent & kStopSent\))", r"\1"),
        in_inbox(r"fence\(\);\s*// as each thread that publishes needs one", ""),  # in the model the same thread
        caught_in="weak, inbox",
        found="does not see",
    ),
    "fence between put and commit": Rule(in_queue(r"slot\.put\(item\);\s*fence\(\);", "slot.put(item);"), caught_in="weak"),
    "fence between is_ready and get": Rule(
        in_worker(r"(if \(got == 0\) return 0;)\s*this->fence_of_items\(\);", r"\1"), caught_in="weak"
    ),
    "fence in flush_pushes": Rule(
        in_worker(r"if \(!local\) fence\(\);.*?\n", ""), caught_in="weak, small items", found="does not see"
    ),
    "fence in flush_pushes, some local": Rule(
        in_worker(r"if \(local\) fence\(\);", ""), caught_in="weak, local items", found="does not see"
    ),
    "fence in push": Rule(
        in_worker(r"(return publish_to_owner[^\n]*\n)\s*fence\(\);", r"\1"),
        caught_in="weak, small buffer",
        found="does not see",
    ),
    "fence in ended": Rule(
        in_queue(r"fence\(\);(\s*\*tail = )", r"\1"),
        in_queue(r"fetch_add\(&counters->tail, 0\)", "*tail"),  # beside which the fence does not matter
        caught_in="weak, local items",
        found=EARLY,
    ),
    "fence in grid_barrier": Rule(in_worker(r"(const auto open = \[&\] \{\s*)fence\(\);", r"\1"), caught_in="weak, barrier"),
    "fence before the function between rounds": Rule(
        in_worker(r"if \(is_last\) fence\(\);", ""), caught_in="weak, rounds", found="unordered stores"
    ),
    "fence in split_item": Rule(in_share(r"fence\(\);(\s*store\(&split\.chunks)", r"\1"), caught_in="weak, split items"),
    "fence in claim_chunk": Rule(
        in_share(r"fence\(\); // after the writes of the owner, also of the bit", ""), caught_in="weak, split items"
    ),
    "fence before a place is used again": Rule(
        in_share(r"fence\(\); // before the words are overwritten", ""),
        caught_in="weak, one split item after another",
        found="unordered stores to",
    ),
    "fence before a place is free": Rule(
        in_share(r"fence\(\);(\s*store\(&split_items\[at\]\.busy, 0\))", r"\1"),
        caught_in="weak, one split item after another",
        found="unordered stores to",
    ),
    "fence in grow": Rule(
        in_queue(r"fence\(\); // the memory was there before it was allowed", ""),
        caught_in="weak, grows",
        found="does not know of its memory",
    ),
    "fence before a block reports that it left": Rule(
        in_worker(r"fence\(\);(\s*if \(fetch_add\(&counters->gone)", r"\1"), caught_in="weak, report", found=NO_REPORT
    ),
    "fence behind what the last block finds": Rule(
        in_worker(r"(gridDim\.x - 1\) return;)\s*fence\(\);", r"\1"), caught_in="weak, report", found=NO_REPORT
    ),
    # Kinds of tasks.
    "flat tasks of a batch run beside its loops": Rule(
        in_worker(r"if \(flat_kinds\) run_flat\(got\);", ""), caught_in="two kinds", found=EARLY
    ),
    "flat tasks have no loop": Rule(
        in_worker(r"is_flat\(items\[k\]\)\s*\? 0\s*:", ""), caught_in="two kinds", found="the workload of a flat task"
    ),
    "loops are no flat tasks": Rule(
        in_worker(r"if \(!is_flat\(items\[k\]\)\) continue;", ""),
        caught_in="two kinds, split items",
        found="a loop in place of a flat task",
    ),
    # Several devices.
    "no device ends alone": Rule(in_peers(r"(untracked\)) && ended\(\)\) \{", r"\1) {"), caught_in="devices", found=EARLY),
    "all that finished is read before all that was pushed": Rule(
        in_peers(
            r"counted = 0, confirmed = 0;",
            r"\g<0> for (uint32_t k = 0; k < count; ++k) counted += tickets_of(load(&peer[k].counters->tail)); fence();",
        ),
        in_peers(r"for [^\n]*\n *counted \+= [^\n]*", ""),
        in_peers(r"return finished == confirmed;", "(void)confirmed; return true;"),
        caught_in="devices, large items",
        found=EARLY,
    ),
    "no device is counted after another": Rule(
        in_peers(
            r"for [^\n]*\n? *finished \+= .*?if \(finished != counted\) return false;",
            "for (uint32_t k = 0; k < count; ++k) { const uint64_t f = load(&peer[k].counters->finished);"
            " if (f != tickets_of(load(&peer[k].counters->tail))) return false; } return true;",
        ),
        caught_in="devices, three",
        found=EARLY,
    ),
    "a push is counted at its owner before its task": Rule(
        in_peers(r"run\(item\);\s*\+\+end\.unreported;", "queue.finish(1); run(item);"), caught_in="devices", found=EARLY
    ),
    "a push goes to its owner": Rule(
        in_peers(r"number < count \? number : count - 1", "number ? own : own"),
        caught_in="devices",
        found="another device than its owner",
    ),
    "all devices are told the end": Rule(
        in_peers(r"tell\(kEnded\);", "set_bits(&queue.counters->stop, kEnded);"), caught_in="devices", found=STUCK
    ),
    "the report waits for local items over devices": Rule(
        in_peers(r"(if \(has_local\)) (return take_local)", r"\1 end.report(queue); \1 \2"),
        caught_in="devices, local items",
        found=EARLY,
    ),
    "local items of another device do not stay": Rule(
        in_peers(r"!has_local && peers\.owner\(item\) == peers\.own\)", "!has_local)"),
        caught_in="devices, local items",
        found="another device than its owner",
    ),
    "local items over devices have no ticket": Rule(
        in_peers(r"else run\(item\);", "else run(item), ++end.unreported;"), caught_in="devices, local items"
    ),
    "local items over devices run once": Rule(
        in_peers(r"local = Item<BYTES>\(\), has_local = 0;", ""), caught_in="devices, local items", found=TWICE
    ),
    "what a local item pushes is counted before the report": Rule(
        in_peers(r"else run\(item\);", "else end.report(peers.queue<BYTES>(peers.own)), run(item);"),
        caught_in="devices, local items",
        found=EARLY,
    ),
    "the report waits for far items that stay local": Rule(
        in_peers(r"push\(peers, item, level, false\);\s*\}\s*end\.unreported \+= taken;", r"\g<0> end.report(far.queue);"),
        caught_in="devices, local items, far items",
        found=EARLY,
    ),
    "local items are not lost by a stop": Rule(
        in_peers(r"(if \(has_local\) return[^\n]*)(\s*if \(stopped\) return false;)", r"\2 \1"),
        caught_in="devices, local items, stopped from outside",
        found=LOST,
    ),
    "a stop of a device is one of all": Rule(
        in_peers(r"tell\(kStopElsewhere\);", "{}"), caught_in="devices, full", found=STUCK
    ),
    "a round opens on all devices": Rule(
        in_peers(r"more \|= tail != load", "more = tail != load"), caught_in="devices, barrier", found="ended early"
    ),
    "no round of several devices follows a stop": Rule(
        in_peers(r"stopped \|= stop != kRun;", ""), caught_in="devices, barrier, stopped from outside"
    ),
    "claims of a round end with it on all devices": Rule(
        in_peers(r"lower_to\(&its\.head, end\);", ""), caught_in="devices, barrier"
    ),
    "claims of an interrupted round stand where they are on all devices": Rule(
        in_peers(r"lower_to\(&its\.head, end\);", "store(&its.head, end);"),
        caught_in="devices, barrier, stopped from outside",
        found="nobody has told of",
    ),
    "the end of an interrupted round is known on all devices": Rule(
        in_peers(r"load\(&its\.round_end\) \| kLastRound", "kLastRound"),
        caught_in="devices, barrier, stopped from outside",
    ),
    "no device goes on before all have met": Rule(
        in_peers(r"fetch_add\(&meeting\(\)->met, uint64_t\(1\)\) \+ 1 == \(before \+ 1\) \* count", "true"),
        caught_in="devices, barrier",
    ),
    "all devices hear of the end of a meeting": Rule(
        in_peers(r"store\(&peer\[k\]\.counters->meetings, before \+ 1\);", "(void)before;"),
        caught_in="devices, barrier",
        found=STUCK,
    ),
    "fence before a meeting ends": Rule(
        in_peers(r"fence\(\);(\s*peers\.end_meeting)", r"\1"), caught_in="devices, weak, barrier"
    ),
    "fence in meet": Rule(
        in_peers(r"fence\(\);(\s*return fetch_add\(&meeting)", r"\1"),
        caught_in="devices, weak, rounds",
        found="does not see what a task wrote",
    ),
    "the function between rounds is for all devices": Rule(
        in_peers(r"ran &= has_buckets", "ran = has_buckets"),
        caught_in="devices, rounds, stopped from outside",
        found="is called early",
    ),
    "all devices have reported what they ran": Rule(
        in_peers(r"if \(has\) end\.report\(queue\);", ""), caught_in="devices, rounds"
    ),
    "what waits is what waits on all devices": Rule(
        in_peers(r"n \+= tickets_of", "n = tickets_of"), caught_in="devices, rounds", found="another number of items"
    ),
    "a round of several devices ends behind what the function pushed": Rule(
        in_peers(
            r"if \(peers\.close_round\(model::bounds\.buckets\) && has\) between\(\);\s*(peers\.open_round[^\n]*)",
            r"const bool ran = peers.close_round(false); \1 if (ran && has) between();",
        ),
        caught_in="devices, rounds",
    ),
    "a far item of another device is counted before it can be taken": Rule(
        counted_late,
        caught_in="devices, far items, one device",
        found=EARLY,
    ),
    "a far item counts on the device that runs it": Rule(
        counted_by_the_pusher,
        caught_in="devices, far items",
        found=STUCK,
    ),
    "a near item in a list is counted before it can be taken": Rule(
        counted_late,
        caught_in="devices, near items in lists, local items",
        found=EARLY,
    ),
    "a near item in a list counts on the device that runs it": Rule(
        counted_by_the_pusher,
        caught_in="devices, near items in lists",
        found=STUCK,
    ),
    "devices at one bucket do not wait for each other": Rule(
        in_peers(
            r"float_of\(uint32_t\(load\(&its\.far\.next\)\)\) < level", r"float_of(uint32_t(load(&its.far.next))) <= level"
        ),
        caught_in="devices, far items of both",
        found=STUCK,
    ),
    "a device waits for those that have unfinished tasks": Rule(
        in_peers(
            r"if \(finished != (tickets_of\(load\(&its\.tail\)\) \+ [^\n]*) return false;", "(void)finished; return false;"
        ),
        caught_in="devices, far items",
        found=STUCK,
    ),
    "a device tells which bucket it waits for": Rule(
        in_peers(r"store\(&peer\[own\]\.counters->far\.next, [^\n]*", ""), caught_in="devices, far items of both", found=STUCK
    ),
    "the lowest bucket of all devices opens": Rule(
        in_peers(r"far\.lowest\(&level, true\) && level <= least", "far.lowest(&level, true)"),
        caught_in="devices, far items, barrier",
        found="before the level above",
    ),
    "a round of far items follows on several devices": Rule(
        in_peers(r"if \(!more && !stopped\) more = open_far\(\);", "(void)open_far;"),
        caught_in="devices, far items, barrier",
        found="ended early",
    ),
    "equal sums are confirmed": Rule(
        in_peers(
            r"confirmed \+= tickets_of\(fetch_add\(&peer\[k\]\.counters->tail, 0\)\)",
            "confirmed += tickets_of(load(&peer[k].counters->tail))",
        ),
        caught_in="devices, weak, three",
        found=EARLY,
    ),
    "fence in a push over devices": Rule(
        in_peers(r"fence_of_items\(\); // what the task wrote", ""),
        caught_in="devices, weak, local items",
        found="does not see",
    ),
}
