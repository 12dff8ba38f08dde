// ring_memory.cpp: reading the memory of another rank of this host.
// SPDX-License-Identifier: Apache-2.0
#include "link/ring_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <tutti/error.hpp>

#include "base/bytes.hpp"
#include "shm/cross_memory.hpp"
#include "shm/doorbell.hpp"

namespace tutti::link {

namespace {

constexpr std::uint64_t words_per_page = 512;

RingKey key_of(const RemoteKey& key) {
  RingKey fields;
  if (key.size != sizeof fields) throw MalformedMessage("a remote key in shared memory has the wrong size");
  std::memcpy(&fields, key.bytes.data(), sizeof fields);
  return fields;
}

}  // namespace

const std::byte* in_arena(const shm::LocalPeers& local_peers, int rank, std::uint64_t offset, std::uint64_t bytes) try {
  return local_peers.at(rank, offset, bytes);
} catch (const Error& error) {
  throw MalformedMessage(error.what());
}

RemoteKey RingMemory::expose(std::span<const std::byte> memory) {
  shm::Arena& arena = local_peers_->arena();
  if (free_words_.empty()) {
    auto* const page = reinterpret_cast<Word*>(arena.allocate(words_per_page * sizeof(Word), 4096));
    for (std::uint64_t i = words_per_page; i-- > 0;) free_words_.push_back(word_pages_.size() * words_per_page + i);
    word_pages_.push_back(page);
  }
  const std::uint64_t index = free_words_.back();
  free_words_.pop_back();
  Word& word = own_word(index);
  word.store(++last_key_, std::memory_order_release);
  const bool shared = arena.contains(memory.data(), memory.size());
  const RingKey fields{.number = last_key_,
                       .address = reinterpret_cast<std::uintptr_t>(memory.data()),
                       .arena_offset = shared ? arena.offset_of(memory.data()) : RingKey::nowhere,
                       .word_offset = arena.offset_of(&word),
                       .word_index = index};
  RemoteKey key{.size = sizeof fields};
  std::memcpy(key.bytes.data(), &fields, sizeof fields);
  return key;
}

RingMemory::Word& RingMemory::own_word(std::uint64_t index) const {
  return word_pages_[index / words_per_page][index % words_per_page];
}

void RingMemory::revoke_all() {
  for (std::uint64_t i = 0; i < word_pages_.size() * words_per_page; ++i) {
    own_word(i).store(0, std::memory_order_release);
  }
  shm::fence_before_notify();
}

void RingMemory::revoke(const RemoteKey& key) {
  const std::uint64_t index = key_of(key).word_index;
  own_word(index).store(0, std::memory_order_release);
  free_words_.push_back(index);
  shm::fence_before_notify();  // the word is seen to be cleared before the memory is seen to change
}

const RingMemory::Word& RingMemory::word_of(int rank, const RingKey& key) const {
  if (key.word_offset % sizeof(Word) != 0) throw MalformedMessage("a remote key does not name a word");
  return *reinterpret_cast<const Word*>(in_arena(*local_peers_, rank, key.word_offset, sizeof(Word)));
}

bool RingMemory::is_exposed(int rank, const RemoteKey& key, std::int64_t bytes) const {
  const RingKey fields = key_of(key);
  if (fields.arena_offset != RingKey::nowhere) {
    static_cast<void>(in_arena(*local_peers_, rank, fields.arena_offset, static_cast<std::uint64_t>(bytes)));
  }
  return word_of(rank, fields).load(std::memory_order_acquire) == fields.number;
}

bool RingMemory::can_get(int rank, const RemoteKey& key, std::int64_t bytes) const {
  if (key_of(key).arena_offset != RingKey::nowhere) return true;
  return options_.cross_memory && bytes <= options_.get_bytes_max && local_peers_->may_read_memory_of(rank);
}

GetStatus RingMemory::get(RemoteGet& get, std::int64_t bytes_max) const {
  const RingKey key = key_of(get.key);
  const Word& word = word_of(get.peer, key);
  const std::int64_t bytes = std::min(bytes_max, get.bytes - get.done_bytes);
  const std::int64_t got = read(get, key, bytes);
  if (got < 0) {
    switch (-got) {
      case EINTR:
      case EAGAIN: return GetStatus::moving;
      case ESRCH: return GetStatus::peer_gone;
      case EPERM:
      case ENOSYS: return GetStatus::not_permitted;
      default: break;
    }
    const bool exposed = word.load(std::memory_order_acquire) == key.number;
    return exposed ? GetStatus::unreadable : GetStatus::withdrawn;
  }
  get.done_bytes += got;
  if (get.done_bytes < get.bytes) return GetStatus::moving;
  shm::fence_before_notify();  // the copy is over before the word is looked at
  return word.load(std::memory_order_acquire) == key.number ? GetStatus::complete : GetStatus::withdrawn;
}

// How many bytes, or an error number below zero.
std::int64_t RingMemory::read(const RemoteGet& get, const RingKey& key, std::int64_t bytes) const {
  const auto offset = static_cast<std::uint64_t>(get.done_bytes);
  if (key.arena_offset != RingKey::nowhere) {
    const std::byte* const from =
        in_arena(*local_peers_, get.peer, key.arena_offset, static_cast<std::uint64_t>(get.bytes));
    std::memcpy(get.to + offset, from + offset, static_cast<std::size_t>(bytes));
    return bytes;
  }
  return shm::read_memory(local_peers_->process_of(get.peer), key.address + offset, get.to + offset, bytes);
}

}  // namespace tutti::link
