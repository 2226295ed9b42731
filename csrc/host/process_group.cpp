// Messages between the processes of a group.
#include "host/process_group.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "host/stop_monitor.h"

using namespace atos;

constexpr std::chrono::milliseconds kTurn{20}; // waited at once, before the caller may handle signals

namespace {

// A message of some bytes, and maybe a file descriptor.
struct Message {
  msghdr header{};

  Message(void *data, uint64_t bytes) : part{data, size_t(bytes)} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
  }
  Message(const Message &) = delete;
  Message &operator=(const Message &) = delete;

  void expect_file() {
    header.msg_control = space;
    header.msg_controllen = sizeof space;
  }
  void put(int file) {
    expect_file();
    cmsghdr *first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof file);
    std::memcpy(CMSG_DATA(first), &file, sizeof file);
  }
  int file() { // -1: none
    int found = -1;
    const cmsghdr *first = CMSG_FIRSTHDR(&header);
    if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS)
      std::memcpy(&found, CMSG_DATA(first), sizeof found);
    return found;
  }

private:
  iovec part;
  alignas(cmsghdr) unsigned char space[CMSG_SPACE(sizeof(int))]{};
};

} // namespace

// During a gather: the file descriptors that go with its messages.
struct atos_group::Files {
  atos_group &group;
  Files(atos_group &group, int file, int *files) : group(group) {
    group.file = file;
    group.files = files;
  }
  ~Files() {
    group.file = -1;
    group.files = nullptr;
  }
};

atos_group::atos_group(uint32_t count, uint32_t own, const int32_t *given)
    : count(count), own(own), sockets(given, given + count), left(count), arrived(count) {
  sockets[own] = -1;
}

std::unique_lock<std::mutex> atos_group::enter() {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock) throw Failure(ATOS_INVALID, "another thread of this process uses the group of processes");
  return lock;
}

void atos_group::gather(const void *mine, uint64_t bytes, void *all, StopMonitor &monitor) {
  const auto lock = enter();
  monitor.wait_for_others();
  try {
    while (!step(mine, bytes, all, std::chrono::duration_cast<std::chrono::milliseconds>(monitor.time_to_next_poll())))
      monitor.poll();
  } catch (const Failure &failure) {
    if (failure.status != ATOS_STUCK) throw;
    throw Failure(ATOS_GONE, "the launch was to stop, and other processes did not; this one has left their group");
  }
}

void atos_group::gather_in_turn(const void *mine, uint64_t bytes, void *all) {
  const auto lock = enter();
  if (!step(mine, bytes, all, kTurn)) throw Failure(ATOS_HELD, "not all processes have come so far");
}

void atos_group::gather_files(const void *mine, uint64_t bytes, void *all, int given, int *received, StopMonitor &monitor) {
  const Files with(*this, given, received);
  gather(mine, bytes, all, monitor);
}

void atos_group::gather_files_in_turn(const void *mine, uint64_t bytes, void *all, int given, int *received) {
  const Files with(*this, given, received);
  gather_in_turn(mine, bytes, all);
}

// Whether the messages of all processes have arrived.
bool atos_group::step(const void *mine, uint64_t bytes, void *all, std::chrono::milliseconds wait) {
  if (!handed_out) hand_out(mine, bytes, all);
  std::vector<pollfd> waited;
  std::vector<uint32_t> numbers;
  for (uint32_t k = 0; k < count; ++k)
    if (!arrived[k] && !left[k]) {
      waited.push_back({sockets[k], POLLIN, 0});
      numbers.push_back(k);
    }
  if (!waited.empty() && poll(waited.data(), waited.size(), int(wait.count())) > 0)
    for (size_t i = 0; i < waited.size(); ++i)
      if (waited[i].revents) receive(numbers[i], bytes, all);
  bool complete = true;
  for (uint32_t k = 0; k < count; ++k) complete &= arrived[k] != 0;
  if (!complete) check_complete();
  handed_out = !complete;
  return complete;
}

void atos_group::hand_out(const void *mine, uint64_t bytes, void *all) {
  check_complete();
  for (uint32_t k = 0; k < count; ++k) {
    arrived[k] = k == own;
    if (k == own) continue;
    Message message(const_cast<void *>(mine), bytes);
    if (file >= 0) message.put(file);
    ssize_t sent;
    do sent = sendmsg(sockets[k], &message.header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent != ssize_t(bytes)) left[k] = 1;
  }
  std::memcpy(static_cast<char *>(all) + own * bytes, mine, bytes);
  handed_out = true;
}

void atos_group::receive(uint32_t number, uint64_t bytes, void *all) {
  Message message(static_cast<char *>(all) + number * bytes, bytes);
  message.expect_file();
  const auto once = [&] { return recvmsg(sockets[number], &message.header, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC); };
  ssize_t got = once();
  if (got < 0 && errno == ECONNRESET) got = once(); // messages sent before may be behind the reset
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    left[number] = 1;
    return;
  }
  if (uint64_t(got) != bytes)
    throw Failure(ATOS_INVALID, format("process %u is at another call than this one; all processes of a group make the same "
                                       "calls in the same order",
                                       number));
  const int its = message.file();
  if (files) files[number] = its;
  else if (its >= 0) close(its);
  arrived[number] = 1;
}

// Throws if a process is gone for which this process would wait.
void atos_group::check_complete() const {
  std::string gone;
  unsigned n = 0;
  for (uint32_t k = 0; k < count; ++k)
    if (left[k]) {
      gone += (n++ ? ", " : "") + std::to_string(k);
    }
  if (n)
    throw Failure(ATOS_GONE, format("process%s %s of the group of %u %s ended, or left it", n > 1 ? "es" : "", gone.c_str(),
                                    count, n > 1 ? "have" : "has"));
  if (closed) throw Failure(ATOS_GONE, "this process has left the group");
}

bool atos_group::lost() {
  const std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock) return false; // a gather finds out by itself, after the messages that a process sent before it ended
  bool any = false;
  for (uint32_t k = 0; k < count; ++k) {
    pollfd its{sockets[k], 0, 0};
    if (k != own && sockets[k] >= 0 && poll(&its, 1, 0) > 0 && its.revents & (POLLHUP | POLLERR | POLLNVAL)) left[k] = 1;
    any |= left[k] != 0;
  }
  return any;
}

void atos_group::leave() noexcept {
  closed = true;
  for (int &socket : sockets)
    if (socket >= 0) close(std::exchange(socket, -1));
}
