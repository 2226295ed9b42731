// Items of several kinds: the last byte of an item says which task runs it. The caller numbers the kinds, and may number them
// anew, or begin to use kinds in a queue whose items had none and are too small for that byte.
#include "host/queue.h"

#include <cstring>

using namespace atos;

namespace {

// Gives items of `from` bytes their new kinds, and `to` bytes; false if an item would get no kind.
bool renumber(const std::vector<unsigned char> &items, uint32_t from, uint32_t to, const uint8_t *kinds,
              std::vector<unsigned char> *result) {
  result->resize(items.size() / from * to);
  for (size_t i = 0; i < items.size() / from; ++i) {
    const unsigned char *item = &items[i * from];
    unsigned char *now = &(*result)[i * to];
    std::memcpy(now, item, from);
    now[to - 1] = kinds[from == to ? item[from - 1] : 0];
    if (now[to - 1] == ATOS_NO_KIND) return false;
  }
  return true;
}

} // namespace

std::unique_ptr<atos_queue> atos_queue::convert(uint32_t item_bytes, const uint8_t *kinds) {
  const auto lock = enter();
  if (item_bytes < storage.item_bytes)
    throw Failure(ATOS_INVALID, format("items of %u bytes cannot become smaller (got %u)", storage.item_bytes, item_bytes));
  bool same = item_bytes == storage.item_bytes;
  for (unsigned kind = 0; kind < 256 && same; ++kind) same = kinds[kind] == kind;
  const uint64_t pending = storage.num_pending(), level = storage.level;
  std::vector<unsigned char> items;
  std::vector<double> priorities(storage.has_buckets() ? pending : 0);
  storage.read_priorities(priorities.data(), priorities.size());
  const auto store_in = [&](QueueStorage &its) {
    if (its.has_buckets()) its.replace_prioritized(items.data(), priorities.data(), pending);
    else its.replace(items.data(), pending, level);
  };
  if (pending && !same && !renumber(storage.peek(), storage.item_bytes, item_bytes, kinds, &items)) return nullptr;
  std::unique_ptr<atos_queue> next;
  if (item_bytes == storage.item_bytes) {
    next.reset(new atos_queue(device, owned));
    if (pending && !same) store_in(storage);
  } else {
    next = std::make_unique<atos_queue>(device, storage.size, item_bytes);
    next->storage.max_size = storage.max_size.load();
    if (storage.has_buckets()) next->storage.set_buckets_as(storage);
    store_in(next->storage);
  }
  next->total_ran = total_ran;
  next->total_pushed = total_pushed;
  replaced = true;
  return next;
}
