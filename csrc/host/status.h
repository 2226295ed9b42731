// Failure: an error inside the core; at the C interface it becomes a status and a message of the calling thread.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "include/interface.h"

namespace atos {

struct Failure : std::exception {
  atos_status status;
  std::string message;
  Failure(atos_status status, std::string message) : status(status), message(std::move(message)) {}
  const char *what() const noexcept override { return message.c_str(); }
};

// printf into a string.
std::string format(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The message of the last failure in this thread.
void set_message(const std::string &message) noexcept;
const std::string &message() noexcept;

// Runs the body of a function of the C interface.
template <class F> atos_status guarded(F body) noexcept {
  try {
    body();
    return ATOS_OK;
  } catch (const Failure &failure) {
    set_message(failure.message);
    return failure.status;
  } catch (const std::bad_alloc &) {
    set_message("the host has too little free memory");
    return ATOS_NO_MEMORY;
  } catch (const std::exception &error) {
    set_message(error.what());
    return ATOS_INVALID;
  }
}

} // namespace atos
