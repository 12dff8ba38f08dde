// crew.hpp: the processes of a job, wherever they run, as its supervisor sees them.
// SPDX-License-Identifier: Apache-2.0
//
// Two kinds: a LocalCrew runs on this host under a guard; an AgentCrew runs on several hosts under an agent each.
// Ranks are numbered as in the world.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include <tutti/clock.hpp>

#include "launch/cause.hpp"
#include "launch/printer.hpp"

namespace tutti::launch {

// Whether output may be delivered now. While it may not, ranks block in their writes.
enum class Room { none, some };

class CrewListener {
 public:
  virtual ~CrewListener() = default;
  virtual void rank_ended(int rank, pid_t process, int status) = 0;  // as waitpid says it
  virtual void rank_not_started(int rank, int error) = 0;            // an errno
  // It ended, and the others go on without it.
  virtual void rank_given_up(int rank) { static_cast<void>(rank); }
  virtual void output(int rank, Stream stream, std::string_view bytes) = 0;
  virtual void output_ended(int rank, Stream stream) = 0;
  // The processes of some ranks are gone, or cannot be heard of any more.
  virtual void part_lost(Cause cause) = 0;
  virtual void left_behind(int processes) = 0;  // by ranks that have ended; they are being ended
  // Something that people should know, as a sentence.
  virtual void notice(const std::string& sentence) = 0;
};

class Crew {
 public:
  virtual ~Crew() = default;

  virtual void start() = 0;
  // What to poll for, and until when at most.
  virtual void watch(std::vector<pollfd>& into, Room room) const = 0;
  [[nodiscard]] virtual TimePoint next_timer() const { return TimePoint::max(); }
  // Handles what has come, without waiting.
  virtual void serve(CrewListener& listener, Room room) = 0;
  // Nothing is left of it, or nothing that can be ended.
  [[nodiscard]] virtual bool is_gone() const = 0;

  // What a rank of this host was doing last, as a clause; empty: not known.
  [[nodiscard]] virtual std::string last_call(int /*rank*/) const { return {}; }

  // Has the ranks of this host write down where their programs are, for last_call and the records.
  virtual void ask_where() const {}

  // Writes what the ranks of this host have written down of their calls into a folder. Throws Error.
  virtual void dump_calls(const std::string& /*folder*/) const {}

  // Tells every rank that a process of the job is gone; `how` is a clause.
  virtual void tell_ranks(int rank, const std::string& how) = 0;
  virtual void signal_ranks(int signal) = 0;         // the ranks themselves
  virtual void signal_all(int signal) = 0;           // their descendants as well
  virtual void end(int signal, Duration grace) = 0;  // a signal to all, SIGKILL after the grace
};

}  // namespace tutti::launch
