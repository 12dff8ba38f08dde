// meeting.cpp: this process meets the others of its job, while Python hears Ctrl-C.
// SPDX-License-Identifier: Apache-2.0
#include "bindings/meeting.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "base/start_thread.hpp"
#include "bindings/gil.hpp"
#include "bindings/signals.hpp"
#include "group/meet.hpp"

namespace tutti::python {
namespace {

constexpr std::chrono::milliseconds between_signals{50};

auto asked_for(const InitOptions& options) {
  return std::tie(options.backend, options.init_method, options.rank, options.size, options.mpi_communicator);
}

struct Meeting {
  InitOptions options;
  std::future<Joined> joined;
  pid_t process = getpid();  // its thread does not follow into a forked child
};

Meeting begin_meeting(const InitOptions& options) {
  std::packaged_task<Joined()> task([options] { return join(connect_as_asked(options), options); });
  Meeting meeting{.options = options, .joined = task.get_future()};
  start_thread("to meet the other ranks", std::move(task)).detach();
  return meeting;
}

void check_same_meeting(const Meeting& meeting, const InitOptions& options) {
  if (meeting.process != getpid()) {
    throw InvalidArgument(
        "init: this process is a fork of one that is meeting the other ranks of a job, and would take that one's place "
        "in it; start processes for a job with tuttirun or spawn, or fork before init()");
  }
  if (asked_for(meeting.options) == asked_for(options)) return;
  throw InvalidArgument(
      "init: an earlier call of init(), with other arguments, was interrupted; the other ranks may have seen this one, "
      "so the meeting goes on until its timeout. Call init() with the same arguments to come back to it");
}

bool has_ended(const Meeting& meeting, std::chrono::milliseconds limit = {}) {
  return meeting.joined.wait_for(limit) == std::future_status::ready;
}

}  // namespace

Joined join(const std::shared_ptr<Connector>& connector, const InitOptions& options) {
  Facts found{.place = connector->place(), .description = connector->describe()};
  Group world = init(connector, options);
  return {.world = std::move(world), .facts = std::move(found)};
}

Joined meet(const InitOptions& options) {
  static auto* const under_way = new std::optional<Meeting>;
  const auto take = [] { return std::exchange(*under_way, std::nullopt)->joined.get(); };
  const TimePoint limit = deadline_after(steady_clock().now(), options.timeout);
  if (*under_way) check_same_meeting(**under_way, options);
  const bool is_back = under_way->has_value();
  if (is_back && has_ended(**under_way)) {
    try {
      return take();
    } catch (const std::exception&) {  // of a call that was left: this one meets anew
    }
  }
  if (!*under_way) under_way->emplace(begin_meeting(options));
  while (true) {
    {
      const WithoutGil release;
      if (has_ended(**under_way, between_signals)) break;
    }
    check_signals();
    if (!is_back || steady_clock().now() < limit) continue;
    throw RendezvousError(
        fmt::format("init: the others have not come within {}; the meeting, which an earlier call of init() began that "
                    "was interrupted, goes on until that call's timeout",
                    format_duration(options.timeout)));
  }
  return take();
}

}  // namespace tutti::python
