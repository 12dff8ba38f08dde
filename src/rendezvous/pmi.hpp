// pmi.hpp: the client side of PMI-1, the line protocol that hydra and Slurm's pmi2 plugin speak to their processes.
// SPDX-License-Identifier: Apache-2.0
//
//   → cmd=init pmi_version=1 pmi_subversion=1     ← cmd=response_to_init rc=0 …
//   → cmd=get_my_kvsname                          ← cmd=my_kvsname kvsname=…
//   → cmd=put kvsname=… key=… value=…             ← cmd=put_result rc=0 …
//   → cmd=barrier_in                              ← cmd=barrier_out …
//   → cmd=get kvsname=… key=…                     ← cmd=get_result rc=0 value=…
//   → cmd=finalize                                ← cmd=finalize_ack …
#pragma once

#include <string>
#include <string_view>

#include <tutti/clock.hpp>

namespace tutti::rendezvous {

// One conversation over a descriptor that somebody else owns. Every call throws RendezvousError, which quotes the
// command, where the launcher does not answer by the deadline, hangs up, or refuses.
class PmiClient {
 public:
  explicit PmiClient(int fd) : fd_(fd) {}

  void init(TimePoint deadline);
  [[nodiscard]] std::string kvs_name(TimePoint deadline);
  void put(std::string_view key, std::string_view value, TimePoint deadline);
  void barrier(TimePoint deadline);
  [[nodiscard]] std::string get(std::string_view key, TimePoint deadline);
  void finalize(TimePoint deadline);

 private:
  // Sends a line and returns the answer, whose command must be `answer`.
  std::string ask(std::string_view command, std::string_view answer, TimePoint deadline);
  std::string read_line(std::string_view command, TimePoint deadline);

  int fd_;
  std::string kvs_name_;
  std::string received_;  // behind the last line
};

// The value of `name` in "cmd=x name=value …"; empty if it is not there.
std::string_view pmi_field(std::string_view line, std::string_view name);

}  // namespace tutti::rendezvous
