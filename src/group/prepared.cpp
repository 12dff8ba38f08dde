// prepared.cpp: a call that is checked and laid out once, and started as often as wanted.
// SPDX-License-Identifier: Apache-2.0
#include <tutti/prepared.hpp>

#include <fmt/format.h>

#include <utility>

#include <tutti/error.hpp>

#include "group/core.hpp"
#include "group/runtime.hpp"

namespace tutti {

void Prepared::start(Request& request) {
  if (!valid()) throw InvalidArgument("start() on an empty Prepared: nothing was prepared");
  // Whether it has ended by now depends on the other ranks; whether this rank has waited for it does not.
  if (is_awaited_) {
    throw InvalidArgument(fmt::format(
        "{}: the prepared call was started and not waited for; wait() first, or prepare another one to have "
        "two under way",
        name_of(request.verb)));
  }
  GroupCore::Entry entry;
  auto operation = parts_.group->start(entry, *parts_.shape, terms_of(request), parts_.timeout);
  work_ = Work(std::move(operation));
  is_awaited_ = true;
}

void Prepared::start() { start(parts_.request); }

void Prepared::start(View data) {
  const Request& prepared = parts_.request;
  const bool in_place = !prepared.input.present() || prepared.input.data() == prepared.output.data();
  start(data, in_place ? data : prepared.output);
}

void Prepared::start(View data, View out) {
  Request request = parts_.request;
  request.input = data;
  request.output = out;
  start(request);
}

void Prepared::wait() {
  if (!work_.valid()) throw InvalidArgument("wait() on a Prepared that was not started");
  is_awaited_ = false;
  work_.wait();
}

void Prepared::wait(TimeLimit timeout) {
  if (!work_.valid()) throw InvalidArgument("wait() on a Prepared that was not started");
  is_awaited_ = false;
  try {
    work_.wait(timeout);
  } catch (const Timeout&) {
    is_awaited_ = !work_.test();
    throw;
  }
}

bool Prepared::test() {
  if (!work_.test()) return false;
  is_awaited_ = false;
  return true;
}

}  // namespace tutti
