// secret.cpp: secrets, random bytes and the key file.
// SPDX-License-Identifier: Apache-2.0
#include "wire/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <ostream>
#include <system_error>

#include <tutti/error.hpp>

#include "base/guarded.hpp"
#include "base/unique_fd.hpp"
#include "wire/trusted_file.hpp"

namespace tutti::wire {

namespace {

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::string_view without_white_space_around(std::string_view text) {
  constexpr std::string_view white_space = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(white_space);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(white_space) - begin + 1);
}

[[noreturn]] void throw_key_file(const std::filesystem::path& path, std::string_view what, int error) {
  throw RendezvousError(
      fmt::format("cannot {} the key file {}: {}; give the job a secret in TUTTI_SECRET (64 hexadecimal digits), or "
                  "point XDG_CONFIG_HOME to a folder that can be written",
                  what, path.string(), std::generic_category().message(error)));
}

std::optional<Secret> read_key_file(const std::filesystem::path& path) {
  const UniqueFd file = open_trusted(path);
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) throw_key_file(path, "read", errno);
  check_trusted(file.get(), path, "the key file", Others::may_not_read_or_write);
  std::array<char, 2 * Secret::size_bytes + 16> text{};
  const ssize_t bytes = read(file.get(), text.data(), text.size());
  if (bytes < 0) throw_key_file(path, "read", errno);
  try {
    Secret secret = Secret::from_hex({text.data(), static_cast<std::size_t>(bytes)});
    OPENSSL_cleanse(text.data(), text.size());
    return secret;
  } catch (const InvalidArgument&) {
    throw AuthenticationError(
        fmt::format("the key file {} does not hold 64 hexadecimal digits; remove it and a new "
                    "one is made",
                    path.string()));
  }
}

// A file that is removed when it goes out of scope: what is kept of it is a second link.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& beside) : path_(beside.string() + ".XXXXXX") {
    file_.reset(mkostemp(path_.data(), O_CLOEXEC));
    if (!file_) throw_key_file(beside, "make", errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path_.c_str()); }

  [[nodiscard]] int fd() const { return file_.get(); }
  [[nodiscard]] const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
  UniqueFd file_;
};

// Complete under another name first, then given its own name, which fails if somebody else was first: no reader ever
// sees half a key, and all agree on one.
void make_key_file(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  if (error) throw_key_file(path, "make the folder of", error.value());

  const TemporaryFile temporary(path);
  std::string text = make_secret().hex() + '\n';
  const ssize_t written = write(temporary.fd(), text.data(), text.size());
  const int write_error = errno;
  OPENSSL_cleanse(text.data(), text.size());
  if (written < 0) throw_key_file(path, "write", write_error);
  if (static_cast<std::size_t>(written) != text.size()) throw_key_file(path, "write", ENOSPC);
  if (fsync(temporary.fd()) != 0) throw_key_file(path, "write", errno);
  if (link(temporary.path(), path.c_str()) == 0 || errno == EEXIST) return;
  // Some file systems have no links; this asks for the same with one call.
  if (renameat2(AT_FDCWD, temporary.path(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0 || errno == EEXIST) return;
  throw_key_file(path, "make", errno);
}

}  // namespace

Secret::Secret(std::span<const std::byte, size_bytes> bytes) {
  static_assert(size_bytes <= guarded_bytes_max);
  const auto guarded = guarded_memory();
  std::copy(bytes.begin(), bytes.end(), guarded.get());
  bytes_ = guarded;
}

Secret Secret::from_hex(std::string_view text) {
  text = without_white_space_around(text);
  const bool digits = std::all_of(text.begin(), text.end(), [](char digit) { return hex_digit(digit) >= 0; });
  if (text.size() != 2 * size_bytes || !digits) {
    throw InvalidArgument(fmt::format(
        "a secret is {} hexadecimal digits; this text has {} characters{}; `openssl rand -hex {}` makes one",
        2 * size_bytes, text.size(), digits ? "" : ", some of them not hexadecimal", size_bytes));
  }
  std::array<std::byte, size_bytes> bytes;
  for (std::size_t i = 0; i < size_bytes; ++i) {
    bytes[i] = static_cast<std::byte>(hex_digit(text[2 * i]) * 16 + hex_digit(text[2 * i + 1]));
  }
  Secret secret(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return secret;
}

std::string Secret::hex() const {
  std::string text;
  text.reserve(2 * size_bytes + 1);
  for (const std::byte byte : bytes()) fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<int>(byte));
  return text;
}

bool operator==(const Secret& a, const Secret& b) {
  return CRYPTO_memcmp(a.bytes_.get(), b.bytes_.get(), Secret::size_bytes) == 0;
}

std::ostream& operator<<(std::ostream& out, const Secret&) { return out << "(secret)"; }

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw Error(fmt::format("the kernel gives no random bytes: {}", std::generic_category().message(errno)));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

Secret make_secret() {
  std::array<std::byte, Secret::size_bytes> bytes;
  fill_random(bytes);
  Secret secret(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return secret;
}

std::filesystem::path default_key_path(const Environment& environment) {
  // The specification says that a relative XDG_CONFIG_HOME is to be ignored.
  if (const auto config = environment.get("XDG_CONFIG_HOME"); config && config->starts_with('/')) {
    return std::filesystem::path(*config) / "tutti" / "key";
  }
  const auto home = environment.get("HOME");
  if (!home || home->empty()) {
    throw RendezvousError(
        "there is no secret: TUTTI_SECRET is not set, and neither HOME nor XDG_CONFIG_HOME says where a key file could "
        "be; set one of them");
  }
  return std::filesystem::path(*home) / ".config" / "tutti" / "key";
}

Secret key_file_secret(const std::filesystem::path& path) {
  if (auto secret = read_key_file(path)) return *secret;
  make_key_file(path);
  if (auto secret = read_key_file(path)) return *secret;
  throw_key_file(path, "read", ENOENT);
}

}  // namespace tutti::wire
