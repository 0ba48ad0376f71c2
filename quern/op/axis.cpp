// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/op/axis.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "quern/base/error.h"

namespace quern {

/// By number. Written under the mutex, read without it: rejections of variants name axes on every call.
static std::atomic<const char*> g_words[kMaxAxisWords] = {
#define QN_WORD(word, meaning) #word,
    QN_GLOSSARY(QN_WORD)
#undef QN_WORD
};
static std::atomic<const char*> g_meanings[kGlossaryRoom] = {
#define QN_WORD(word, meaning) meaning,
    QN_GLOSSARY(QN_WORD)
#undef QN_WORD
};
static std::mutex g_mutex;

const char* name(Axis axis) {
  const char* const word = size_t(axis) < size_t(kMaxAxisWords) ? g_words[size_t(axis)].load(std::memory_order_acquire) : nullptr;
  if (!word)
    throw Error(ErrorKind::value, "", "axis", "is " + std::to_string(int(axis)), "one that is in the glossary or that axis_of() has made");
  return word;
}

const char* meaning(Axis axis) {
  const char* text = size_t(axis) < size_t(kGlossaryRoom) ? g_meanings[size_t(axis)].load(std::memory_order_acquire) : nullptr;
  return text ? text : "";
}

/// The number of the word; -1: it has none yet.
static int number_of(std::string_view word) {
  for (int i = 0; i < kMaxAxisWords; ++i)
    if (const char* known = g_words[i].load(std::memory_order_relaxed); known && word == known) return i;
  return -1;
}

Axis axis_of(std::string_view word) {
  const std::lock_guard lock(g_mutex);
  if (const int known = number_of(word); known >= 0) return Axis(known);
  int i = kGlossaryRoom;
  while (i < kMaxAxisWords && g_words[i].load(std::memory_order_relaxed)) ++i;
  if (i == kMaxAxisWords) throw Error(ErrorKind::internal, "too many axes: no room for '" + std::string(word) + "'");
  char* kept = new char[word.size() + 1];  // as long as the process: name() hands it out
  std::memcpy(kept, word.data(), word.size());
  kept[word.size()] = 0;
  g_words[i].store(kept, std::memory_order_release);
  return Axis(i);
}

std::string join_glossary(const GlossaryWord* words, size_t count) {
  const std::lock_guard lock(g_mutex);
  if (count > size_t(kGlossaryRoom))
    return "a glossary of " + std::to_string(count) + " axes, for " + std::to_string(kGlossaryRoom) + " of which there is room";
  for (size_t i = 0; i < count; ++i) {
    const char* ours = g_words[i].load(std::memory_order_relaxed);
    if (ours && std::strcmp(ours, words[i].word) == 0) continue;
    const std::string axis = "the axis " + std::string(words[i].word) + " by number " + std::to_string(i);
    if (ours) return axis + ", which is " + ours + " here";
    if (const int other = number_of(words[i].word); other >= 0) return axis + ", which has number " + std::to_string(other) + " here";
    g_meanings[i].store(words[i].meaning, std::memory_order_release);
    g_words[i].store(words[i].word, std::memory_order_release);
  }
  return "";
}

}  // namespace quern
