// secret_source.hpp: where the job's secret comes from.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/environment.hpp"
#include "wire/address.hpp"
#include "wire/secret.hpp"

namespace tutti::rendezvous {

struct FoundSecret {
  wire::Secret secret;
  std::string source;               // in words
  bool serves_one_machine = false;  // the user's key file
};

// TUTTI_SECRET, if it is set. InvalidArgument, which does not repeat it, if it is no secret.
std::optional<FoundSecret> given_secret(const Environment& environment);
// TUTTI_SECRET, else the user's key file.
FoundSecret given_or_key_file_secret(const Environment& environment);

// Whether an address belongs to this machine.
bool is_local(const wire::Address& address);

// What to throw where ranks are on several machines and nobody gave them a secret.
[[noreturn]] void throw_no_secret(const std::string& why);

}  // namespace tutti::rendezvous
