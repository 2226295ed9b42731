// atos_inbox: the host's side of an inbox, through which items come to the workers of one launch while the workers run.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "include/interface.h"

namespace atos {

struct Inbox;

// Resources of an inbox, from the backend: memory of the host that workers reach, and a stream for the launch, so that copies
// in other streams do not wait for the launch.
struct InboxMemory {
  Inbox *ring = nullptr;
  void *stream = nullptr;
};

} // namespace atos

struct atos_inbox {
public:
  const int32_t device;
  const uint32_t item_bytes;
  std::atomic<bool> stop_asked{false}; // by `stop`

  atos_inbox(int32_t device, uint32_t item_bytes);
  ~atos_inbox();

  // By the host, in any thread.
  bool has_begun();                                      // waits a little for the launch to begin
  uint64_t push(const unsigned char *items, uint64_t n); // as many items as there is room for; waits a little for room
  void close();
  void stop();        // reaches the workers through the ring, without the driver, which another thread may hold up
  uint64_t waiting(); // items that no worker has taken yet

  // By the launch: `begin` when the launch has the queue; `end`, from which on the inbox accepts no items; and `take_rest` when
  // the workers have left, which appends the items that no worker has taken.
  void begin();
  void end();
  void take_rest(std::vector<unsigned char> *behind);

  const atos::InboxMemory memory;

private:
  enum class State { kMade, kBegun, kEnded };

  void enter(State next);
  void tell(); // stores in the ring how many items were sent, and what was asked for
  uint64_t put(const unsigned char *items, uint64_t n);

  std::mutex mutex;
  std::condition_variable changed;
  State state = State::kMade;
  bool begun = false;
  uint64_t sent = 0, asked = 0; // items; the bits kClosed and kStopSent
};
