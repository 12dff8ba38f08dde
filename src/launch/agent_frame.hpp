// agent_frame.hpp: what tuttirun and its agents tell each other, and the pipes they do it over.
// SPDX-License-Identifier: Apache-2.0
//
// A frame is a length, the host that it is for or from, a kind, and a body. tuttirun is node 0 of a tree, host i is
// node i + 1 (host_tree.hpp). Agents pass on what is not for them. The pipes are those of a remote shell: their other end
// is trusted, but every length is checked before it is believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>

#include "base/bytes.hpp"
#include "base/unique_fd.hpp"

namespace tutti::launch {

// Says what follows on an agent's output; whatever precedes it was printed by the shell of that host.
inline constexpr std::string_view agent_banner = "\x01tutti-agent 1 ";

enum class FrameKind : std::uint8_t {
  // from tuttirun to agents
  order = 1,     // JobOrder; what it is, before anything is started
  reach,         // ReachTable: connect to the other hosts
  serve,         // an address: serve the store there
  start,         // StartOrder: start the ranks
  signal_ranks,  // a signal
  signal_all,    // a signal
  end,           // a signal, a time in ms
  news,          // a rank and how its process ended, for the ranks
  credit,        // so many more bytes of output may be sent
  input,         // for rank 0
  input_end,
  close_store,  // no other host needs it any more
  // from agents to tuttirun
  ready,             // HostFacts
  refused,           // a sentence: why this host cannot take part
  reached,           // ReachReport
  serving,           // two numbers: the ports of the store and of the program's own rendezvous
  rank_ended,        // rank, process, status
  rank_not_started,  // rank, errno
  output,            // rank, stream, bytes
  output_ended,      // rank, stream
  left_behind,       // how many processes
  notice,            // a sentence
  guard_lost,        // a process id
  input_taken,
  gone,       // nothing is left on that host
  host_lost,  // a sentence; from the agent that started the lost one
  // both ways
  beat,
};

inline constexpr std::uint32_t every_host = 0xffffffff;

struct Frame {
  std::uint32_t host = every_host;
  FrameKind kind = FrameKind::beat;
  std::vector<std::byte> body = {};
};

// One number, several, or a text: the bodies of most kinds.
std::vector<std::byte> numbers(std::initializer_list<std::int64_t> values);
std::vector<std::byte> sentence(std::string_view text);
std::vector<std::int64_t> read_numbers(const Frame& frame, std::size_t count);
std::string read_sentence(const Frame& frame);

// Frames over two descriptors, which it makes non-blocking.
class FramePipe {
 public:
  FramePipe() = default;
  FramePipe(UniqueFd in, UniqueFd out);

  // Reads what there is. False: the other side is gone, or sent what is no frame.
  bool receive();
  // Until the banner has come, next() has nothing.
  void expect_banner() { is_before_banner_ = true; }
  // The rest of the banner's line, once it has come.
  [[nodiscard]] const std::optional<std::string>& banner() const { return banner_; }
  std::optional<Frame> next();

  void send(const Frame& frame);
  // Writes what there is room for. False: the other side is gone.
  bool flush();
  // Writes the rest, but waits no longer than this.
  void flush_until(TimePoint deadline);
  [[nodiscard]] bool has_unsent() const { return sent_ < unsent_.size(); }
  void close_output() { out_.reset(); }

  [[nodiscard]] int in() const { return in_.get(); }
  [[nodiscard]] int out() const { return out_.get(); }
  [[nodiscard]] TimePoint heard() const { return heard_; }
  [[nodiscard]] TimePoint said() const { return said_; }
  void count_as_heard(TimePoint when) { heard_ = when; }

 private:
  void look_for_banner();

  UniqueFd in_, out_;
  std::string received_;
  std::size_t taken_ = 0;
  std::string unsent_;
  std::size_t sent_ = 0;
  TimePoint heard_{}, said_{};
  bool is_before_banner_ = false, is_broken_ = false;
  std::optional<std::string> banner_;
};

}  // namespace tutti::launch
