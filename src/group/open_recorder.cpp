// open_recorder.cpp: where a rank writes down its calls.
// SPDX-License-Identifier: Apache-2.0
#include "group/open_recorder.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "record/segment.hpp"

namespace tutti {

std::shared_ptr<record::Recorder> open_recorder(const Environment& environment, const Place& place,
                                                std::uint64_t world) {
  using record::Recorder;
  const std::string folder = environment.get("TUTTI_TRACE").value_or("");
  UniqueFd file = record::inherited_segment(environment);
  if (!file && !folder.empty())
    file = record::make_segment_file(folder, place.rank, record::traced_entries(environment));
  if (!file) file = record::make_segment(record::entry_count_usual);
  const std::string job = environment.get("TUTTI_JOB").value_or("");
  return std::make_shared<Recorder>(std::move(file),
                                    record::RankFacts{.rank = place.rank,
                                                      .size = place.size,
                                                      .node = place.node_rank,
                                                      .job = job.empty() ? fmt::format("{:016x}", world) : job,
                                                      .host = place.host},
                                    folder.empty() ? Recorder::Detail::usual : Recorder::Detail::traced);
}

}  // namespace tutti
