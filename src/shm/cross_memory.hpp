// cross_memory.hpp: who may read whose memory with process_vm_readv.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti::shm {

/// Where Yama lets only ancestors attach (ptrace_scope 1), permits it to this process's parent and all its descendants:
/// the launcher and the other ranks. Elsewhere does nothing. docs/decisions/0006-who-may-read-a-rank.md says why.
void let_siblings_read();
/// The process to name to the system, if any. `ptrace_scope`: the text of /proc/sys/kernel/yama/ptrace_scope, empty where
/// there is no Yama.
std::optional<std::int64_t> reader_to_permit(std::string_view ptrace_scope, std::int64_t parent);

/// Reads another process's memory: how many bytes came, at least one, or the system's error number below zero.
std::int64_t read_memory(std::int64_t process, std::uint64_t address, std::byte* to, std::int64_t bytes);
/// Reads 8 bytes: 0, or the system's error number.
int read_word(std::int64_t process, std::uint64_t address, std::uint64_t& word);
/// Tries it: whether that process has `expected` at that address.
bool can_read(std::int64_t process, std::uint64_t address, std::uint64_t expected);

}  // namespace tutti::shm
