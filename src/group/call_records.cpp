// call_records.cpp: what a group writes down of its calls.
// SPDX-License-Identifier: Apache-2.0
#include "group/call_records.hpp"

#include <algorithm>
#include <utility>

namespace tutti {

CallRecords::CallRecords(std::shared_ptr<record::Recorder> recorder, const GroupFacts& facts, std::string_view members)
    : recorder_(facts.rank < 0 ? nullptr : std::move(recorder)) {
  if (recorder_) place_ = recorder_->add_group(facts.id, facts.rank, facts.size, members);
}

CallRecords::~CallRecords() {
  if (recorder_) recorder_->remove_group(place_);
}

record::CallShape CallRecords::shape_of(const Request& checked) const {
  using record::CallShape;
  const auto bytes_of = [](const View& view) { return view.present() ? view.bytes() : 0; };
  CallShape shape{.bytes = static_cast<std::uint64_t>(std::max(bytes_of(checked.input), bytes_of(checked.output))),
                  .group = place_,
                  .verb = static_cast<std::uint8_t>(checked.verb),
                  .dtype = static_cast<std::uint8_t>(checked.signature.dtype),
                  .op = static_cast<std::uint8_t>(checked.op.kind())};
  if (reduces(checked.verb)) shape.flags |= CallShape::reduces;
  if (has_root(checked.verb)) {
    shape.flags |= CallShape::rooted;
    shape.peer = checked.root;
  }
  return shape;
}

// A call that learns its sizes first says so then; what it does with the data is known later.
void CallRecords::name_way(record::CallShape& shape, const PreparedCall& call, const Backend& backend) const {
  if (!recorder_) return;
  const std::string how = call.progress().how;
  if (how.starts_with("size exchange")) return;
  shape.how = recorder_->name(how.empty() ? backend.name() : std::string_view(how));
  if (backend.name() == "shm") shape.flags |= record::CallShape::local;
}

}  // namespace tutti
