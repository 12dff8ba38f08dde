// call_records.hpp: what a group writes down of its calls in the rank's recorder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <tutti/backend.hpp>
#include <tutti/transport.hpp>

#include "record/recorder.hpp"

namespace tutti {

class CallRecords {
 public:
  /// `recorder` may be null: then nothing is written down.
  CallRecords(std::shared_ptr<record::Recorder> recorder, const GroupFacts& facts, std::string_view members,
              const Transport& transport);
  ~CallRecords();
  CallRecords(const CallRecords&) = delete;
  CallRecords& operator=(const CallRecords&) = delete;

  [[nodiscard]] record::Recorder* recorder() const { return recorder_.get(); }
  /// What the calls of a checked request have in common. How they are carried out is known when the first has ended: name_way().
  [[nodiscard]] record::CallShape shape_of(const Request& checked) const;
  [[nodiscard]] record::CallShape shape_of_message(Verb verb, const View& data, int peer, std::uint32_t tag) const {
    return {.bytes = static_cast<std::uint64_t>(data.bytes()),
            .group = place_,
            .how = peer < 0 ? std::uint16_t{0} : message_ways_[static_cast<std::size_t>(peer)],
            .verb = static_cast<std::uint8_t>(verb),
            .dtype = static_cast<std::uint8_t>(data.dtype()),
            .peer = peer,
            .tag = tag};
  }
  /// A call of that shape, the first, is over: how it was carried out is known by now.
  void name_way(record::CallShape& shape, std::uint64_t number, const PreparedCall& call, const Backend& backend) const;
  /// A message that was received from anyone came from that member.
  void note_peer(std::uint64_t number, int peer) const;

 private:
  std::shared_ptr<record::Recorder> recorder_;
  std::uint16_t place_ = 0;
  std::vector<std::uint16_t> message_ways_;  // to and from each member: names of links
};

}  // namespace tutti
