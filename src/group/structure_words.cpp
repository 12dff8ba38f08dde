// structure_words.cpp: what the hashes of fused trees of arrays stand for.
// SPDX-License-Identifier: Apache-2.0
#include "group/structure_words.hpp"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace tutti {
namespace {

struct Words {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::string> of;
  std::deque<std::uint64_t> order;
  std::size_t bytes = 0;
};

// Never destroyed: a rank may leave, and complain, while the process ends.
Words& all_words() {
  static auto* const words = new Words;
  return *words;
}

}  // namespace

void note_structure(std::uint64_t hash, std::string_view words) {
  constexpr std::size_t bytes_max = 4 << 20, count_max = 1024;
  Words& all = all_words();
  const std::scoped_lock guard(all.mutex);
  if (hash == 0 || !all.of.try_emplace(hash, words).second) return;
  all.order.push_back(hash);
  all.bytes += words.size();
  while (all.order.size() > 1 && (all.bytes > bytes_max || all.order.size() > count_max)) {
    const auto oldest = all.of.find(all.order.front());
    all.bytes -= oldest->second.size();
    all.of.erase(oldest);
    all.order.pop_front();
  }
}

std::string structure_words(std::uint64_t hash) {
  if (hash == 0) return {};
  Words& all = all_words();
  const std::scoped_lock guard(all.mutex);
  const auto found = all.of.find(hash);
  return found == all.of.end() ? std::string() : found->second;
}

}  // namespace tutti
