// group_backend.cpp: the backend that a group asks for, other than the job's.
// SPDX-License-Identifier: Apache-2.0
#include "group/group_backend.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>

#include <tutti/error.hpp>
#include <tutti/group.hpp>

#include "base/backend_names.hpp"
#include "base/environment.hpp"
#include "group/core.hpp"
#include "group/runtime.hpp"
#include "mpi/join.hpp"

namespace tutti {
namespace {

std::string text_of(const std::vector<std::byte>& record) {
  return {reinterpret_cast<const char*>(record.data()), record.size()};
}

std::string described(const std::string& name) {
  return name.empty() ? "no backend in particular" : fmt::format("the backend {}", name);
}

/// Every member's text, over the group itself.
std::vector<std::string> exchange_texts(const Group& group, const std::string& own, Duration timeout) {
  const auto [bytes, counts] = group.all_gather_uneven(std::span(own.data(), own.size()), {.timeout = timeout});
  std::vector<std::string> texts;
  std::size_t begin = 0;
  for (const std::int64_t count : counts) {
    texts.emplace_back(bytes.data() + begin, static_cast<std::size_t>(count));
    begin += static_cast<std::size_t>(count);
  }
  return texts;
}

/// The members are those of a job that has not joined MPI.
BackendFactory join_mpi(const std::shared_ptr<GroupCore>& group, Duration timeout) {
  Runtime& runtime = group->runtime();
  const Environment environment = Environment::of_process();
  return mpi::join_group({.exchange = [handle = Group(group), timeout](
                                          const std::string& own) { return exchange_texts(handle, own, timeout); },
                          .environment = environment,
                          .log = runtime.parts().log,
                          .world_of = group->facts().world_of,
                          .has_all_ranks = group->facts().size == runtime.transport().size()});
}

void check_served(const GroupCore& group, const std::string& name) {
  if (group.backend_name() == name) return;
  throw Unsupported(fmt::format(
      "Group: the backend {} cannot serve the group of world ranks [{}]: {}", name,
      fmt::join(group.facts().world_of, ", "),
      name == "shm"
          ? "its members are on several hosts, or share no memory; see the log of init for the reason, or ask "
            "for another backend"
          : "it does not serve groups like this one"));
}

/// Breaks the group on all members, waits until they have agreed on that, and throws.
[[noreturn]] void break_with_mismatch(GroupCore& group, const std::string& reason) {
  Runtime& runtime = group.runtime();
  {
    const auto guard = runtime.lock();
    group.parts().failure.propose({.kind = control::Cause::Kind::mismatch,
                                   .culprits = {},
                                   .sequence = group.parts().state.calls.next(),
                                   .text = reason});
  }
  constexpr Duration agreement = std::chrono::seconds(10);
  runtime.drive([&] { return group.parts().failure.is_broken(); }, runtime.clock().now() + agreement);
  throw Mismatch(reason);
}

/// Why a group uses the backend that it uses.
std::string reason_for(const GroupCore& group) {
  const RuntimeParts& parts = group.runtime().parts();
  const std::string_view name = group.backend_name();
  const std::set<int> nodes(group.facts().node_of.begin(), group.facts().node_of.end());
  if (name == "alone") return "it is a group of one";
  if (!group.backend().name.empty()) return "the group asks for it";
  if (name == "mpi") return "the job asks for it";
  if (name == "shm") return "all members share the memory of one host";
  if (name != "native") return "the program brings it along";
  if (nodes.size() > 1) return fmt::format("its members are on {} hosts", nodes.size());
  return parts.may_share_memory ? "its members share no memory" : "the job asks for it";
}

}  // namespace

void log_backend(const GroupCore& group, bool first) {
  const auto level = first ? Log::Level::info : Log::Level::debug;
  const Log& log = group.runtime().parts().log;
  if (!log.shows(level)) return;
  const std::string text = fmt::format("{}: backend {}, because {}", group.parts().state.names.group(),
                                       group.backend_name(), reason_for(group));
  first ? log.info("{}", text) : log.debug("{}", text);
}

void log_choice(const GroupCore& group, const CachedCall& shape, const PreparedCall& call,
                const std::string& refusals) {
  const Request& request = shape.checked();
  const View& array = request.input.present() ? request.input : request.output;
  const std::string_view backend = shape.backend().name();
  std::string_view why = "as the backend does";
  if (backend == "native")
    why = group.runtime().parts().table.rows.empty() ? "the cheapest by the cost model"
                                                     : "by TUTTI_TABLE and the cost model";
  if (backend == "shm") why = "by its size and where the arrays lie";
  group.runtime().parts().log.debug(
      "{}: {} of {} goes by backend {}, {}: {}{}", group.parts().state.names.group(), name_of(request.verb),
      array.present() ? fmt::format("{} × {}", name_of(array.dtype()), array.count()) : "nothing", backend,
      call.progress().how, why, refusals);
}

std::string backend_to_ask_for(const GroupCore& parent, const std::string& asked) {
  if (asked.empty()) return parent.backend().name;
  if (asked == "auto") return {};
  if (asked == "ucx") {
    const std::string_view link = parent.runtime().transport().name();
    if (parent.facts().size == 1 || link.starts_with("ucx")) return "native";
    throw Unsupported(fmt::format(
        "Group: backend 'ucx' is native over UCX's link, which is chosen for the whole job, and this job's messages go "
        "over {}; start it with -B ucx or TUTTI_LINK=ucx",
        link));
  }
  if (is_backend_name(asked) || parent.backend_name() == asked) return asked;
  throw Unsupported(
      fmt::format("Group: backend '{}' is not known; the known ones are {}", asked, fmt::join(backend_names, ", ")));
}

std::vector<std::byte> backend_record(const std::string& name) {
  const auto bytes = std::as_bytes(std::span(name.data(), name.size()));
  return {bytes.begin(), bytes.end()};
}

void check_same_backend(GroupCore& group, const std::string& name, const std::vector<std::byte>& lowest) {
  const std::string theirs = text_of(lowest);
  if (group.facts().size == 1 || theirs == name) return;
  const auto& members = group.facts().world_of;
  break_with_mismatch(group, fmt::format("the members of a new group ask for different backends: rank {} of the world "
                                         "for {}, rank {} for {}; give all "
                                         "members the same one",
                                         *std::ranges::min_element(members), described(theirs),
                                         members[static_cast<std::size_t>(group.facts().rank)], described(name)));
}

void use_backend(const std::shared_ptr<GroupCore>& group, const GroupCore& parent, const std::string& name,
                 Duration timeout) {
  if (group->facts().size == 1) return;
  if (name.empty()) return;
  GroupBackend backend = parent.backend();
  backend.name = name;
  const bool has_mpi = backend.mpi || group->runtime().parts().mpi;
  if (name == "mpi" && !has_mpi) backend.mpi = join_mpi(group, timeout);
  {
    const auto guard = group->runtime().lock();
    group->use_backend(std::move(backend));
  }
  check_served(*group, name);
}

}  // namespace tutti
