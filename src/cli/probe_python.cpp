// probe_python.cpp: the active Python and the frameworks installed in it.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/capture.hpp"
#include "cli/probes.hpp"

namespace tutti::cli {

namespace {

using namespace std::chrono_literals;

struct Framework {
  const char* name;
  const char* distributions;  // the names under which it is installed, the usual one first
};
constexpr Framework frameworks[] = {
    {"NumPy", "numpy"},
    {"PyTorch", "torch"},
    {"JAX", "jax"},
    {"TensorFlow", "tensorflow tensorflow-cpu tensorflow-intel tf-nightly"},
};

// Python starts in 20 ms and reads metadata in a few more; a cold network disk takes seconds.
constexpr Duration time_limit = 10s;

// Nothing is imported from the current folder, where a json.py of the user's may lie.
constexpr const char* python_program = R"(
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import json, platform
from importlib import metadata
def version(names):
    for name in names.split():
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
print(json.dumps([platform.python_version(), sys.executable] + [version(names) for names in sys.argv[1:]]))
)";

std::string active_python(const Environment& environment) {
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const auto folder = environment.get(variable);
    if (!folder || folder->empty()) continue;
    const std::string path = *folder + "/bin/python";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "python3";
}

std::string text_of(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : ""; }

}  // namespace

PythonFacts probe_python(const Environment& environment) {
  PythonFacts facts{.path = active_python(environment)};
  std::vector<std::string> command{facts.path, "-c", python_program};
  for (const Framework& framework : frameworks) command.emplace_back(framework.distributions);
  const Captured captured = capture(command, time_limit);
  facts.problem = captured.problem;
  const auto answer = nlohmann::json::parse(captured.output, nullptr, /*allow_exceptions=*/false);
  const bool understood = answer.is_array() && answer.size() == 2 + std::size(frameworks);
  if (understood) {
    facts.version = text_of(answer[0]);
    if (const std::string path = text_of(answer[1]); !path.empty()) facts.path = path;
  } else if (facts.problem.empty()) {
    facts.problem = fmt::format("{} gave no answer that can be read", facts.path);
  }
  for (std::size_t i = 0; i < std::size(frameworks); ++i) {
    FrameworkFacts& framework = facts.frameworks.emplace_back(FrameworkFacts{.name = frameworks[i].name});
    if (understood) framework.version = text_of(answer[i + 2]);
    if (framework.version.empty()) framework.reason = understood ? "not installed" : "no Python to ask";
  }
  return facts;
}

}  // namespace tutti::cli
