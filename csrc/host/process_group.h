// atos_group: several processes of one host, which meet by sockets.
//
// Each process has a socket to each other process, which keeps the borders of messages. The system hangs a socket up when the
// process at its other end is gone, however that process ended, so nobody waits for a process that is gone.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

#include "include/interface.h"

namespace atos {
class StopMonitor;
}

struct atos_group {
public:
  const uint32_t count, own; // processes, and the number of this one

  // Takes the sockets over; does not look at the socket at `own`.
  atos_group(uint32_t count, uint32_t own, const int32_t *sockets);
  ~atos_group() { leave(); }
  atos_group(const atos_group &) = delete;
  atos_group &operator=(const atos_group &) = delete;

  // Hands out `bytes` bytes to all processes, and waits for their bytes, which `all` gets by number. The wait is part of the
  // launch of `monitor`. Throws ATOS_GONE if another process is gone, or this process has to give up: then this process has to
  // leave.
  void gather(const void *mine, uint64_t bytes, void *all, atos::StopMonitor &monitor);
  // `gather` without a launch: waits for at most 20 ms, and throws ATOS_HELD if the caller is to call it again.
  void gather_in_turn(const void *mine, uint64_t bytes, void *all);
  // `gather` with a file descriptor of each process, or -1; `files` gets the other descriptors, to be closed by the caller.
  void gather_files(const void *mine, uint64_t bytes, void *all, int file, int *files, atos::StopMonitor &monitor);
  void gather_files_in_turn(const void *mine, uint64_t bytes, void *all, int file, int *files);

  bool lost();                                                       // whether a process is gone, between gathers
  bool has_left(uint32_t number) const { return left[number] != 0; } // whether `number` is gone, as far as `lost` has seen
  bool is_closed() const { return closed; }                          // whether this process has left
  void leave() noexcept;                                             // hangs up

private:
  std::vector<int> sockets; // -1: none
  std::vector<uint8_t> left, arrived;
  std::mutex mutex;
  bool handed_out = false; // whether the current gather has handed out this process's bytes
  bool closed = false;
  int file = -1, *files = nullptr; // of the current gather: the file to hand out, and where other processes' files go

  struct Files;
  std::unique_lock<std::mutex> enter();
  bool step(const void *mine, uint64_t bytes, void *all, std::chrono::milliseconds wait);
  void hand_out(const void *mine, uint64_t bytes, void *all);
  void receive(uint32_t number, uint64_t bytes, void *all);
  void check_complete() const;
};
