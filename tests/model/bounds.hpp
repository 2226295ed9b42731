// How large a model is, as the command line says: name=number, and children=2,1,0,0, levels=0,1,1,2 or owners=0,1,1,0.
#pragma once
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

namespace model {

constexpr unsigned kMostThreads = 3;

struct Bounds {
  unsigned workers = 2;
  std::vector<unsigned> children; // of each task, in the order of their numbers: the tasks are trees
  unsigned nodes = 0;             // tasks
  unsigned seeds = 1;             // the first of them, which the host pushes
  unsigned capacity = 2, max_capacity = 0; // slots of the ring, and how far it may grow
  unsigned grows = 0;     // 1: it doubles up to there while workers run,
  unsigned memory = 9;    // if the host has memory for as many growths
  unsigned fetch = 1, buffer = 4;
  unsigned barrier = 0; // that of a launch
  unsigned launches = 1;
  unsigned stops = 0;   // times that the host asks for a stop, whenever it likes
  unsigned fails = 0;   // mask of the tasks in which a check fails, which ends all
  unsigned halts = 0;   // mask of the tasks that stop their launch
  unsigned aside = 0;   // mask of the tasks that are put aside instead of pushed, for the idle function to push
  unsigned between = 0; // mask of those that the function between rounds pushes, which is called if there are any,
  unsigned ends = 0;    // and the call of it, from 1 on, that stops the launch
  unsigned nested = 0;  // 1: a task has an iteration for each child,
  unsigned longs = 0;   // and those in this mask at least long_from
  unsigned flat = 0;    // mask of the tasks that are of a second kind, which is flat; items of 8 bytes
  unsigned long_from = 2, chunk = 1, few = 32, backlog = 8, share = 1; // in place of the constants in csrc
  unsigned steps = 1000; // likewise: with local items only
  unsigned waits = 0;    // mask of the tasks that push themselves again until the last seed has been claimed
  unsigned keep = 1;    // 0: no worker keeps what it pushed
  unsigned threads = 0; // 1: the workers are thread workers, of warps of one lane
  unsigned switched_off = 0; // 1: a launch lets workers keep nothing, and share no long items
  unsigned cta = 0;     // 1: a worker is more than its first warp, and flushes all together what are not few
  unsigned sent = 0;    // of the seeds, the last ones, which the host sends while workers run,
  unsigned inbox = 1; // through an inbox for so many items,
  unsigned stops_sent = 0; // 1: as are the stops
  unsigned timed = 0;   // 1: no stop comes, but workers see by the clock that it is time for one
  unsigned newest = 0;  // room of the stacks of a queue that takes the newest items first
  unsigned buckets = 0; // of the queue; then it has these:
  unsigned blocks = 4;  // for far items
  unsigned adapts = 0;  // 1: the width of a bucket does
  std::vector<unsigned> levels; // of each task
  unsigned devices = 0; // of a launch over several (peers.cpp), to which the workers belong in turns,
  std::vector<unsigned> owners; // and which one each task belongs to;
  unsigned local = 0;   // 1: a worker keeps an item of its own device, in launches without barriers,
  unsigned surplus = 0; // and 1: those near items that it does not keep go to the lists of their buckets
  unsigned weak = 0;    // 1: memory as weak as the C++ and PTX models allow
  unsigned report = 0;  // 1: what the last block reports is looked at
  unsigned most = 5000000; // states

  // False if it makes no sense of an argument.
  bool read(int count, char **arguments) {
    const struct { const char *name; unsigned *value; } names[] = {
        {"workers", &workers}, {"seeds", &seeds}, {"capacity", &capacity}, {"max_capacity", &max_capacity}, {"grows", &grows},
        {"memory", &memory}, {"fetch", &fetch}, {"buffer", &buffer}, {"barrier", &barrier}, {"launches", &launches}, {"stops", &stops}, {"fails", &fails}, {"halts", &halts}, {"aside", &aside}, {"between", &between}, {"ends", &ends},
        {"nested", &nested}, {"longs", &longs}, {"flat", &flat}, {"long_from", &long_from}, {"chunk", &chunk}, {"few", &few}, {"share", &share}, {"backlog", &backlog}, {"steps", &steps}, {"waits", &waits},
        {"keep", &keep}, {"switched_off", &switched_off}, {"newest", &newest}, {"threads", &threads}, {"buckets", &buckets}, {"blocks", &blocks}, {"devices", &devices}, {"local", &local}, {"surplus", &surplus}, {"adapts", &adapts}, {"cta", &cta}, {"sent", &sent}, {"inbox", &inbox}, {"stops_sent", &stops_sent}, {"timed", &timed}, {"weak", &weak}, {"report", &report}, {"most", &most}};
    for (int i = 1; i < count; ++i) {
      const char *equals = std::strchr(arguments[i], '=');
      if (!equals) return false;
      const size_t length = size_t(equals - arguments[i]);
      const auto is = [&](const char *name) { return length == std::strlen(name) && !std::strncmp(arguments[i], name, length); };
      bool known = is("children") || is("levels") || is("owners");
      std::vector<unsigned> &list = is("children") ? children : is("levels") ? levels : owners;
      for (const char *at = equals; known && at; at = std::strchr(at + 1, ',')) list.push_back(unsigned(std::atoi(at + 1)));
      for (const auto &name : names)
        if (is(name.name)) *name.value = unsigned(std::atoi(equals + 1)), known = true;
      if (!known) return false;
    }
    nodes = unsigned(children.size());
    max_capacity = max_capacity ? max_capacity : capacity;
    return workers <= kMostThreads && !((local || surplus) && barrier) && levels.size() == (buckets ? nodes : 0) && owners.size() == (devices ? nodes : 0) && std::accumulate(children.begin(), children.end(), seeds) == nodes;
  }
};
inline Bounds bounds;

// The trees of tasks.
inline unsigned first_child(unsigned v) {
  unsigned child = bounds.seeds;
  for (unsigned u = 0; u < v; ++u) child += bounds.children[u];
  return child;
}
inline unsigned parent(unsigned v) {
  unsigned u = 0;
  while (first_child(u) + bounds.children[u] <= v) ++u;
  return u;
}
inline unsigned level(unsigned v) { return v < bounds.seeds ? 0 : level(parent(v)) + 1; }

} // namespace model
