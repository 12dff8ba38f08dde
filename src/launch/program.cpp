// program.cpp: looks the program up before anything is started, so that mistakes are found once and not once per rank.
// SPDX-License-Identifier: Apache-2.0
#include "launch/program.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>

namespace tutti::launch {
namespace {

bool is_file(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_executable(const std::string& path) { return is_file(path) && access(path.c_str(), X_OK) == 0; }

std::optional<std::string> in_path(const std::string& name, const Environment& environment) {
  const std::string path = environment.get("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = path.substr(begin, end - begin);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;  // an empty entry is the current folder
    if (is_executable(candidate)) return candidate;
    begin = end + 1;
  }
  return std::nullopt;
}

std::string find_python(const Environment& environment) {
  if (const auto active = environment.get("VIRTUAL_ENV"); active && !active->empty()) {
    std::string python = *active + "/bin/python";
    if (is_executable(python)) return python;
  }
  for (const char* name : {"python3", "python"}) {
    if (auto python = in_path(name, environment)) return *python;
  }
  throw UsageError("no Python was found: neither $VIRTUAL_ENV/bin/python nor python3 in PATH; activate an environment");
}

std::string reason(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return errno == ENOENT ? "there is no such file" : std::generic_category().message(errno);
  }
  if (S_ISDIR(status.st_mode)) return "it is a folder";
  if (!S_ISREG(status.st_mode)) return "it is not a file";
  return fmt::format("it is not executable; chmod +x {}", path);
}

std::string find_executable(const std::string& name, const Environment& environment) {
  if (name.empty()) throw UsageError("the name of the program is empty");
  if (name.find('/') != std::string::npos) {
    if (!is_executable(name)) throw UsageError(fmt::format("cannot start {}: {}", name, reason(name)));
    return name;
  }
  if (auto found = in_path(name, environment)) return *found;
  if (is_executable(name))
    throw UsageError(fmt::format("cannot start {0}: it is not in PATH; the one in this folder is ./{0}", name));
  throw UsageError(fmt::format("cannot start {}: there is no such program in PATH", name));
}

Program python_program(const RunOptions& options, const Environment& environment) {
  if (!options.is_module) {
    if (!is_file(options.program))
      throw UsageError(fmt::format("cannot start {}: {}", options.program, reason(options.program)));
    if (access(options.program.c_str(), R_OK) != 0)
      throw UsageError(fmt::format("cannot start {}: it is not readable", options.program));
  }
  const std::string python =
      options.python.empty() ? find_python(environment) : find_executable(options.python, environment);
  // Unbuffered, as torchrun does it: the output of a killed rank is complete.
  Program program{.path = python, .words = {python, "-u"}};
  if (options.is_module) program.words.emplace_back("-m");
  program.words.push_back(options.program);
  return program;
}

}  // namespace

std::string find_command(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos) return name;
  return in_path(name, environment).value_or(name);
}

Program find_program(const RunOptions& options, const Environment& environment) {
  const bool is_python = options.is_module || (options.program.ends_with(".py") && !options.is_never_python);
  Program program = is_python
                        ? python_program(options, environment)
                        : Program{.path = find_executable(options.program, environment), .words = {options.program}};
  program.words.insert(program.words.end(), options.arguments.begin(), options.arguments.end());
  return program;
}

}  // namespace tutti::launch
