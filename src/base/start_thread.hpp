// start_thread.hpp: starts threads, and explains why if a limit or a sandbox does not allow it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <tutti/error.hpp>

namespace tutti {

/// Why the system did not start a thread or a process, with the limits that are in force and what to try: the end of a
/// sentence.
std::string why_not_started(int error);

/// `purpose` ends the sentence "cannot start a thread …".
template <class Work>
std::thread start_thread(std::string_view purpose, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw Error(fmt::format("cannot start a thread {}: {}", purpose, why_not_started(error.code().value())));
  }
}

}  // namespace tutti
