// library_job.cpp: the ranks of one library, started, told what to do, and asked for their times.
// SPDX-License-Identifier: Apache-2.0
#include "bench/library_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include <tutti/error.hpp>

namespace tutti::bench {

namespace {

using namespace std::chrono_literals;
constexpr Duration start_time_max = 60s;  // torch alone takes seconds to import on a loaded machine

// Joins one rank's answer to those of the others.
void merge(Answer& all, const Answer& one) {
  if (!one.trouble.empty()) {
    if (all.trouble.empty()) all.trouble = one.trouble;
    return;
  }
  all.wrong += one.wrong;
  all.us_per_call.resize(std::max(all.us_per_call.size(), one.us_per_call.size()), 0.0);
  for (std::size_t i = 0; i < one.us_per_call.size(); ++i) {
    all.us_per_call[i] = std::max(all.us_per_call[i], one.us_per_call[i]);
  }
}

}  // namespace

LibraryJob::LibraryJob(const Coordinator& coordinator, JobStart start)
    : coordinator_(coordinator), start_(std::move(start)) {
  ranks_.resize(static_cast<std::size_t>(start_.ranks));
  for (ProcessStart& process : start_.processes) {
    process.log_path = coordinator_.log_path(start_.library);
    processes_.emplace_back(process);
  }
  meet(steady_clock().now() + start_time_max);
}

void LibraryJob::meet(TimePoint deadline) {
  std::vector<int> fds{coordinator_.listening_fd()};
  for (const LibraryProcess& process : processes_) fds.push_back(process.fd());
  for (int there = 0; there < start_.ranks; ++there) {
    const int ready = coordinator_.wait_readable(fds, deadline);
    if (ready == 0) {
      admit(coordinator_.accept(), deadline);
      continue;
    }
    throw Error(fmt::format("{} when {} of {} ranks were there{}", ready < 0 ? "it was out of time" : "it ended", there,
                            start_.ranks, output_tail()));
  }
}

void LibraryJob::admit(LineSocket socket, TimePoint deadline) {
  std::optional<std::string> line;
  while (!(line = socket.take_line())) {
    if (coordinator_.wait_readable({socket.fd()}, deadline) < 0 || !socket.receive()) {
      throw Error(fmt::format("a rank of {} came and went without a word", start_.library));
    }
  }
  // hello NAME RANK DESCRIPTION
  const std::string hello = fmt::format("hello {} ", start_.library);
  const std::size_t end = line->find(' ', hello.size());
  std::size_t rank = start_.ranks;
  if (line->starts_with(hello) && end != std::string::npos) rank = std::stoul(line->substr(hello.size()));
  if (rank >= ranks_.size() || ranks_[rank] != nullptr) {
    throw Error(fmt::format("a rank of {} said \"{}\", which was not expected", start_.library, *line));
  }
  description_ = line->substr(end + 1);
  ranks_[rank] = std::make_unique<LineSocket>(std::move(socket));
}

Answer LibraryJob::run(const Turn& turn, TimePoint deadline) {
  for (const auto& rank : ranks_) rank->write_line(to_line(turn));
  Answer all;
  std::vector<std::size_t> waited_for(ranks_.size());
  for (std::size_t i = 0; i < waited_for.size(); ++i) waited_for[i] = i;
  while (!waited_for.empty()) {
    std::vector<int> fds;
    for (const std::size_t rank : waited_for) fds.push_back(ranks_[rank]->fd());
    const int ready = coordinator_.wait_readable(fds, deadline);
    if (ready < 0) {
      throw Timeout(fmt::format("rank {} did not answer in time to \"{}\"", waited_for[0], to_line(turn)));
    }
    const auto place = waited_for.begin() + ready;
    LineSocket& rank = *ranks_[*place];
    if (!rank.receive()) throw Error(fmt::format("rank {} is gone{}", *place, output_tail()));
    if (const auto line = rank.take_line()) {
      merge(all, answer_from_line(*line));
      waited_for.erase(place);
    }
  }
  return all;
}

// What the ranks printed, shortened, once all have had a moment to say it: the first to end need not be the one that knows why.
std::string LibraryJob::output_tail() const {
  constexpr std::size_t characters_max = 1000;
  const TimePoint deadline = steady_clock().now() + 1s;
  for (const LibraryProcess& process : processes_) coordinator_.wait_readable({process.fd()}, deadline);
  std::ifstream file(coordinator_.log_path(start_.library));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (text.ends_with('\n')) text.pop_back();
  if (text.empty()) return "";
  return fmt::format("; it said: {}{}", text.substr(0, characters_max), text.size() > characters_max ? " …" : "");
}

}  // namespace tutti::bench
