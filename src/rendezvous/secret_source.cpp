// secret_source.cpp: the launcher's variable, or the key file.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/secret_source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <tutti/error.hpp>

#include "base/guarded.hpp"
#include "wire/interfaces.hpp"

namespace tutti::rendezvous {

std::optional<FoundSecret> given_secret(const Environment& environment) {
  auto text = environment.get(secret_variable);
  if (!text || text->empty()) return std::nullopt;
  try {
    FoundSecret found{.secret = wire::Secret::from_hex(*text), .source = std::string(secret_variable)};
    wipe(text->data(), text->size());
    return found;
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("TUTTI_SECRET cannot be used: {}", error.what()));
  }
}

FoundSecret given_or_key_file_secret(const Environment& environment) {
  if (auto given = given_secret(environment)) return *std::move(given);
  const auto path = wire::default_key_path(environment);
  return {.secret = wire::key_file_secret(path), .source = "the key file " + path.string(), .serves_one_machine = true};
}

bool is_local(const wire::Address& address) {
  if (address.is_loopback()) return true;
  const auto interfaces = wire::list_interfaces();
  return std::ranges::any_of(interfaces,
                             [&](const wire::Interface& entry) { return entry.address.host() == address.host(); });
}

void throw_no_secret(const std::string& why) {
  throw AuthenticationError(fmt::format(
      "{}, and the ranks have no secret in common: the key file of a user serves one machine only; give all "
      "ranks the same secret in TUTTI_SECRET (`openssl rand -hex 32` makes one), or start them with tuttirun",
      why));
}

}  // namespace tutti::rendezvous
