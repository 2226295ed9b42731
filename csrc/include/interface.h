// atos.h for C++: it is plain C without macros, and so has neither guards nor linkage of its own.
#pragma once
#include <cstdint>

#if !defined(__CUDACC__)
#pragma GCC visibility push(default)
#endif
extern "C" {
#include "atos.h"
}
#if !defined(__CUDACC__)
#pragma GCC visibility pop
#endif
