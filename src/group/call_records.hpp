// call_records.hpp: what a group writes down of its calls in the rank's recorder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include <tutti/backend.hpp>

#include "record/recorder.hpp"

namespace tutti {

class CallRecords {
 public:
  /// `recorder` may be null: then nothing is written down.
  CallRecords(std::shared_ptr<record::Recorder> recorder, const GroupFacts& facts, std::string_view members);
  ~CallRecords();
  CallRecords(const CallRecords&) = delete;
  CallRecords& operator=(const CallRecords&) = delete;

  [[nodiscard]] record::Recorder* recorder() const { return recorder_.get(); }
  /// What the calls of a checked request have in common. How they are carried out follows with the first: name_way().
  [[nodiscard]] record::CallShape shape_of(const Request& checked) const;
  [[nodiscard]] record::CallShape shape_of_message(Verb verb, const View& data, int peer, std::uint32_t tag) const {
    return {.bytes = static_cast<std::uint64_t>(data.bytes()),
            .group = place_,
            .verb = static_cast<std::uint8_t>(verb),
            .dtype = static_cast<std::uint8_t>(data.dtype()),
            .peer = peer,
            .tag = tag};
  }
  /// A call of that shape has begun: what it does is known by now.
  void name_way(record::CallShape& shape, const PreparedCall& call, const Backend& backend) const;

 private:
  std::shared_ptr<record::Recorder> recorder_;
  std::uint16_t place_ = 0;
};

}  // namespace tutti
