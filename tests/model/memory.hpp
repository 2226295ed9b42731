// The memory that the model checker gives to the threads: a few named 64-bit words.
//
// If it is weak, a word is the list of all values stored to it that somebody may still read, and every thread has a view: how far
// in each list it has come. A relaxed load may return any value that is not older than the thread's view. A store carries the
// view that its thread had at its last fence; who reads it takes that view over at its own next fence. That is the fragment
// of the C++ and PTX models with relaxed accesses, read-modify-writes and acquire-release fences, but for load buffering.
// Two stores to a word must be ordered (or store the same): that is checked, so that a list has one order.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "bounds.hpp"

namespace model {

constexpr unsigned kMaxWords = 224;

[[noreturn]] void fail(const std::string &what); // ends the exploration with the steps that led here
unsigned pick(unsigned n);                       // one of n ways to go on: each of them is explored

using View = std::array<uint8_t, kMaxWords>;

inline void join(View &to, const View &from) {
  for (unsigned i = 0; i < kMaxWords; ++i) to[i] = std::max(to[i], from[i]);
}

inline bool within(const View &part, const View &whole) {
  for (unsigned i = 0; i < kMaxWords; ++i)
    if (part[i] > whole[i]) return false;
  return true;
}

// Bytes of a state: numbers, the small ones short.
struct Writer {
  std::string data;
  void put(uint64_t v) {
    if (v < 128) return data.push_back(char(v));
    data.push_back(char(v | 128));
    put(v >> 7);
  }
};
struct Reader {
  const char *at;
  uint64_t get() {
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint64_t byte = uint8_t(*at++);
      v |= (byte & 127) << shift;
      if (byte < 128) return v;
    }
  }
};

struct Memory {
  struct Word {
    std::string name;
    bool plain; // not part of the protocol: always coherent, and no step of its own
    bool late;  // stores may come beside modifications that are too late: there is one place for them, behind those
    bool lock;  // taken by a modification and given back by a store
  };
  struct Message {
    uint64_t value;
    View view{};
  };
  struct Views {
    View seen{}, pending{}, released{}; // what loads must respect; what the next fence adds to it; what stores carry
  };

  std::vector<Word> words;
  std::unordered_map<const uint64_t *, unsigned> index;
  std::vector<std::vector<Message>> messages; // of each word, oldest first
  std::vector<Views> views;                   // of each thread

  void name(const uint64_t *p, const std::string &name, bool plain, bool late, bool lock) {
    if (words.size() == kMaxWords) fail("too many words");
    index.emplace(p, unsigned(words.size()));
    words.push_back({name, plain, late, lock});
    messages.push_back({Message{0, {}}});
  }
  unsigned find(const uint64_t *p) const {
    const auto at = index.find(p);
    if (at == index.end()) fail("a word of shared memory that the model does not know");
    return at->second;
  }

  uint64_t newest(unsigned w) const { return messages[w].back().value; }

  uint64_t load(unsigned thread, unsigned w) {
    if (!bounds.weak || words[w].plain) return newest(w);
    Views &mine = views[thread];
    const unsigned last = unsigned(messages[w].size()) - 1;
    return read(mine, w, last - pick(last - mine.seen[w] + 1));
  }

  void store(unsigned thread, unsigned w, uint64_t value) {
    if (!bounds.weak || words[w].plain) {
      messages[w].back().value = value;
      return;
    }
    if (!words[w].late && views[thread].seen[w] + 1u != messages[w].size() && newest(w) != value) fail("unordered stores to " + words[w].name);
    append(thread, w, value, views[thread].released);
    if (words[w].lock) forget_vain_lock(w);
  }

  // Applies f to the newest value; returns the one before. f may refuse a value, which is then only loaded, and may be older.
  template <class F> uint64_t modify(unsigned thread, unsigned w, F f) {
    const uint64_t old = newest(w);
    uint64_t value = old;
    if (!bounds.weak || words[w].plain) {
      if (f(&value)) messages[w].back().value = value;
      return old;
    }
    const unsigned last = unsigned(messages[w].size()) - 1;
    unsigned refused = 0; // of the older values
    for (unsigned at = views[thread].seen[w]; at < last; ++at) refused += !f(&(value = messages[w][at].value));
    if (unsigned skip = pick(1 + refused))
      for (unsigned at = views[thread].seen[w];; ++at)
        if (!f(&(value = messages[w][at].value)) && --skip == 0) return read(views[thread], w, at);
    read(views[thread], w, last);
    if (!f(&(value = old))) return old;
    View carried = views[thread].released;
    join(carried, messages[w][last].view); // a chain of read-modify-writes passes on what its first one released
    // Who adds nothing, to the value or to what it carries, leaves the word as it is: polling has a bounded number of states.
    if (value != old || !within(carried, messages[w][last].view)) append(thread, w, value, carried);
    return old;
  }

  void fence(unsigned thread) {
    if (!bounds.weak) return;
    join(views[thread].seen, views[thread].pending);
    views[thread].released = views[thread].seen;
  }

  // The host writes when no worker runs: everybody sees it.
  void set(const uint64_t *p, uint64_t value) { messages[find(p)] = {Message{value, {}}}; }
  // It writes while workers run: who reads this value knows, from its next fence on, of all that was told before with `view`.
  void tell(const uint64_t *p, uint64_t value, View &view) {
    if (!bounds.weak) return set(p, value);
    const unsigned w = find(p);
    view[w] = uint8_t(messages[w].size());
    messages[w].push_back({value, view});
  }
  // What is told together with the newest value of a word.
  View told_with(const uint64_t *p) const { return messages[find(p)].back().view; }
  // Whether a thread has read what tells of the newest value of a word.
  bool told(unsigned thread, const uint64_t *p) const {
    const unsigned w = find(p), newest = unsigned(messages[w].size()) - 1;
    return !bounds.weak || views[thread].seen[w] == newest || views[thread].pending[w] == newest;
  }
  void synchronize() {
    for (auto &list : messages) list = {Message{list.back().value, {}}};
    for (Views &mine : views) mine = Views{};
  }

  // Forgets what nobody can read any more.
  void tidy(const bool *gone) {
    if (!bounds.weak) return;
    for (unsigned w = 0; w < words.size(); ++w) {
      uint8_t low = uint8_t(messages[w].size() - 1);
      for (unsigned t = 0; t < views.size(); ++t)
        if (!gone[t]) low = std::min(low, views[t].seen[w]);
      if (!low) continue;
      messages[w].erase(messages[w].begin(), messages[w].begin() + low);
      const auto shift = [&](View &view) { view[w] = uint8_t(view[w] > low ? view[w] - low : 0); };
      for (Views &mine : views) shift(mine.seen), shift(mine.pending), shift(mine.released);
      for (auto &list : messages)
        for (Message &message : list) shift(message.view);
    }
    for (unsigned t = 0; t < views.size(); ++t) {
      if (gone[t]) views[t] = Views{};
      join(views[t].pending, views[t].seen);
    }
  }

  void write(Writer &bytes) const {
    if (!bounds.weak) { // each word has one value
      for (const std::vector<Message> &list : messages) bytes.put(list.front().value);
      return;
    }
    for (const std::vector<Message> &list : messages) {
      bytes.put(list.size());
      for (const Message &message : list) bytes.put(message.value), write(bytes, message.view);
    }
  }
  void read(Reader &bytes) {
    if (!bounds.weak) {
      for (std::vector<Message> &list : messages) list.front().value = bytes.get();
      return;
    }
    for (std::vector<Message> &list : messages) {
      list.resize(bytes.get());
      for (Message &message : list) message.value = bytes.get(), read(bytes, message.view);
    }
  }
  void write(Writer &bytes, const View &view) const {
    bytes.data.append(reinterpret_cast<const char *>(view.data()), words.size());
  }
  void read(Reader &bytes, View &view) const {
    view = View{};
    std::copy_n(bytes.at, words.size(), reinterpret_cast<char *>(view.data()));
    bytes.at += words.size();
  }

private:
  // A lock that was taken and given back as it was leaves no trace: polling has a bounded number of states.
  void forget_vain_lock(unsigned w) {
    std::vector<Message> &list = messages[w];
    const size_t n = list.size();
    if (n < 3 || list[n - 1].value != list[n - 3].value) return;
    View before = list[n - 3].view, after = list[n - 1].view;
    before[w] = after[w] = 0;
    if (before != after) return;
    list.resize(n - 2);
    const auto lower = [&](View &view) { view[w] = std::min(view[w], uint8_t(n - 3)); };
    for (Views &each : views) lower(each.seen), lower(each.pending), lower(each.released);
    for (auto &other : messages)
      for (Message &message : other) lower(message.view);
  }
  uint64_t read(Views &mine, unsigned w, unsigned at) {
    mine.seen[w] = std::max(mine.seen[w], uint8_t(at));
    join(mine.pending, messages[w][at].view);
    return messages[w][at].value;
  }
  void append(unsigned thread, unsigned w, uint64_t value, View view) {
    const uint8_t at = uint8_t(messages[w].size());
    if (at == 255) fail("too many values of " + words[w].name);
    views[thread].seen[w] = at;
    view[w] = at;
    messages[w].push_back({value, view});
  }
};

} // namespace model
