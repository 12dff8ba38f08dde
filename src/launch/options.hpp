// options.hpp: the options of tuttirun, as a value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tutti/clock.hpp>

#include "launch/hosts.hpp"

namespace tutti::launch {

enum class Binding { none, core };

struct RunOptions {
  int ranks = 0;  // on this node; 0: one per core
  int nodes = 1;
  int node_rank = 0;
  std::vector<Host> hosts = {};      // empty: this one; their slots are the ranks on each, 0: one per core
  std::string shell = "ssh";         // the remote shell and its options
  bool has_shell = false;            // it was given
  std::string remote_tuttirun = {};  // its path on the hosts; empty: where it is here
  std::string folder = {};           // where the ranks run; empty: here
  int fan_out = 16;                  // how many agents one node starts
  Duration silence = std::chrono::milliseconds(4500);  // so that all ranks know within 5 s
  Duration start_timeout = std::chrono::seconds(30);
  std::string master_address = "127.0.0.1";
  int master_port = 0;  // 0: a free one
  std::string backend = {};
  Binding binding = Binding::none;
  std::vector<std::pair<std::string, std::string>> variables = {};  // for the ranks, after everything else
  bool is_module = false;                                           // `program` names a Python module
  bool is_never_python = false;                                     // a .py file is executed as it is
  std::string python = {};                                          // empty: that of the active environment
  std::string log_folder = {};
  std::string dump_folder = {};  // where the ranks' latest calls are written if the job fails
  bool tees = false;
  bool is_quiet = false;
  bool has_prefix = true;
  bool is_dry_run = false;
  std::string allocation = {};  // what said where the ranks run, if it was not the command line
  std::optional<Duration> timeout = {};
  std::optional<int> metrics_port = {};  // where counts of the ranks are served; 0: a free one
  Duration grace = std::chrono::seconds(1);
  int restarts = 0;  // how often the job is started again after a failure; with `elastic`, how often ranks are replaced
  std::optional<int> ranks_min = {};  // --elastic: the job goes on as long as so many ranks are left
  bool keeps_going = false;           // a rank that fails, or a host that is lost, does not end the others
  std::string program = {};
  std::vector<std::string> arguments = {};  // the program's own
};

// A mistake on the command line: status 2. The message is a whole sentence without the program's name.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The parsed options; or text to print instead, for help or the version.
struct Parsed {
  RunOptions options = {};
  std::string text = {};
};

// `words` are those after the program's name. The first that is neither an option nor an option's value is the program;
// everything behind it is the program's own. torchrun's spelling with _ is understood. Throws UsageError.
Parsed parse_options(std::string_view name, std::span<const std::string> words);

}  // namespace tutti::launch
