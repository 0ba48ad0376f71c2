// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The quern authors
#include "quern/emu/clock.h"

#include <algorithm>

namespace quern::emu {
namespace {

u32 at(const Snapshot& snapshot, u32 thread) { return thread < snapshot.clocks.size() ? snapshot.clocks[thread] : 0; }
void raise(std::vector<u32>& clocks, u32 thread, u32 clock) {
  if (thread >= clocks.size()) clocks.resize(thread + 1);
  clocks[thread] = max_of(clocks[thread], clock);
}
void raise_all(std::vector<u32>& clocks, const std::vector<u32>& by) {
  if (by.size() > clocks.size()) clocks.resize(by.size());
  for (size_t i = 0; i < by.size(); ++i) clocks[i] = max_of(clocks[i], by[i]);
}
/// Sorted by thread, each thread once, with its latest clock.
void normalise(std::vector<Recent::Entry>& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const Recent::Entry& a, const Recent::Entry& b) { return a.thread != b.thread ? a.thread < b.thread : a.clock > b.clock; });
  entries.erase(
      std::unique(entries.begin(), entries.end(), [](const Recent::Entry& a, const Recent::Entry& b) { return a.thread == b.thread; }),
      entries.end());
}
auto find_block(const std::vector<Foreign::Entry>& entries, u64 block) {
  return std::lower_bound(entries.begin(), entries.end(), block, [](const Foreign::Entry& entry, u64 b) { return entry.block < b; });
}
Shared<Snapshot> joined(const Shared<Snapshot>& a, const Shared<Snapshot>& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  Shared<Snapshot> both(new Snapshot{0, a->clocks});
  raise_all(both->clocks, b->clocks);
  return both;
}

}  // namespace

bool Knowledge::covers(Epoch epoch) const {
  const u32 thread = epoch.thread(), clock = epoch.clock();
  if (epoch.block() == block) {
    if (base && at(*base, thread) >= clock) return true;
    if (!recent) return false;
    const auto& entries = recent->entries;
    const auto found =
        std::lower_bound(entries.begin(), entries.end(), thread, [](const Recent::Entry& entry, u32 t) { return entry.thread < t; });
    return found != entries.end() && found->thread == thread && found->clock >= clock;
  }
  if (!foreign) return false;
  const auto found = find_block(foreign->entries, epoch.block());
  return found != foreign->entries.end() && found->block == epoch.block() && at(*found->known, thread) >= clock;
}

void Knowledge::learn(u32 thread, u32 clock) {
  Shared<Recent> more(new Recent);
  if (recent) more->entries = recent->entries;
  more->entries.push_back({thread, clock});
  normalise(more->entries);
  recent = std::move(more);
}

Shared<Snapshot> flatten(const Knowledge& knowledge, u32 block_threads) {
  if (!knowledge.recent && knowledge.base) return knowledge.base;
  Shared<Snapshot> all(new Snapshot);
  if (knowledge.base) all->clocks = knowledge.base->clocks;
  if (all->clocks.size() < block_threads) all->clocks.resize(block_threads);
  if (knowledge.recent)
    for (const Recent::Entry& entry : knowledge.recent->entries) raise(all->clocks, entry.thread, entry.clock);
  return all;
}

void Knowledge::join_same_block(const Knowledge& other) {
  if (other.base && !(other.base == base)) {
    base = joined(flatten(*this, 0), other.base);
    recent = {};
  }
  if (!other.recent || other.recent == recent) return;
  Shared<Recent> more(new Recent);
  more->entries = other.recent->entries;
  if (recent) more->entries.insert(more->entries.end(), recent->entries.begin(), recent->entries.end());
  normalise(more->entries);
  recent = std::move(more);
}

void Knowledge::join_snapshot(u64 of_block, const Shared<Snapshot>& known) {
  if (of_block == block) {
    if (base == known) return;
    base = joined(flatten(*this, 0), known);
    recent = {};
    return;
  }
  std::vector<Foreign::Entry> entries;
  if (foreign) {
    const auto found = find_block(foreign->entries, of_block);
    if (found != foreign->entries.end() && found->block == of_block && found->known == known) return;
    entries = foreign->entries;
  }
  const auto place =
      std::lower_bound(entries.begin(), entries.end(), of_block, [](const Foreign::Entry& entry, u64 b) { return entry.block < b; });
  if (place != entries.end() && place->block == of_block) {
    place->known = joined(place->known, known);
  } else {
    entries.insert(place, {of_block, known});
  }
  foreign = Shared<Foreign>(new Foreign{0, std::move(entries)});
}

void Knowledge::join(const Knowledge& other) {
  join_order(other);
  join_proxies(other);
}

void Knowledge::join_proxies(const Knowledge& other) {
  if (!other.proxies || other.proxies == proxies) return;
  if (!proxies && other.block == block) {
    proxies = other.proxies;
    return;
  }
  Shared<Proxies> both(new Proxies);
  for (u32 i = 0; i < kProxies; ++i) {
    Knowledge& known = both->known[i];
    if (proxies) known = proxies->known[i];
    known.block = block;
    known.join_order(other.proxies->known[i]);
  }
  proxies = std::move(both);
}

bool Knowledge::fenced(Proxy proxy, Epoch write) const { return proxies && proxies->known[u32(proxy)].covers(write); }

void Knowledge::fence(Proxy proxy, const Knowledge& before) {
  Shared<Proxies> more(new Proxies);
  for (u32 i = 0; i < kProxies; ++i) {
    if (proxies) more->known[i] = proxies->known[i];
    more->known[i].block = block;
  }
  more->known[u32(proxy)].join_order(before);
  proxies = std::move(more);
}

void Knowledge::join_order(const Knowledge& other) {
  if (other.block == block) {
    join_same_block(other);
  } else if (other.base || other.recent) {
    join_snapshot(other.block, flatten(other, 0));
  }
  if (!other.foreign || other.foreign == foreign) return;
  if (!foreign && find_block(other.foreign->entries, block) == other.foreign->entries.end()) {
    foreign = other.foreign;
    return;
  }
  const Shared<Foreign> theirs = other.foreign;
  for (const Foreign::Entry& entry : theirs->entries) join_snapshot(entry.block, entry.known);
}

bool ThreadClock::covers(Epoch epoch) const {
  if (epoch.thread() == thread && epoch.block() == known.block) return true;
  return known.covers(epoch);
}

Knowledge ThreadClock::published() const {
  Knowledge all = known;
  all.learn(thread, now);
  return all;
}

namespace {

/// A few threads: their news are listed beside the base they share.
bool synchronise_recent(ThreadClock* const* clocks, size_t count) {
  Shared<Recent> together(new Recent);
  const Recent* last = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const Knowledge& known = clocks[i]->known;
    if (!(known.base == clocks[0]->known.base)) return false;
    if (known.recent && known.recent.get() != last) {
      last = known.recent.get();
      together->entries.insert(together->entries.end(), last->entries.begin(), last->entries.end());
    }
    together->entries.push_back({clocks[i]->thread, clocks[i]->now});
  }
  normalise(together->entries);
  for (size_t i = 0; i < count; ++i) clocks[i]->known.recent = together;
  return true;
}

/// A new base for all.
void synchronise_base(ThreadClock* const* clocks, size_t count, u32 block_threads) {
  Shared<Snapshot> all(new Snapshot);
  all->clocks.resize(block_threads);
  const Snapshot* last_base = nullptr;
  const Recent* last_recent = nullptr;
  for (size_t i = 0; i < count; ++i) {
    const Knowledge& known = clocks[i]->known;
    if (known.base && known.base.get() != last_base) {
      last_base = known.base.get();
      raise_all(all->clocks, last_base->clocks);
    }
    if (known.recent && known.recent.get() != last_recent) {
      last_recent = known.recent.get();
      for (const Recent::Entry& entry : last_recent->entries) raise(all->clocks, entry.thread, entry.clock);
    }
    raise(all->clocks, clocks[i]->thread, clocks[i]->now);
  }
  for (size_t i = 0; i < count; ++i) {
    clocks[i]->known.base = all;
    clocks[i]->known.recent = {};
  }
}

/// Which writes are fenced is news to all. Fences are mostly executed by every thread before a barrier, so the news are
/// gathered in one snapshot instead of joined one by one.
void share_proxies(ThreadClock* const* clocks, size_t count) {
  bool same = true;
  for (size_t i = 1; i < count; ++i) same &= clocks[i]->known.proxies == clocks[0]->known.proxies;
  if (same) return;
  Shared<Proxies> together(new Proxies);
  for (u32 p = 0; p < kProxies; ++p) {
    Knowledge& all = together->known[p];
    all.block = clocks[0]->known.block;
    Shared<Snapshot> gathered(new Snapshot);
    const void* last_base = nullptr;
    const void* last_foreign = nullptr;
    for (size_t i = 0; i < count; ++i) {
      if (!clocks[i]->known.proxies) continue;
      const Knowledge& theirs = clocks[i]->known.proxies->known[p];
      if (theirs.base && theirs.base.get() != last_base) raise_all(gathered->clocks, theirs.base->clocks);
      last_base = theirs.base.get();
      if (theirs.recent)
        for (const Recent::Entry& entry : theirs.recent->entries) raise(gathered->clocks, entry.thread, entry.clock);
      if (!theirs.foreign || theirs.foreign.get() == last_foreign) continue;
      last_foreign = theirs.foreign.get();
      Knowledge of_others;
      of_others.block = all.block;
      of_others.foreign = theirs.foreign;
      all.join(of_others);
    }
    if (!gathered->clocks.empty()) all.base = gathered;
  }
  for (size_t i = 0; i < count; ++i) clocks[i]->known.proxies = together;
}

void share_fenced(ThreadClock* const* clocks, size_t count) {
  for (u32 scope = 0; scope < kScopes; ++scope) {
    Scoped* first = nullptr;
    for (size_t i = 0; i < count; ++i) {
      Scoped& fenced = clocks[i]->fenced[scope];
      if (!fenced.some) continue;
      if (!first) first = &fenced;
      first->known.join(fenced.known);
    }
    if (!first) continue;
    for (size_t i = 0; i < count; ++i) clocks[i]->fenced[scope] = *first;
  }
}

}  // namespace

void synchronise(ThreadClock* const* clocks, size_t count, u32 block_threads) {
  if (count == 0) return;
  bool same_foreign = true;
  for (size_t i = 1; i < count; ++i) same_foreign &= clocks[i]->known.foreign == clocks[0]->known.foreign;
  if (!same_foreign) {
    Knowledge others;
    others.block = ~u64(0);  // nobody's: only what is known of other blocks
    for (size_t i = 0; i < count; ++i) {
      Knowledge theirs;
      theirs.block = ~u64(0);
      theirs.foreign = clocks[i]->known.foreign;
      others.join(theirs);
    }
    for (size_t i = 0; i < count; ++i) clocks[i]->known.foreign = others.foreign;
  }
  constexpr size_t kFewThreads = 32;
  if (count > kFewThreads || count * 4 > block_threads || !synchronise_recent(clocks, count))
    synchronise_base(clocks, count, block_threads);
  share_fenced(clocks, count);
  share_proxies(clocks, count);
  for (size_t i = 0; i < count; ++i) ++clocks[i]->now;
}

}  // namespace quern::emu
