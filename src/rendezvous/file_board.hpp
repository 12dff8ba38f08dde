// file_board.hpp: a record in a file: file://, and launchers without a key-value space on one machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "rendezvous/record.hpp"

namespace tutti::rendezvous {

// The file appears complete, by rename. A record of an earlier job is replaced; its readers detect it by the nonce. A
// file that is neither empty nor a record is not touched: RendezvousError. A record that another user wrote or could
// have changed is not followed: AuthenticationError.
std::unique_ptr<Board> make_file_board(std::filesystem::path path);

}  // namespace tutti::rendezvous
