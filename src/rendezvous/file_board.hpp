// file_board.hpp: a record in a file: file://, and launchers without a key-value space on one machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "rendezvous/record.hpp"

namespace tutti::rendezvous {

// The file appears complete, by rename. What an earlier job left there is replaced, and its readers find out by the
// nonce; a file that is neither empty nor a record is not touched: RendezvousError.
// A record that another user wrote or could have changed is not followed: AuthenticationError.
std::unique_ptr<Board> make_file_board(std::filesystem::path path);

}  // namespace tutti::rendezvous
