// What a C++ test needs: TEST(name) { CHECK(condition, "printf", ...); } and a main that runs the test named, or all.
#pragma once
#include <cinttypes>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace check {

inline std::vector<std::pair<std::string, void (*)()>> &tests() {
  static std::vector<std::pair<std::string, void (*)()>> all;
  return all;
}

struct Register {
  Register(const char *name, void (*test)()) { tests().emplace_back(name, test); }
};

[[noreturn]] __attribute__((format(printf, 4, 5))) inline void fail(const char *file, int line, const char *condition,
                                                                    const char *format, ...) {
  std::fprintf(stderr, "%s:%d: not true: %s\n  ", file, line, condition);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::fflush(stderr);
  std::_Exit(1);
}

// The same numbers everywhere (splitmix64).
struct Random {
  uint64_t state;
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) { return (*this)() % n; }
};

} // namespace check

#define TEST(name)                                                                                                             \
  static void name();                                                                                                          \
  static const check::Register register_##name(#name, name);                                                                   \
  static void name()

#define CHECK(condition, ...)                                                                                                  \
  do {                                                                                                                         \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                \
  } while (0)

int main(int argc, char **argv) {
  bool found = argc < 2;
  for (const auto &test : check::tests())
    if (argc < 2 || test.first == argv[1]) {
      test.second();
      std::printf("%s: ok\n", test.first.c_str());
      found = true;
    }
  if (!found) std::fprintf(stderr, "there is no test %s\n", argv[1]);
  return found ? 0 : 2;
}
