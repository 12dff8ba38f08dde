// group_state.hpp: what the parts of a group share: who its members are, and its calls so far.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include <tutti/backend.hpp>

#include "group/call_history.hpp"
#include "group/call_records.hpp"
#include "group/names.hpp"
#include "group/prepared_calls.hpp"
#include "group/stall.hpp"

namespace tutti {

class Runtime;
std::shared_ptr<record::Recorder> recorder_of(const Runtime& runtime);
const Transport& transport_of(const Runtime& runtime);

struct GroupState {
  GroupState(std::shared_ptr<Runtime> runtime_of_rank, GroupFacts facts_of_group)
      : runtime(std::move(runtime_of_rank)),
        facts(std::move(facts_of_group)),
        names(facts, *runtime),
        records(recorder_of(*runtime), facts, names.members(), transport_of(*runtime)) {}
  GroupState(const GroupState&) = delete;
  GroupState& operator=(const GroupState&) = delete;

  [[nodiscard]] int world_rank(int rank) const { return facts.world_of[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<Runtime> runtime;
  GroupFacts facts;
  GroupNames names;
  CallRecords records;
  CallHistory calls;
  PreparedCalls prepared;
  StallMap stalls;  // what the members answered about calls that take long
};

}  // namespace tutti
