// secret.hpp: the secret of a job, which only its ranks know.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/environment.hpp"

namespace tutti::wire {

// 32 bytes that are wiped when dropped and never printed: streaming one writes "(secret)". Copies share them, in memory that
// is left out of core dumps.
class Secret {
 public:
  static constexpr std::size_t size_bytes = 32;

  explicit Secret(std::span<const std::byte, size_bytes> bytes);

  // 64 hexadecimal digits, white space around them ignored. Otherwise InvalidArgument, which does not repeat the text.
  static Secret from_hex(std::string_view text);
  // For the environment of a child or a key file, where the secret must be written out.
  [[nodiscard]] std::string hex() const;

  [[nodiscard]] std::span<const std::byte, size_bytes> bytes() const {
    return std::span<const std::byte, size_bytes>(bytes_.get(), size_bytes);
  }
  friend bool operator==(const Secret& a, const Secret& b);  // takes the same time wherever they differ
  friend std::ostream& operator<<(std::ostream& out, const Secret& secret);

 private:
  std::shared_ptr<const std::byte[]> bytes_;
};

// From the kernel's generator; never waits but in the first moments of a machine's life.
void fill_random(std::span<std::byte> bytes);
Secret make_secret();

// $XDG_CONFIG_HOME/tutti/key, or ~/.config/tutti/key. RendezvousError if there is no home.
std::filesystem::path default_key_path(const Environment& environment);

// The secret in the user's key file, which is made if it is not there. Processes that do it at once agree on one secret.
// The file must be the user's own, with no permissions for anybody else and no link of another user's on the way to it:
// AuthenticationError otherwise. RendezvousError names the path and the system's reason where it cannot be made or read.
Secret key_file_secret(const std::filesystem::path& path);

}  // namespace tutti::wire
