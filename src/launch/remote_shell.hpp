// remote_shell.hpp: how an agent is started on another host, and what went wrong if it was not.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tutti::launch {

// Splits as a shell does: blanks, '…', "…" and \. Throws UsageError for quotes that do not end, or no word at all.
std::vector<std::string> split_shell_words(std::string_view option, std::string_view text);

// Whether a name means this host, whatever others call it.
bool is_own_name(std::string_view name);

// The command that has a host's shell run a script: the remote shell, its options, the host, one word for the shell there.
std::vector<std::string> remote_words(const std::vector<std::string>& shell, const std::string& host,
                                      const std::string& script);

// The command that starts an agent on a host. ssh is told to ask for nothing, to forward nothing and not to wait long. Nothing secret is in it.
std::vector<std::string> remote_command(const std::vector<std::string>& shell, const std::string& host,
                                        const std::string& tuttirun);

struct ShellEnd {
  std::string command = {};  // the remote shell's name
  std::string host = {};
  std::string errors = {};  // what it wrote to its standard error, the end of it
  int status = 0;           // as waitpid says it
  std::string tuttirun = {};
};

// Why there is no agent: what happened and what to try, as a clause.
std::string explain_end(const ShellEnd& end);

}  // namespace tutti::launch
