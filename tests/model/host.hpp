// Words of the model as the host sees and sets them, between two runs of the workers.
#pragma once
#include "check.hpp"

namespace model {

template <class T> uint64_t now(const T &word) {
  return machine.memory.newest(machine.memory.find(reinterpret_cast<const uint64_t *>(&word)));
}
template <class T> void set(T &word, uint64_t value) { machine.memory.set(reinterpret_cast<uint64_t *>(&word), value); }

} // namespace model
