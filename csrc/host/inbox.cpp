// Puts items into an inbox, and takes out the items that no worker has taken.
#include "host/inbox.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "host/backend.h"
#include "protocol/inbox.cuh"

using namespace atos;

namespace {

// As long as a caller waits before it may handle signals.
constexpr std::chrono::milliseconds kWait{20};
constexpr std::chrono::microseconds kBetweenTries{50};

} // namespace

atos_inbox::atos_inbox(int32_t device, uint32_t item_bytes)
    : device(device), item_bytes(item_bytes), memory(backend(device).make_inbox()) {
  memory.ring->sent = memory.ring->taken = 0;
}

atos_inbox::~atos_inbox() { backend(device).release_inbox(memory); }

bool atos_inbox::has_begun() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, kWait, [&] { return state != State::kMade; });
  if (state == State::kEnded && !begun) throw Failure(ATOS_CLOSED, "the launch ended before it began");
  return begun;
}

uint64_t atos_inbox::push(const unsigned char *items, uint64_t n) {
  const auto until = std::chrono::steady_clock::now() + kWait;
  for (;;) {
    const uint64_t done = put(items, n);
    if (done || !n) return done;
    if (std::chrono::steady_clock::now() >= until) throw Failure(ATOS_HELD, "the inbox is full");
    std::this_thread::sleep_for(kBetweenTries);
  }
}

// Puts as many items as there is room for now, and returns their number.
uint64_t atos_inbox::put(const unsigned char *items, uint64_t n) {
  std::lock_guard<std::mutex> lock(mutex);
  if (asked & kClosed) throw Failure(ATOS_CLOSED, "the run was closed");
  if (state == State::kEnded) throw Failure(ATOS_CLOSED, "the run has ended");
  const uint64_t words = inbox_words(item_bytes), bytes = words * 8;
  const uint64_t some = std::min(n, kInboxItems - (sent - load_system(&memory.ring->taken)));
  for (uint64_t i = 0; i < some;) { // up to the end of the ring, and from its begin
    uint64_t *to = &memory.ring->items[(sent + i) % kInboxItems * words];
    const uint64_t part = std::min(some - i, kInboxItems - (sent + i) % kInboxItems);
    if (bytes == item_bytes) {
      std::memcpy(to, items + i * bytes, part * bytes);
    } else {
      for (uint64_t k = 0; k < part; ++k) {
        uint32_t word;
        std::memcpy(&word, items + (i + k) * item_bytes, sizeof word);
        to[k] = word;
      }
    }
    i += part;
  }
  sent += some;
  tell();
  return some;
}

void atos_inbox::close() {
  std::lock_guard<std::mutex> lock(mutex);
  asked |= kClosed;
  tell();
}

void atos_inbox::stop() {
  std::lock_guard<std::mutex> lock(mutex);
  asked |= kStopSent;
  stop_asked = true; // before the workers know of the stop, so that the host does not start the workers again
  tell();
}

void atos_inbox::tell() { store_system(&memory.ring->sent, sent | asked); }

uint64_t atos_inbox::waiting() {
  std::lock_guard<std::mutex> lock(mutex);
  return state == State::kEnded ? 0 : sent - load_system(&memory.ring->taken);
}

void atos_inbox::begin() { enter(State::kBegun); }
void atos_inbox::end() { enter(State::kEnded); }

void atos_inbox::enter(State next) {
  std::lock_guard<std::mutex> lock(mutex);
  state = next;
  begun |= state == State::kBegun;
  changed.notify_all();
}

void atos_inbox::take_rest(std::vector<unsigned char> *behind) {
  std::lock_guard<std::mutex> lock(mutex);
  const uint64_t words = inbox_words(item_bytes), taken = load_system(&memory.ring->taken);
  behind->reserve(behind->size() + (sent - taken) * item_bytes);
  for (uint64_t i = taken; i < sent; ++i) {
    const unsigned char *item = reinterpret_cast<const unsigned char *>(&memory.ring->items[i % kInboxItems * words]);
    behind->insert(behind->end(), item, item + item_bytes);
  }
}
