// seat.cpp: digests and the log of signatures.
// SPDX-License-Identifier: Apache-2.0
#include "shared/seat.hpp"

#include <bit>
#include <cstring>

#include "base/hash.hpp"

namespace tutti::shared {
namespace {

using Words = std::array<std::uint64_t, sizeof(Signature) / 8>;

}  // namespace

// In every call, so it is short: the products do not wait for each other. It tells accidents apart, not attacks.
std::uint32_t digest_of(const Signature& signature, std::uint32_t phase) {
  const auto words = std::bit_cast<Words>(signature);
  const std::uint64_t mixed = (words[0] + phase) * 0x9e3779b97f4a7c15u ^ std::rotl(words[1] * 0xbf58476d1ce4e5b9u, 17) ^
                              std::rotl(words[2] * 0x94d049bb133111ebu, 31) ^
                              std::rotl(words[3] * 0xd6e8feb86659fd93u, 47) ^ (std::uint64_t{phase} << 32);
  return static_cast<std::uint32_t>(scramble(mixed) >> 32);
}

// Words are released and acquired one by one: whoever sees a new one sees, too, that the entry was taken back before.
void SignatureLog::write(const Identity& identity) {
  Entry& entry = entries_[identity.turn % entry_count];
  entry.stamp.store(0, std::memory_order_relaxed);
  const auto words = std::bit_cast<Words>(identity.signature);
  for (std::size_t i = 0; i < words.size(); ++i) entry.words[i].store(words[i], std::memory_order_release);
  entry.words[words.size()].store(identity.phase, std::memory_order_release);
  entry.stamp.store(identity.first, std::memory_order_release);
}

std::optional<SignatureLog::Found> SignatureLog::read(Stamp first, std::uint64_t turn) const {
  const Entry& entry = entries_[turn % entry_count];
  if (entry.stamp.load(std::memory_order_acquire) != first) return std::nullopt;
  Words words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.words[i].load(std::memory_order_acquire);
  const auto phase = static_cast<std::uint32_t>(entry.words[words.size()].load(std::memory_order_acquire));
  if (entry.stamp.load(std::memory_order_relaxed) != first) return std::nullopt;
  return Found{.phase = phase, .signature = std::bit_cast<Signature>(words)};
}

}  // namespace tutti::shared
