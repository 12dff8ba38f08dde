// options.cpp: tuttirun's command line: its own options, torchrun's options, and where the program begins.
// SPDX-License-Identifier: Apache-2.0
#include "launch/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/backend_names.hpp"
#include "base/environment.hpp"
#include "launch/allocation.hpp"
#include "launch/suggest.hpp"
#include "launch/words.hpp"

namespace tutti::launch {
namespace {

constexpr int ranks_max = 16384;

// fmt's braces stand for the program's name.
constexpr std::string_view examples = R"(Examples
  {0} -n 4 ./program --its-own-option
      4 ranks of an executable
  {0} -n 4 train.py --epochs 3
      4 ranks of a Python file, by the Python of the active environment
  {0} --standalone --nproc-per-node 4 -m package.train
      torchrun's words; a Python module
  {0} -n 8 --timeout 10m --log-dir logs ./program
      at most ten minutes, the output of each rank in a file of its own
  {0} -n 2 --bind core --dry-run ./program
      what would be started, and on which cores
  {0} -H a:8,b:8 train.py
      8 ranks on each of two hosts, started by ssh from here
  {0} -n 4 --restarts 3 train.py
      started again when a rank fails, at most three times
  {0} --elastic 2:4 train.py
      4 ranks; one that is lost is replaced, and the others stay; 2 at least

Exit status: 0, or that of the first rank that failed (128 + signal), 124 past --timeout, 2 for a mistake in the
arguments. USR1 and USR2 go to the ranks; INT, TERM, HUP and QUIT as well, which then have --grace to end. A second
Ctrl-C ends everything at once.)";

[[noreturn]] void fail(const std::string& message) { throw UsageError(message); }

int whole_number(std::string_view option, const std::string& text, int lowest, int highest) {
  const auto value = parse_integer(text);
  if (!value || *value < lowest || *value > highest)
    fail(fmt::format("{} takes a number from {} to {}, not \"{}\"", option, lowest, highest, text));
  return static_cast<int>(*value);
}

Duration duration(std::string_view option, const std::string& text) {
  const auto value = parse_duration(text);
  if (!value || *value <= Duration::zero())
    fail(fmt::format("{} takes a time such as 30s, 500ms or 10m, not \"{}\"", option, text));
  return *value;
}

/// Checked here, so that one message says what every rank would say by itself.
std::string backend_name(const std::string& text) {
  if (is_backend_name(text)) return text;
  const std::vector<std::string> known(backend_names.begin(), backend_names.end());
  const bool names_framework = text == "torch" || text == "jax" || text == "tensorflow" || text == "numpy";
  const std::string hint = names_framework ? "; frameworks need no backend: Tutti takes their arrays as they are"
                                           : did_you_mean(text, known);
  fail(fmt::format("-B {}: there is no such backend; there are {}{}", text, fmt::join(known, ", "), hint));
}

int rank_count(const std::string& text) {
  if (text == "auto" || text == "cpu") return 0;
  if (text == "gpu") fail("-n gpu: tuttirun does not count GPUs; give the number of ranks");
  return whole_number("-n", text, 1, ranks_max);
}

int node_count(const std::string& text) {
  if (text.find(':') != std::string::npos)
    fail(fmt::format("--nnodes {}: a range of nodes is not supported; give the number of nodes", text));
  return whole_number("--nnodes", text, 1, ranks_max);
}

Binding binding(const std::string& text) {
  if (text == "core") return Binding::core;
  if (text == "none") return Binding::none;
  fail(fmt::format("--bind takes core or none, not \"{}\"", text));
}

std::pair<std::string, std::string> variable(const std::string& text) {
  constexpr std::array ours = {
      "RANK",          "WORLD_SIZE",        "LOCAL_RANK",      "LOCAL_WORLD_SIZE", "GROUP_RANK",     "GROUP_WORLD_SIZE",
      "NODE_RANK",     "MASTER_ADDR",       "MASTER_PORT",     "TUTTI_STORE",      "TUTTI_JOB",      "TUTTI_SECRET",
      "TUTTI_BACKEND", "TUTTI_LAUNCHER_FD", "TUTTI_ROUNDS_FD", "TUTTI_RESTART",    "TUTTI_RECORD_FD"};
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (name.empty()) fail(fmt::format("-x takes NAME=VALUE, not \"{}\"", text));
  if (std::find(ours.begin(), ours.end(), name) != ours.end())
    fail(fmt::format("-x {}: tuttirun sets {} itself", text, name));
  if (equals != std::string::npos) return {name, text.substr(equals + 1)};
  const char* value = std::getenv(name.c_str());
  if (!value) fail(fmt::format("-x {0}: {0} is not set here; give it a value, -x {0}=VALUE", name));
  return {name, value};
}

// One declaration per option. CLI11 keeps the list and writes the help; what is wrong with a value is said above.
class CommandLine {
 public:
  explicit CommandLine(std::string_view name)
      : app_("Starts a program as several ranks, here or on other hosts, and ends them all when one fails.",
             std::string(name)) {
    app_.set_help_flag();
    app_.footer(fmt::format(examples, name));
    app_.get_formatter()->column_width(34);
    declare_ranks();
    declare_hosts();
    declare_program();
    declare_output();
    declare_endings();
  }

  Parsed parse(std::span<const std::string> words) {
    SplitWords split = split_words(
        words, [this](const std::string& option) { return kind_of(option); }, names_);
    std::reverse(split.options.begin(), split.options.end());  // as CLI11 wants them
    app_.parse(std::move(split.options));
    if (wants_help_) return {.text = help()};
    if (wants_version_) return {.text = fmt::format("{} {}\n", app_.get_name(), TUTTI_VERSION)};
    if (split.program.empty())
      fail(fmt::format("no program to start was given; try {} -n 4 ./program, or --help", app_.get_name()));
    result_.program = split.program.front();
    result_.arguments.assign(split.program.begin() + 1, split.program.end());
    find_nodes();
    check_hosts();
    check_nodes();
    check_restarts();
    if (result_.tees && result_.log_folder.empty()) fail("--tee shows what --log-dir writes; give --log-dir, too");
    if (result_.tees && result_.is_quiet) fail("--tee and --quiet contradict each other; leave one out");
    return {.options = std::move(result_)};
  }

 private:
  using Take = std::function<void(const std::string&)>;

  void value(const std::string& names, const std::string& what, const std::string& help_text, const Take& take) {
    remember(app_.add_option_function<std::vector<std::string>>(
                     names,
                     [take](const std::vector<std::string>& texts) { std::for_each(texts.begin(), texts.end(), take); },
                     help_text)
                 ->expected(1)
                 ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                 ->type_name(what));
  }

  void flag(const std::string& names, const std::string& help_text, bool& target) {
    remember(app_.add_flag(names, target, help_text));
  }

  void remember(CLI::Option* option) {
    option->group(group_);
    for (const std::string& name : option->get_lnames()) names_.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names_.push_back("-" + name);
  }

  OptionKind kind_of(const std::string& name) const {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) return OptionKind::unknown;
    return app_.get_option(name)->get_items_expected_max() == 0 ? OptionKind::flag : OptionKind::takes_value;
  }

  void declare_ranks() {
    group_ = "Ranks";
    value("-n,--nproc-per-node", "N", "ranks to start (default: one per core)",
          [this](const std::string& text) { result_.ranks = rank_count(text); });
    value("-B,--backend", "NAME", "backend of the ranks, in TUTTI_BACKEND",
          [this](const std::string& text) { result_.backend = backend_name(text); });
    value("--bind", "core|none", "give each rank its own cores (default: none)",
          [this](const std::string& text) { result_.binding = binding(text); });
    flag("--standalone", "one node, meeting at a free port: the default", standalone_);
    value("--nnodes", "N", "nodes, on each of which tuttirun is started by hand",
          [this](const std::string& text) { result_.nodes = node_count(text); });
    value("--node-rank", "N", "which of the nodes this is",
          [this](const std::string& text) { node_rank_ = whole_number("--node-rank", text, 0, ranks_max - 1); });
    value("--master-addr", "HOST", "where rank 0 is (default: 127.0.0.1)", [this](const std::string& text) {
      result_.master_address = text;
      has_master_address_ = true;
    });
    value("--master-port", "PORT", "port for the program's own rendezvous (default: a free one)",
          [this](const std::string& text) { result_.master_port = whole_number("--master-port", text, 0, 65535); });
  }

  void declare_hosts() {
    group_ = "Hosts";
    value("-H,--host", "A:8,B:8", "start ranks on these hosts, so many on each, by ssh",
          [this](const std::string& text) { list_hosts("-H", parse_host_list(text)); });
    value("--hostfile", "FILE", "the same from a file: NAME slots=N",
          [this](const std::string& text) { list_hosts("--hostfile", read_hostfile(text)); });
    value("--ssh", "COMMAND", "the remote shell and its options (default: ssh)", [this](const std::string& text) {
      result_.shell = text;
      result_.has_shell = true;
    });
    value("--wdir", "FOLDER", "where the ranks run (default: this folder)",
          [this](const std::string& text) { result_.folder = text; });
    value("--remote-tuttirun", "PATH", "where tuttirun is on the hosts (default: where it is here, or PATH)",
          [this](const std::string& text) { result_.remote_tuttirun = text; });
    value("--fan-out", "N", "hosts that one host starts; more hosts make a tree (default: 16)",
          [this](const std::string& text) { result_.fan_out = whole_number("--fan-out", text, 1, ranks_max); });
    value("--silence", "TIME", "a host of which nothing is heard for so long is lost (default: 4.5s)",
          [this](const std::string& text) { result_.silence = duration("--silence", text); });
    value("--start-timeout", "TIME", "for a host to be ready (default: 30s)",
          [this](const std::string& text) { result_.start_timeout = duration("--start-timeout", text); });
  }

  void list_hosts(const std::string& option, std::vector<Host> hosts) {
    if (!result_.hosts.empty()) fail(fmt::format("{}: the hosts were given already; list all of them once", option));
    result_.hosts = std::move(hosts);
  }

  void declare_program() {
    group_ = "Program";
    value("--python", "PATH", "the Python that runs a .py file or a module",
          [this](const std::string& text) { result_.python = text; });
    flag("-m,--module", "the program is a Python module", result_.is_module);
    flag("--no-python", "execute the program as it is, whatever its name", result_.is_never_python);
    value("-x,--env", "NAME[=VALUE]", "set a variable for the ranks; may be repeated",
          [this](const std::string& text) { result_.variables.push_back(variable(text)); });
    flag("--dry-run", "say what would be started, and start nothing", result_.is_dry_run);
  }

  void declare_output() {
    group_ = "Output";
    value("--log-dir", "FOLDER", "write one file per rank there instead of showing it",
          [this](const std::string& text) { result_.log_folder = text; });
    flag("--tee", "with --log-dir: show the output, too", result_.tees);
    flag("-q,--quiet", "show nothing but the last lines of a rank that fails", result_.is_quiet);
    flag("--no-prefix", "no [rank] before the lines", has_no_prefix_);
    value("--dump", "FOLDER", "if the job fails: write the latest calls of each rank there, as JSON",
          [this](const std::string& text) { result_.dump_folder = text; });
    value("--metrics", "PORT", "serve the ranks' counts to Prometheus at 127.0.0.1:PORT (0: a free one)",
          [this](const std::string& text) { result_.metrics_port = whole_number("--metrics", text, 0, 65535); });
    value("--trace", "FOLDER", "write every call down there, for tutti report and tutti trace",
          [this](const std::string& text) { result_.variables.emplace_back("TUTTI_TRACE", text); });
    group_ = "Help";
    flag("-h,--help", "this", wants_help_);
    flag("--version", "the version", wants_version_);
  }

  void declare_endings() {
    group_ = "Endings";
    value("--timeout", "TIME", "end the job after so long: 90s, 10m, 2h",
          [this](const std::string& text) { result_.timeout = duration("--timeout", text); });
    value("--restarts", "N", "start the job again when it fails, at most so often (default: 0; with --elastic 3)",
          [this](const std::string& text) { restarts_ = whole_number("--restarts", text, 0, 1000000); });
    value("--elastic", "MIN[:MAX]", "replace ranks that are lost, or go on with fewer: for tutti.elastic.run",
          [this](const std::string& text) { take_elastic(text); });
    flag("--keep-going", "ranks that are left go on when one fails: for programs that shrink their groups",
         result_.keeps_going);
    value("--grace", "TIME", "time between SIGTERM and SIGKILL (default: 1s)",
          [this](const std::string& text) { result_.grace = duration("--grace", text); });
  }

  void find_nodes() {
    const bool is_said =
        standalone_ || node_rank_ || result_.nodes != 1 || has_master_address_ || !result_.hosts.empty();
    if (is_said || result_.backend == "mpi") return;
    result_.allocation = apply_allocation(result_, Environment::of_process());
    if (result_.nodes == 1) return;
    node_rank_ = result_.node_rank;
    has_master_address_ = true;
  }

  void take_elastic(const std::string& text) {
    const std::size_t colon = text.find(':');
    result_.ranks_min = whole_number("--elastic", text.substr(0, colon), 1, ranks_max);
    if (colon == std::string::npos) return;
    ranks_most_ = whole_number("--elastic", text.substr(colon + 1), 1, ranks_max);
    if (*ranks_most_ < *result_.ranks_min)
      fail(fmt::format("--elastic {}: it takes MIN:MAX, the fewest ranks and the most", text));
  }

  void check_restarts() {
    constexpr int restarts_if_elastic = 3;
    result_.restarts = restarts_.value_or(result_.ranks_min ? restarts_if_elastic : 0);
    if (result_.restarts == 0 && !result_.ranks_min) return;
    const std::string_view option = result_.ranks_min ? "--elastic" : "--restarts";
    if (result_.keeps_going)
      fail(
          fmt::format("{} and --keep-going contradict each other: the one replaces ranks that fail, the other goes on "
                      "without them; leave one out",
                      option));
    if (result_.nodes > 1)
      fail(
          fmt::format("{}: a tuttirun that was started by hand on each node knows only its own ranks; start all nodes "
                      "from one with -H",
                      option));
    if (result_.backend == "mpi")
      fail(fmt::format("{}: with -B mpi the ranks are started by mpirun, which starts a job once; leave one out",
                       option));
    if (result_.ranks_min) check_elastic();
  }

  void check_elastic() {
    if (!result_.hosts.empty()) return;
    if (result_.ranks == 0) result_.ranks = ranks_most_.value_or(0);
    if (ranks_most_ && *ranks_most_ != result_.ranks)
      fail(fmt::format(
          "--elastic: at most {} ranks, and -n {}: a job starts with as many as it may have; give -n or MAX",
          *ranks_most_, result_.ranks));
    if (result_.ranks == 0) fail("--elastic: give the number of ranks, as -n or as MAX in --elastic MIN:MAX");
    if (*result_.ranks_min > result_.ranks)
      fail(fmt::format("--elastic {}: -n {} starts fewer ranks than that", *result_.ranks_min, result_.ranks));
  }

  void check_hosts() {
    if (result_.hosts.empty()) return;
    if (standalone_ || node_rank_ || result_.nodes != 1 || has_master_address_)
      fail(
          "-H and --hostfile start all hosts from here; leave out --standalone, --nnodes, --node-rank and "
          "--master-addr");
    if (result_.silence < std::chrono::seconds(2))
      fail("--silence takes 2s at least: a host that is well is heard of once a second");
    deal_ranks(result_.hosts, result_.ranks);
    const bool has_local_name = std::ranges::find(result_.hosts, "localhost", &Host::name) != result_.hosts.end();
    if (has_local_name && std::ssize(result_.hosts) > result_.fan_out)
      fail("localhost means another host on each of them; give this host's name instead");
  }

  void check_nodes() {
    result_.has_prefix = !has_no_prefix_;
    result_.node_rank = node_rank_.value_or(0);
    if (result_.nodes == 1) {
      if (result_.node_rank != 0) fail(fmt::format("--node-rank {} needs --nnodes", result_.node_rank));
      return;
    }
    if (standalone_) fail("--standalone means one node; leave out --nnodes or --standalone");
    if (!node_rank_ || !has_master_address_ || result_.master_port == 0)
      fail(
          fmt::format("--nnodes {}: tuttirun is started by hand on each node, with --node-rank, --master-addr and "
                      "--master-port (not 0)",
                      result_.nodes));
    if (result_.node_rank >= result_.nodes)
      fail(fmt::format("--node-rank {} is outside of --nnodes {}: nodes count from 0", result_.node_rank,
                       result_.nodes));
    if (result_.ranks == 0) fail("several nodes need the same number of ranks on each: give -n");
  }

  std::string help() const {
    std::string text = app_.help();
    const std::string options = "[OPTIONS]";
    if (const std::size_t at = text.find(options); at != std::string::npos)
      text.replace(at, options.size(), "[OPTIONS] PROGRAM [ITS OWN ARGUMENTS]");
    for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
    return text;
  }

  CLI::App app_;
  std::string group_;
  std::vector<std::string> names_;
  RunOptions result_;
  std::optional<int> node_rank_, restarts_, ranks_most_;
  bool has_master_address_ = false, has_no_prefix_ = false, standalone_ = false;
  bool wants_help_ = false, wants_version_ = false;
};

}  // namespace

Parsed parse_options(std::string_view name, std::span<const std::string> words) {
  return CommandLine(name).parse(words);
}

}  // namespace tutti::launch
