// announcements.cpp: announced messages that no receive has asked for yet.
// SPDX-License-Identifier: Apache-2.0
#include "messages/announcements.hpp"

#include <utility>
#include <vector>

namespace tutti::messages {

Announcement Announcements::take(std::uint64_t number) {
  const Announcement announcement = *all_.find(number);
  all_.remove(number);
  return announcement;
}

void Announcements::put_back(UnexpectedMessage& message, Peer& peer) {
  queue_.put_back(message);
  const Announcement* const announcement = message.announced && peer.link != nullptr ? all_.find(message.id) : nullptr;
  if (announcement != nullptr && announcement->is_asked_back) asked_back(peer, announcement->message);
}

void Announcements::cancelled(const Peer& peer, std::uint64_t message, const std::string& why) {
  all_.for_each([&](std::uint64_t number, const Announcement& announcement) {
    if (announcement.peer != peer.rank || announcement.message != message) return;
    UnexpectedMessage* entry = queue_.forget_announced(peer.rank, number);
    if (entry == nullptr && (entry = find_reserved(queue_, peer.rank, number)) != nullptr)
      queue_.lose(*entry, why, Transfer::Refusal::taken_back);
    if (entry != nullptr) queue_.recycle(*entry);
    all_.remove(number);
  });
}

// While a probe has it, the wish is remembered.
void Announcements::asked_back(Peer& peer, std::uint64_t message) {
  bool is_given = false;
  all_.for_each([&](std::uint64_t number, Announcement& announcement) {
    if (announcement.peer != peer.rank || announcement.message != message) return;
    announcement.is_asked_back = true;
    UnexpectedMessage* const entry = queue_.forget_announced(peer.rank, number);
    if (entry == nullptr) return;
    queue_.recycle(*entry);
    all_.remove(number);
    is_given = true;
  });
  if (is_given) sender_.reply(peer, {.type = FrameType::given_back, .numbers = {.first = message}});
}

void Announcements::fail_all(const Peer& peer) {
  const auto forget = [&](UnexpectedMessage& message) {
    all_.remove(message.id);
    queue_.recycle(message);
  };
  for (UnexpectedMessage* const message : std::vector(queue_.reserved())) {
    if (message->peer != peer.rank || !message->announced) continue;
    queue_.lose(*message, peer.reason, Transfer::Refusal::none);
    forget(*message);
  }
  for (UnexpectedMessage* chain = queue_.forget_announced(peer.rank); chain != nullptr;)
    forget(*std::exchange(chain, chain->next));
}

}  // namespace tutti::messages
