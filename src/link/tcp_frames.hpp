// tcp_frames.hpp: how frames travel over tcp, and the frames of the link itself.
// SPDX-License-Identifier: Apache-2.0
//
//   to the peer, stream 0                frames of the order `message`
//   back on the peer's stream 0          frames of the order `reply`
//   to the peer, streams 1…k             frames of the order `bulk`
//   either way, control connection       control (bytes)
//   either way, every connection         goodbye (connections that its sender has opened)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tutti/link.hpp>

#include "wire/frame.hpp"

namespace tutti::link {

// Above the types of the frames that the link carries for others.
inline constexpr std::uint8_t control_frame = frame_type_max + 1;
inline constexpr std::uint8_t goodbye_frame = frame_type_max + 2;

inline constexpr std::uint8_t checked_flag = 1;  // payload_crc holds
inline constexpr std::uint64_t frame_payload_bytes_max = std::uint64_t{1} << 30;

enum class Checksum : std::uint8_t { off, on };

wire::EncodedFrame encode(const Frame& frame, Checksum checksum);
wire::EncodedFrame encode_goodbye(std::uint64_t opened_connections);
// Throws MalformedMessage if it is not one.
std::uint64_t decode_goodbye(std::span<const std::byte> head);

}  // namespace tutti::link
