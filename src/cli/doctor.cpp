// doctor.cpp: `tutti doctor`.
// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.hpp"

#include <unistd.h>

#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/probes.hpp"
#include "cli/report.hpp"
#include "launch/command.hpp"

namespace tutti::cli {

void add_doctor(CLI::App& tutti) {
  struct Options {
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* doctor = tutti.add_subcommand("doctor", "What is there, which backends work, and why the others do not");
  doctor->add_flag("--json", options->json, "One JSON object instead of a page");
  doctor->footer(launch::examples({{"tutti doctor", "one page"},
                                   {"tutti doctor --json | jq .network", "for programs"},
                                   {"tuttirun -n 1 tutti doctor", "as a rank sees it: launcher, limits, cores"}}) +
                 "\n\nStatus: 0 if init would work here, 1 if not; the lines marked ✗ say why.");
  doctor->callback([options] {
    const Environment environment = Environment::of_process();
    const Facts facts = probe_all(environment);
    fmt::print("{}", options->json ? to_json(facts) : to_text(facts, Style::for_output(environment, STDOUT_FILENO)));
    if (!problems(facts).empty()) throw CLI::RuntimeError(1);
  });
}

}  // namespace tutti::cli
