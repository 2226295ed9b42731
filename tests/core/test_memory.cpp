// Memory that the CPU keeps for the next queue or array (csrc/cpu/memory.cpp), and ranges of addresses (csrc/host/kept_ranges.h).
#include "cpu/memory.h"

#include <algorithm>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "host/kept_ranges.h"

using namespace atos;

namespace {

constexpr uint64_t kLarge = 5 << 20;

unsigned char *block(uint64_t bytes) {
  auto *made = static_cast<unsigned char *>(cpu::allocate(bytes));
  CHECK(made, "%" PRIu64 " bytes", bytes);
  CHECK(reinterpret_cast<uintptr_t>(made) % 128 == 0, "%p", static_cast<void *>(made));
  CHECK(std::all_of(made, made + bytes, [](unsigned char byte) { return byte == 0; }), "not all of %" PRIu64 " are zeros", bytes);
  return made;
}

bool is_mapped(const void *address) {
  unsigned char resident;
  const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  return mincore(reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(address) / page * page), page, &resident) == 0;
}

// Whether the system can take pages back by itself: without that nothing is kept.
bool keeps() {
  cpu::release_kept();
  void *pointer = block(kLarge);
  cpu::release(pointer);
  return is_mapped(pointer);
}

} // namespace

TEST(blocks_come_as_zeros_of_any_size) {
  check::Random random(1);
  for (int turn = 0; turn < 200; ++turn) {
    const uint64_t bytes = random.below(2) ? random.below(3 << 20) : (1 << 20) + 4096 * random.below(3);
    unsigned char *made = block(bytes);
    std::memset(made, 0xff, bytes);
    cpu::release(made);
  }
  cpu::release(nullptr);
}

TEST(a_large_block_comes_again) {
  if (!keeps()) return;
  unsigned char *first = block(kLarge);
  std::memset(first, 0xff, kLarge);
  cpu::release(first);
  CHECK(block(kLarge + (1 << 20)) != first && block(kLarge - (1 << 20)) != first, "a block of another size");
  unsigned char *again = block(kLarge);
  CHECK(again == first, "%p, not %p", static_cast<void *>(again), static_cast<void *>(first));
  CHECK(block(kLarge) != again, "in use");
}

TEST(what_is_kept_goes_back_to_the_system) {
  if (!keeps()) return;
  unsigned char *used = block(kLarge), *unused = block(kLarge);
  used[7] = 5;
  cpu::release(unused);
  CHECK(is_mapped(unused), "not kept");
  cpu::release_kept();
  CHECK(!is_mapped(unused), "still there");
  CHECK(used[7] == 5, "gone with it");
}

TEST(the_latest_blocks_are_kept) {
  if (!keeps()) return;
  std::vector<unsigned char *> blocks(40);
  for (auto &made : blocks) made = block(kLarge);
  for (auto &made : blocks) cpu::release(made);
  const auto left = std::count_if(blocks.begin(), blocks.end(), is_mapped);
  CHECK(left > 0 && left < 20, "%td of 40", left);
  CHECK(is_mapped(blocks.back()) && !is_mapped(blocks.front()), "not the latest");
}

TEST(a_forked_child_keeps_nothing) {
  const bool kept = keeps();
  unsigned char *before = block(kLarge), *of_parent = block(kLarge + (1 << 20));
  cpu::release(of_parent);
  const pid_t child = fork();
  if (!child) {
    cpu::release(before);
    unsigned char *made = block(kLarge + (1 << 20));
    std::memset(made, 1, kLarge);
    cpu::release(made);
    cpu::release_kept();
    std::_Exit(is_mapped(made) || is_mapped(before) || is_mapped(of_parent) != kept);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "%d", status);
  before[3] = 1;
  cpu::release(before);
}

TEST(ranges_are_kept_by_size) {
  int places[4];
  KeptRanges kept(3);
  CHECK(!kept.keep({&places[3], 15}).begin, "the first");
  for (uint64_t i = 0; i < 2; ++i) CHECK(!kept.keep({&places[i], 10 * (i + 1)}).begin, "%" PRIu64, i);
  CHECK(kept.keep({&places[2], 30}).begin == &places[3], "the oldest goes");
  CHECK(!kept.take(31, 100).begin && !kept.take(11, 19).begin, "none is as large");
  const AddressRange middle = kept.take(11, 25), last = kept.take(0, UINT64_MAX);
  CHECK(middle.begin == &places[1] && middle.bytes == 20, "%" PRIu64, middle.bytes);
  CHECK(last.begin == &places[2] && last.bytes == 30, "%" PRIu64, last.bytes);
  const std::vector<AddressRange> rest = kept.take_all();
  CHECK(rest.size() == 1 && rest[0].begin == &places[0], "%zu", rest.size());
  CHECK(kept.take_all().empty(), "taken twice");
}
