// segment.hpp: the memory in which a rank's records lie: a file without a name, of this user alone.
// SPDX-License-Identifier: Apache-2.0
//
// tuttirun makes one per rank and hands it down by its descriptor, so that it can read it when the rank is gone. Without tuttirun the
// rank makes its own. It has no name in any file system: it disappears with the last process that has it. Full tracing writes into
// files instead, which stay.
#pragma once

#include <cstddef>
#include <string>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "record/layout.hpp"

namespace tutti::record {

/// The variable in which a rank finds the descriptor of its segment, and the file's number, by which it knows it: "7:4711".
inline constexpr const char* descriptor_variable = "TUTTI_RECORD_FD";

/// A new one, of zeros, with room for so many entries; its size is sealed. Nothing, and errno, if there is none to be had.
UniqueFd make_segment(std::size_t entries);
/// A file for a rank's records in a folder, with room for so many entries and as many steps. Throws Error: the folder is not this user's, there is no room.
UniqueFd make_segment_file(const std::string& folder, int rank, std::size_t entries);
/// What descriptor_variable says of it; empty: it cannot be said.
std::string describe_descriptor(int file);
/// The one that was inherited, if the descriptor is still that file.
UniqueFd inherited_segment(const Environment& environment);
/// How many calls, and steps, a full trace keeps: TUTTI_TRACE_ENTRIES.
std::size_t traced_entries(const Environment& environment);

}  // namespace tutti::record
