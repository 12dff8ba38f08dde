// ranks_as_threads.hpp: for tests: several ranks connect at once, each a thread with an environment of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tutti/connector.hpp>
#include <tutti/error.hpp>

#include "rendezvous/connect.hpp"
#include "wire/socket.hpp"

namespace tutti::rendezvous {

// A folder that is gone with the test; also a home, so that key files stay in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tutti-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline TimePoint soon(Duration time = std::chrono::seconds(20)) {
  return deadline_after(std::chrono::steady_clock::now(), time);
}

// A port that nobody listens on at this moment.
inline std::uint16_t free_port() { return wire::Listener(wire::Address::loopback()).address().port(); }

struct Outcome {
  std::unique_ptr<Connector> connector;
  std::string error;  // its kind and text, where connect threw: "RendezvousError: rank 1 of 2: …"
};

struct Caller {
  Environment environment;
  InitOptions options{};
  std::uint64_t earlier_connects = 0;
  Log log{};
};

inline Outcome connect_as(const Caller& caller) {
  const auto failed = [](std::string_view kind, const std::exception& error) {
    return Outcome{.connector = nullptr, .error = std::string(kind) + ": " + error.what()};
  };
  try {
    return {.connector = connect(caller.options, {.environment = caller.environment,
                                                  .clock = steady_clock(),
                                                  .earlier_connects = caller.earlier_connects,
                                                  .log = caller.log}),
            .error = ""};
  } catch (const RendezvousError& error) {
    return failed("RendezvousError", error);
  } catch (const AuthenticationError& error) {
    return failed("AuthenticationError", error);
  } catch (const InvalidArgument& error) {
    return failed("InvalidArgument", error);
  } catch (const std::exception& error) {
    return failed("another error", error);
  }
}

// All at once; the outcomes in the order of the callers.
inline std::vector<Outcome> connect_all(const std::vector<Caller>& callers) {
  std::vector<Outcome> outcomes(callers.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < callers.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = connect_as(callers[i]); });
  }
  threads.clear();
  return outcomes;
}

// Runs `body` on every connector at once.
inline void on_all(const std::vector<Outcome>& outcomes, const std::function<void(Connector&)>& body) {
  std::vector<std::jthread> threads;
  for (const Outcome& outcome : outcomes) threads.emplace_back([&] { body(*outcome.connector); });
}

}  // namespace tutti::rendezvous
