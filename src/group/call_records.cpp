// call_records.cpp: what a group writes down of its calls.
// SPDX-License-Identifier: Apache-2.0
#include "group/call_records.hpp"

#include <algorithm>
#include <utility>

namespace tutti {

CallRecords::CallRecords(std::shared_ptr<record::Recorder> recorder, const GroupFacts& facts, std::string_view members,
                         const Transport& transport)
    : recorder_(facts.rank < 0 ? nullptr : std::move(recorder)), message_ways_(facts.world_of.size()) {
  if (!recorder_) return;
  place_ = recorder_->add_group(facts.id, facts.rank, facts.size, members);
  std::ranges::transform(facts.world_of, message_ways_.begin(),
                         [&](int peer) { return recorder_->name(transport.link_name(peer)); });
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

void CallRecords::name_way(record::CallShape& shape, std::uint64_t number, const PreparedCall& call,
                           const Backend& backend) const {
  if (!recorder_) return;
  const std::string how = call.progress().how;
  shape.how = recorder_->name(how.empty() ? backend.name() : std::string_view(how));
  recorder_->note_way(number, shape.how);
}

void CallRecords::note_peer(std::uint64_t number, int peer) const {
  recorder_->note_peer(number, peer);
  if (peer >= 0) recorder_->note_way(number, message_ways_[static_cast<std::size_t>(peer)]);
}

}  // namespace tutti
