#include "host/status.h"

#include <cstdio>

namespace atos {

static thread_local std::string message_of_thread;

std::string format(const char *format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

void set_message(const std::string &message) noexcept {
  try {
    message_of_thread = message;
  } catch (...) {
    message_of_thread.clear();
  }
}

const std::string &message() noexcept { return message_of_thread; }

} // namespace atos
