// breakage.cpp: injected errors.
// SPDX-License-Identifier: Apache-2.0
#include "breakage.hpp"

#include <algorithm>

namespace tutti::sim {
namespace {

constexpr std::string_view names[breakage_count] = {"none", "flip", "drop", "late", "accuse", "deaf"};

}  // namespace

std::string_view name_of(Breakage breakage) { return names[static_cast<int>(breakage)]; }

std::optional<Breakage> breakage_from_name(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Breakage>(found - std::begin(names));
}

void LentTransport::listen(TransportListener* listener) {
  listener_ = listener;
  endpoint_.listen(listener);
}

void LentTransport::send(Transfer& transfer) {
  if (transfer.envelope.bytes == 0) return endpoint_.send(transfer);
  ++sent_;
  if (strikes(Breakage::drop)) {
    transfer.state = Transfer::State::done;
    return;
  }
  if (strikes(Breakage::flip)) {
    altered_.assign(transfer.from, transfer.from + transfer.envelope.bytes);
    altered_[altered_.size() / 2] ^= std::byte{0x10};
    transfer.from = altered_.data();
  }
  endpoint_.send(transfer);
}

bool LentTransport::poll() {
  if (fault_.breakage == Breakage::deaf && sent_ >= fault_.after_messages) return false;
  if (strikes(Breakage::accuse) && !accused_) {
    accused_ = true;
    listener_->lost((rank() + 1) % size(), "this rank imagines it");
  }
  return endpoint_.poll();
}

}  // namespace tutti::sim
