// In place of csrc/protocol/link_constants.cuh: what a launch uses is what the bounds of the model say.
#pragma once
#include "bounds.hpp"

namespace atos {

// A constant whose value is known when it is read.
template <class T> struct LinkConstant {
  T (*const value)();
  operator T() const { return value(); }
};

inline const LinkConstant<int32_t> nested{[]() -> int32_t { return model::bounds.nested; }};
inline const LinkConstant<int32_t> value_words{[]() -> int32_t { return model::bounds.nested; }};
inline const LinkConstant<int32_t> has_idle{[]() -> int32_t { return model::bounds.aside != 0; }};
inline const LinkConstant<int32_t> has_each_round{[]() -> int32_t { return model::bounds.between != 0; }};
inline const LinkConstant<int32_t> asks_for_pending{[]() -> int32_t { return model::bounds.between != 0; }};
inline const LinkConstant<int32_t> has_buckets{[]() -> int32_t { return model::bounds.buckets != 0; }};
inline const LinkConstant<int32_t> has_stack{[]() -> int32_t { return model::bounds.newest != 0; }};
inline const LinkConstant<int32_t> has_inbox{[]() -> int32_t { return model::bounds.sent != 0; }};
inline const LinkConstant<uint32_t> num_kinds{[]() -> uint32_t { return model::bounds.flat ? 2 : 0; }};
inline const LinkConstant<uint32_t> flat_kinds{[]() -> uint32_t { return model::bounds.flat ? 2 : 0; }}; // a bit
constexpr int32_t asks_for_round = 0, checked = 0, has_counters = 0;
constexpr uint32_t threads_of_iteration = 1;
constexpr int32_t has_peers = 0; // launches over several devices are a model of their own

} // namespace atos
