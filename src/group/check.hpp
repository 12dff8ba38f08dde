// check.hpp: what the door looks at before a call may pass: bad input is refused before any byte moves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tutti/request.hpp>

#include "backend/block_layout.hpp"

namespace tutti {

/// Checks a collective, puts axes into 0 … axes − 1, drops views that the verb does not use on this rank, and fills in
/// the signature but for its sequence number. Throws InvalidArgument that says what is wrong and what to try.
/// `layout` is working memory, reused from call to call.
void check_collective(Request& request, int rank, int size, BlockLayout& layout);

/// Checks a message to or from `peer` (a receive: or any_source).
struct MessageEnds {
  int peer = 0;
  int size = 1;
  std::uint32_t tag = 0;
  bool has_data = true;      // false: the array is not known before the message is
  bool is_internal = false;  // of the library's own, whose tags are larger
};
void check_message(Verb verb, const View& data, const MessageEnds& ends);

}  // namespace tutti
