// report_text.cpp: the facts of `tutti doctor` as text, on one screen.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/environment.hpp"
#include "cli/report.hpp"

namespace tutti::cli {

namespace {

enum class Mark { good, plain, warning, bad };

constexpr std::size_t name_width = 12;
constexpr std::size_t interfaces_max = 6;

class Page {
 public:
  explicit Page(const Style& style) : style_(style) {}

  void title(const std::string& text) { text_ += style_.paint(Tone::bold, text) + '\n'; }
  void section(const std::string& text) {
    text_ += '\n';
    title(text);
  }
  void line(Mark mark, const std::string& name, const std::string& text) {
    struct Look {
      const char* sign;
      Tone tone;
    };
    constexpr Look looks[] = {{"✓", Tone::green}, {"·", Tone::dim}, {"!", Tone::yellow}, {"✗", Tone::red}};
    const Look& look = looks[static_cast<int>(mark)];
    const std::string shown = mark == Mark::bad || mark == Mark::warning ? style_.paint(look.tone, text) : text;
    text_ += fmt::format("  {} {} {}\n", style_.paint(look.tone, look.sign), pad(name, name_width), shown);
  }
  /// Good with `fine`, or a warning that gives the problem.
  void check(const std::string& name, const std::string& problem, const std::string& fine) {
    line(problem.empty() ? Mark::good : Mark::warning, name, problem.empty() ? fine : problem);
  }
  void end(Tone tone, const std::string& text) { text_ += '\n' + style_.paint(tone, text) + '\n'; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const Style& style_;
  std::string text_;
};

std::string counted(int count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string limit_text(const std::optional<std::int64_t>& limit) { return limit ? format_bytes(*limit) : "unlimited"; }

void add_build(Page& page, const BuildFacts& build) {
  page.title(fmt::format("Tutti {} · {} build · {}{}{}", build.version, build.type, build.compiler,
                         build.flags.empty() ? "" : " · ", build.flags));
  page.line(build.vector_target.empty() ? Mark::warning : Mark::good, "vectors",
            fmt::format("{}, out of {}", build.vector_target.empty() ? "none fits" : build.vector_target,
                        fmt::join(build.vector_targets, " ")));
}

void add_machine(Page& page, const MachineFacts& machine) {
  page.section("Machine");
  page.line(Mark::plain, "host", fmt::format("{} · {}", machine.host, machine.system));
  page.line(Mark::plain, "processor",
            fmt::format("{}{}{}, {}, {}, {}", machine.processor, machine.processor.empty() ? "" : " · ",
                        counted(machine.packages, "socket"), counted(machine.numa_nodes, "NUMA node"),
                        counted(machine.cores, "core"), counted(machine.threads, "thread")));
  std::vector<std::string> caches;
  for (const CacheFacts& cache : machine.caches) {
    caches.push_back(fmt::format("L{}{} {} × {}", cache.level, cache.kind == "data" ? "d" : "",
                                 format_bytes(cache.bytes), cache.count));
  }
  page.line(Mark::plain, "caches", caches.empty() ? "unknown" : fmt::format("{}", fmt::join(caches, " · ")));
  const bool bound = machine.usable_threads < machine.threads;
  page.line(
      bound || machine.cpu_quota ? Mark::warning : Mark::good, "usable",
      fmt::format("{} of {}{}", machine.usable_threads, counted(machine.threads, "thread"),
                  machine.cpu_quota ? fmt::format("; the cgroup gives the time of {:.3g}", *machine.cpu_quota) : ""));
}

void add_memory(Page& page, const MemoryFacts& memory) {
  page.line(Mark::plain, "memory",
            fmt::format("{}, {} available", format_bytes(memory.total), format_bytes(memory.available)));
  if (memory.cgroup_limit) {
    page.line(*memory.cgroup_limit < memory.total ? Mark::warning : Mark::plain, "cgroup",
              fmt::format("at most {}, {} in use", format_bytes(*memory.cgroup_limit),
                          format_bytes(memory.cgroup_used.value_or(0))));
  }
  page.line(memory.address_space_limit ? Mark::warning : Mark::plain, "limits",
            fmt::format("locked {} · address space {} · open files {}", limit_text(memory.locked_limit),
                        limit_text(memory.address_space_limit),
                        memory.open_files_limit ? fmt::format("{}", *memory.open_files_limit) : "unlimited"));
}

std::string scope_text(const std::optional<int>& scope) {
  if (!scope) return "the kernel has no Yama";
  constexpr const char* meanings[] = {"any process of the user", "parents only", "administrators only", "nobody"};
  return fmt::format("ptrace_scope {}: {}", *scope, meanings[std::clamp(*scope, 0, 3)]);
}

void add_processes(Page& page, const Facts& facts) {
  const SharedMemoryFacts& shared = facts.shared_memory;
  page.check("memfd", shared.memfd_problem, "made, mapped and sealed; a local peer can open it");
  page.check("/dev/shm", shared.shm_problem,
             fmt::format("{}, {} free", format_bytes(shared.shm_total), format_bytes(shared.shm_available)));
  const std::string scope = scope_text(facts.cross_memory.ptrace_scope);
  page.check("peer memory",
             facts.cross_memory.problem.empty() ? "" : fmt::format("{} ({})", facts.cross_memory.problem, scope),
             fmt::format("process_vm_readv works ({})", scope));
  const ClockFacts& clock = facts.clock;
  page.line(clock.source == "tsc" || clock.source == "arch_sys_counter" ? Mark::good : Mark::plain, "clock",
            fmt::format("{}, resolution {} ns, steps of {} ns", clock.source.empty() ? "unknown source" : clock.source,
                        clock.resolution_ns, clock.smallest_step_ns));
}

std::string use_of(const NetworkFacts& network, const InterfaceFacts& entry) {
  const bool between = entry.address == network.used_between_hosts, inside = entry.address == network.used_on_one_host;
  if (between && inside) return "   used";
  if (between) return "   used between hosts";
  if (inside) return "   used on one host";
  return !entry.up ? "   down" : entry.internal ? "   joins containers of this host" : "";
}

void add_network(Page& page, const NetworkFacts& network) {
  page.section(network.wish.empty() ? "Network" : fmt::format("Network (TUTTI_INTERFACE={})", network.wish));
  if (!network.problem.empty()) page.line(Mark::bad, "problem", network.problem);
  if (!network.loopback_problem.empty()) page.line(Mark::bad, "loopback", network.loopback_problem);
  else if (!network.identity.empty())
    page.line(Mark::good, "loopback", "works; it joins the ranks that show this network: " + network.identity);
  // Those in use are never the ones left out.
  std::vector<InterfaceFacts> shown = network.interfaces;
  std::stable_partition(shown.begin(), shown.end(), [&](const InterfaceFacts& entry) {
    return entry.address == network.used_between_hosts || entry.address == network.used_on_one_host;
  });
  const std::size_t count = std::min(shown.size(), interfaces_max);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string use = use_of(network, shown[i]);
    page.line(use.find("used") != std::string::npos ? Mark::good : Mark::plain, shown[i].name,
              fmt::format("{}/{}{}", shown[i].address, shown[i].prefix_bits, use));
  }
  if (count < shown.size()) page.line(Mark::plain, "…", fmt::format("{} more", shown.size() - count));
}

// Adjacent rows of the table that are missing for the same reason share a line.
void add_backends(Page& page, const std::vector<BackendFacts>& backends) {
  page.section("Backends");
  for (std::size_t i = 0; i < backends.size();) {
    const BackendFacts& first = backends[i];
    std::vector<std::string> names{first.name};
    for (++i; !first.available && i < backends.size() && !backends[i].available && backends[i].detail == first.detail;
         ++i) {
      names.push_back(backends[i].name);
    }
    if (first.available) page.line(Mark::good, first.name, first.detail);
    else page.line(Mark::plain, "not here", fmt::format("{}: {}", fmt::join(names, ", "), first.detail));
  }
}

void add_python(Page& page, const PythonFacts& python) {
  page.section(python.problem.empty() ? fmt::format("Python {} · {}", python.version, python.path) : "Python");
  if (!python.problem.empty()) page.line(Mark::warning, "python", python.problem);
  for (const FrameworkFacts& framework : python.frameworks) {
    page.line(framework.version.empty() ? Mark::plain : Mark::good, framework.name,
              framework.version.empty() ? "no: " + framework.reason : framework.version);
  }
}

void add_job(Page& page, const LauncherFacts& job, const TableFacts& table) {
  page.section("Job");
  if (!job.problem.empty()) {
    page.line(Mark::bad, "launcher", job.problem);
  } else {
    page.line(Mark::good, "launcher", fmt::format("{}: rank {} of {}", job.launcher, job.rank, job.size));
    page.line(Mark::plain, "meeting", job.meeting);
    page.line(Mark::plain, "secret", job.secret);
  }
  if (!table.problem.empty()) {
    page.line(Mark::bad, "table", table.problem);
  } else {
    page.line(Mark::plain, "table",
              table.path.empty()
                  ? "the built-in cost model (TUTTI_TABLE is not set)"
                  : fmt::format("{}, {}{}{}", table.path, counted(table.rows, "row"),
                                table.limits.empty() ? "" : "; in shared memory ", fmt::join(table.limits, ", ")));
  }
}

}  // namespace

std::vector<std::string> problems(const Facts& facts) {
  std::vector<std::string> found;
  for (const std::string* problem :
       {&facts.network.problem, &facts.network.loopback_problem, &facts.launcher.problem, &facts.table.problem}) {
    if (!problem->empty()) found.push_back(*problem);
  }
  return found;
}

std::string to_text(const Facts& facts, const Style& style) {
  Page page(style);
  add_build(page, facts.build);
  add_machine(page, facts.machine);
  add_memory(page, facts.memory);
  add_processes(page, facts);
  add_network(page, facts.network);
  add_backends(page, facts.backends);
  add_python(page, facts.python);
  add_job(page, facts.launcher, facts.table);
  const std::size_t count = problems(facts).size();
  if (count == 0) page.end(Tone::green, "Nothing stands in the way of tutti::init().");
  else
    page.end(Tone::red,
             fmt::format("tutti::init() would fail: {}, marked ✗.", counted(static_cast<int>(count), "problem")));
  return page.text();
}

}  // namespace tutti::cli
