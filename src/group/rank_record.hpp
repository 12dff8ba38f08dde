// rank_record.hpp: what a rank tells the others of itself when it joins a job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

struct RankRecord {
  std::string address{}, host{};
  int node = 0;
  std::uint64_t world = 0;
  std::string table{};
  std::string backend{}, memory{};
  std::string process{};  // see life.hpp
  std::string ucx{};      // see ucx_setup.hpp
};

std::string encode(const RankRecord& record);
/// Throws what a ByteReader throws.
RankRecord decode_rank_record(std::string_view text);

}  // namespace tutti
