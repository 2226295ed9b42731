// atos_shared: a range of addresses for memory that processes of one host have in common, each of which has a GPU.
//
// Every process reserves a range of the same size, at addresses of its own. Parts of the range get memory one after another:
// the process that creates a part hands out its file descriptor, and the other processes attach the part before their workers
// use it.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "host/memory_source.h"

struct atos_shared {
  struct Part {
    uint64_t at, size; // multiples of the granule
  };
  static constexpr uint64_t kGranule = uint64_t(1) << 21;

  virtual ~atos_shared() = default;
  virtual void create(Part part) = 0;              // memory of this process's GPU, of zeros
  virtual void attach(Part part, int file) = 0;    // memory that another process has created
  virtual int descriptor(size_t number) const = 0; // file descriptor of a part created here, to be closed by the caller

  int32_t device = 0;
  char *begin = nullptr;
  uint64_t bytes = 0;
  std::vector<Part> created; // in order
  size_t handed_out = 0;     // created parts of a queue whose descriptors the other processes have got
};

namespace atos {

// The memory of a queue in a shared range. Only as much memory is created as the queue asks for, and it stays until the range
// is gone.
std::unique_ptr<MemorySource> source_in(atos_shared &shared);

} // namespace atos
