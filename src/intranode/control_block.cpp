// control_block.cpp: digests and the log of signatures.
// SPDX-License-Identifier: Apache-2.0
#include "intranode/control_block.hpp"

#include <bit>
#include <cstring>

#include "base/hash.hpp"

namespace tutti::intranode {
namespace {

using Words = std::array<std::uint64_t, sizeof(Signature) / 8>;

}  // namespace

// It tells accidents apart, not attacks.
std::uint32_t digest_of(const Signature& signature, std::uint32_t phase) {
  Signature unnumbered = signature;
  unnumbered.sequence = phase;
  unnumbered.history = 0;
  std::uint64_t mixed = 0;
  for (const std::uint64_t word : std::bit_cast<Words>(unnumbered)) mixed = scramble(mixed + word);
  return static_cast<std::uint32_t>(mixed >> 32);
}

// Words are released and acquired one by one: a rank that sees a new one also sees that the entry was taken back before.
void SignatureLog::write(const Identity& identity) {
  Entry& entry = entries_[identity.turn % entry_count];
  entry.seq.store(0, std::memory_order_relaxed);
  const auto words = std::bit_cast<Words>(identity.signature);
  for (std::size_t i = 0; i < words.size(); ++i) entry.words[i].store(words[i], std::memory_order_release);
  entry.words[words.size()].store(identity.phase, std::memory_order_release);
  entry.seq.store(identity.first, std::memory_order_release);
}

std::optional<SignatureLog::Found> SignatureLog::read(const Identity& mine) const {
  const Entry& entry = entries_[mine.turn % entry_count];
  if (entry.seq.load(std::memory_order_acquire) != mine.first) return std::nullopt;
  Words words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.words[i].load(std::memory_order_acquire);
  const auto phase = static_cast<std::uint32_t>(entry.words[words.size()].load(std::memory_order_acquire));
  if (entry.seq.load(std::memory_order_relaxed) != mine.first) return std::nullopt;
  Found found{.phase = phase, .signature = std::bit_cast<Signature>(words)};
  found.signature.sequence = mine.signature.sequence;  // the same sequence number, the same call
  return found;
}

}  // namespace tutti::intranode
