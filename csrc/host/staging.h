// Staging: memory of the host for slots and items on their way to a device or from it.
#pragma once
#include <cstdint>
#include <memory>

namespace atos {

struct Staging {
  std::unique_ptr<unsigned char[]> memory;
  uint64_t bytes = 0;

  void reserve(uint64_t least) {
    if (bytes >= least) return;
    memory.reset(new unsigned char[least]);
    bytes = least;
  }
};

} // namespace atos
