// nccl_communicator.hpp: a communicator of NCCL's: this rank's GPU among those of a group.
// SPDX-License-Identifier: Apache-2.0
//
// It does not block: NCCL connects and launches in threads of its own, and is asked how far it is. So a rank whose peer is gone
// can give up, which ends what NCCL has under way here.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <tutti/backend.hpp>

#include "backend/nccl_steps.hpp"
#include "cuda/device.hpp"
#include "cuda/nccl.hpp"

namespace tutti {

class NcclCommunicator {
 public:
  /// Begins to connect; `functions` and `facts` outlive it. All ranks have the same id, which one of them made. With the device's context current, as below.
  NcclCommunicator(const nccl::Functions& functions, const GroupFacts& facts, const nccl::UniqueId& id);
  /// Ends what is under way on this rank; waits for no other.
  ~NcclCommunicator() { abort(); }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// The same on all ranks, and of no other communicator; never 0.
  [[nodiscard]] std::uint64_t number() const { return number_; }

  /// Whether NCCL has done what it was last asked for: connected, or put everything on the stream. Throws what went wrong.
  [[nodiscard]] bool has_answered();

  struct Arrays {
    std::byte *input = nullptr, *output = nullptr;  // packed
  };
  /// Asks for the steps of a call, all at once, on the stream.
  void ask(const ExecutionSpec& what, const std::vector<NcclStep>& steps, const Arrays& arrays, cuda::Stream stream);

 private:
  struct Where {
    nccl::DataType type;
    nccl::Reduction reduction;
    std::int64_t per_element;
    const std::byte* from;
    std::byte* to;
    cuda::Stream stream;
  };
  [[nodiscard]] nccl::Result ask_for(const NcclStep& step, const Where& where) const;
  [[nodiscard]] nccl::Reduction make_reduction(const NcclElement& element, double factor);
  void check(nccl::Result result, std::string_view what);
  void abort();

  const nccl::Functions& functions_;
  const GroupFacts& facts_;
  nccl::Communicator handle_ = nullptr;
  std::uint64_t number_;
};

}  // namespace tutti
