// mapping.hpp: a memory file mapped into this process, once, however many ranks of the process want it.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are threads of one process share one mapping of an arena: they then synchronise on the same addresses, which
// the sanitizers understand, and a rank that ends does not take the memory from under the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tutti::shm {

class Mapping {
 public:
  enum class Owner : std::uint8_t { self, peer };  // a peer's memory is not handed on to forked children

  /// Aligned to 2 MiB. Nothing, and errno, where it cannot be mapped.
  static std::shared_ptr<Mapping> of_file(int file, std::uint64_t bytes, Owner owner);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  /// Makes a mapping of this process findable by the token of its arena, for as long as somebody holds it.
  static void announce(std::uint64_t token, const std::shared_ptr<Mapping>& mapping);
  static std::shared_ptr<Mapping> announced(std::uint64_t token);

 private:
  Mapping(std::byte* base, std::uint64_t bytes);
  std::byte* base_;
  std::uint64_t bytes_;
  std::int64_t process_;
};

}  // namespace tutti::shm
