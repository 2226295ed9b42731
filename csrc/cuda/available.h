// ATOS_HAS_CUDA: whether this build has CUDA's headers. Only this file asks for the headers. Without them, unavailable.cpp
// takes the place of all other sources of this folder.
#pragma once

#if __has_include(<cuda.h>)
#define ATOS_HAS_CUDA 1
#else
#define ATOS_HAS_CUDA 0
#endif
