// agent_frame.cpp: frames in and out of pipes.
// SPDX-License-Identifier: Apache-2.0
#include "launch/agent_frame.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "wire/socket.hpp"

namespace tutti::launch {
namespace {

constexpr std::size_t frame_header_bytes = 4 + 4 + 1;
constexpr std::size_t frame_body_bytes_max = std::size_t{64} << 20;  // the environment and the hosts of a large job
constexpr std::size_t before_banner_bytes_max = std::size_t{1} << 20;
constexpr std::size_t sentence_bytes_max = std::size_t{64} << 10;

void make_non_blocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags >= 0) fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

std::vector<std::byte> numbers(std::initializer_list<std::int64_t> values) {
  ByteWriter writer;
  for (const std::int64_t value : values) writer.i64(value);
  return std::move(writer).take();
}

std::vector<std::byte> sentence(std::string_view text) {
  return std::move(ByteWriter().string(text.substr(0, sentence_bytes_max))).take();
}

std::vector<std::int64_t> read_numbers(const Frame& frame, std::size_t count) {
  ByteReader reader(frame.body, "a frame of numbers");
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(reader.i64());
  reader.expect_end();
  return values;
}

std::string read_sentence(const Frame& frame) {
  return ByteReader(frame.body, "a frame with a sentence").string(sentence_bytes_max);
}

FramePipe::FramePipe(UniqueFd in, UniqueFd out)
    : in_(std::move(in)), out_(std::move(out)), heard_(std::chrono::steady_clock::now()), said_(heard_) {
  make_non_blocking(in_.get());
  make_non_blocking(out_.get());
}

bool FramePipe::receive() {
  std::array<char, 65536> buffer;
  while (!is_broken_) {
    const ssize_t bytes = read(in_.get(), buffer.data(), buffer.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno == EAGAIN) return true;
    if (bytes <= 0) return false;
    heard_ = std::chrono::steady_clock::now();
    received_.append(buffer.data(), static_cast<std::size_t>(bytes));
    if (is_before_banner_) look_for_banner();
    if (static_cast<std::size_t>(bytes) < buffer.size()) return true;
  }
  return false;
}

void FramePipe::look_for_banner() {
  const std::size_t at = received_.find(agent_banner);
  const std::size_t end = at == std::string::npos ? at : received_.find('\n', at);
  if (end == std::string::npos) {
    is_broken_ = received_.size() > before_banner_bytes_max;
    return;
  }
  banner_ = received_.substr(at + agent_banner.size(), end - at - agent_banner.size());
  received_.erase(0, end + 1);
  is_before_banner_ = false;
}

std::optional<Frame> FramePipe::next() {
  const std::string_view rest = std::string_view(received_).substr(taken_);
  if (is_before_banner_ || rest.size() < frame_header_bytes) return std::nullopt;
  ByteReader reader(bytes_of(rest), "a frame");
  const std::size_t body_bytes = reader.u32();
  Frame frame{.host = reader.u32(), .kind = static_cast<FrameKind>(reader.u8())};
  if (body_bytes > frame_body_bytes_max) {
    is_broken_ = true;
    return std::nullopt;
  }
  if (rest.size() < frame_header_bytes + body_bytes) return std::nullopt;
  const auto body = reader.raw(body_bytes);
  frame.body.assign(body.begin(), body.end());
  taken_ += frame_header_bytes + body_bytes;
  if (taken_ == received_.size() || taken_ > (std::size_t{1} << 20)) {
    received_.erase(0, taken_);
    taken_ = 0;
  }
  return frame;
}

void FramePipe::send(const Frame& frame) {
  ByteWriter header;
  header.u32(static_cast<std::uint32_t>(frame.body.size())).u32(frame.host).u8(static_cast<std::uint8_t>(frame.kind));
  const auto head = header.data();
  unsent_.append(reinterpret_cast<const char*>(head.data()), head.size());
  unsent_.append(reinterpret_cast<const char*>(frame.body.data()), frame.body.size());
  said_ = std::chrono::steady_clock::now();
  flush();
}

bool FramePipe::flush() {
  while (out_ && has_unsent()) {
    const ssize_t bytes = write(out_.get(), unsent_.data() + sent_, unsent_.size() - sent_);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno == EAGAIN;  // SIGPIPE is blocked, like every signal
    sent_ += static_cast<std::size_t>(bytes);
  }
  if (sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
  }
  return true;
}

void FramePipe::flush_until(TimePoint deadline) {
  while (out_ && has_unsent() && std::chrono::steady_clock::now() < deadline) {
    if (wire::wait_for(out_.get(), POLLOUT, deadline) == 0 || !flush()) return;
  }
}

}  // namespace tutti::launch
