// remote_shell.cpp: ssh and its like.
// SPDX-License-Identifier: Apache-2.0
#include "launch/remote_shell.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "launch/cause.hpp"
#include "launch/dry_run.hpp"
#include "launch/hosts.hpp"
#include "launch/options.hpp"

namespace tutti::launch {
namespace {

constexpr int status_not_found = 127;  // as a shell says it

struct KnownTrouble {
  std::string_view words;  // in what ssh says
  std::string_view meaning;
  std::string_view advice;  // {0}: the host, {1}: the remote shell
};

constexpr std::array known_troubles = {
    KnownTrouble{"Could not resolve hostname", "its name does not resolve",
                 "check the spelling, /etc/hosts and the name server"},
    KnownTrouble{"Permission denied", "it refuses the key",
                 "try {1} {0} true; ssh-copy-id {0} installs a key, ssh-add loads one"},
    KnownTrouble{"Host key verification failed", "its host key is not known here, or has changed",
                 "connect once by hand, {1} {0}, and compare the key"},
    KnownTrouble{"Connection refused", "nobody listens on its ssh port",
                 "start sshd there, or name the port: --ssh \"ssh -p PORT\""},
    KnownTrouble{"timed out", "it does not answer", "check that it is up and that no firewall is between"},
    KnownTrouble{"No route to host", "there is no route to it", "check that it is up, and the network"},
    KnownTrouble{"Network is unreachable", "there is no route to it", "check the network of this host"},
};

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  const std::size_t newline = text.rfind('\n');
  return printable_text(newline == std::string_view::npos ? text : text.substr(newline + 1));
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::vector<std::string> split_shell_words(std::string_view option, std::string_view text) {
  std::vector<std::string> words;
  bool is_inside_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_blank = quote == 0 && (c == ' ' || c == '\t' || c == '\n');
    if (!is_blank && !is_inside_word) words.emplace_back();
    is_inside_word = !is_blank;
    if (is_blank) continue;
    if (quote == 0 ? (c == '\'' || c == '"') : c == quote) {
      quote = quote == 0 ? c : '\0';
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back().push_back(text[++i]);
    } else {
      words.back().push_back(c);
    }
  }
  if (quote != 0) throw UsageError(fmt::format("{} {}: a quotation mark is missing", option, text));
  if (words.empty() || words.front().empty()) throw UsageError(fmt::format("{}: no command was given", option));
  return words;
}

bool is_own_name(std::string_view name) {
  if (name == "localhost" || name == "127.0.0.1" || name == "::1") return true;
  std::array<char, HOST_NAME_MAX + 1> own{};
  if (gethostname(own.data(), own.size() - 1) != 0) return false;
  const std::string_view full = own.data();
  return name == full || name == full.substr(0, full.find('.'));
}

std::vector<std::string> remote_words(const std::vector<std::string>& shell, const std::string& host,
                                      const std::string& script) {
  std::vector<std::string> words = shell;
  // No question can be answered, since there is no terminal. A connection that others share may be used, but ours must
  // not stay behind as the one that they share.
  if (base_name(shell.front()) == "ssh") {
    for (const char* option : {"BatchMode=yes", "ConnectTimeout=8", "ControlMaster=no"})
      words.insert(words.end(), {"-o", option});
    words.insert(words.end(), {"-T", "-x"});
  }
  if (base_name(shell.front()) == "srun") {  // it executes words, and takes the host as an option
    words.insert(words.end(), {"--nodelist=" + host, "/bin/sh", "-c", script});
  } else {
    words.insert(words.end(), {host, fmt::format("exec /bin/sh -c {}", quoted(script))});
  }
  return words;
}

std::vector<std::string> remote_command(const std::vector<std::string>& shell, const std::string& host,
                                        const std::string& tuttirun) {
  return remote_words(shell, host,
                      fmt::format("p={}; [ -x \"$p\" ] || p=$(command -v tuttirun) || exit {}; exec \"$p\" --agent",
                                  quoted(tuttirun), status_not_found));
}

std::string explain_end(const ShellEnd& end) {
  const std::string said = last_line(end.errors);
  for (const KnownTrouble& trouble : known_troubles) {
    if (end.errors.find(trouble.words) != std::string::npos)
      return fmt::format("{} ({}); {}", trouble.meaning, said,
                         fmt::format(fmt::runtime(trouble.advice), end.host, end.command));
  }
  if (WIFEXITED(end.status) && WEXITSTATUS(end.status) == status_not_found && said.empty())
    return fmt::format(
        "there is no tuttirun, neither {} nor in PATH; install Tutti there, or say where it is with --remote-tuttirun",
        end.tuttirun);
  const std::string how = WIFSIGNALED(end.status) ? "was killed by signal " + describe_signal(WTERMSIG(end.status))
                                                  : fmt::format("ended with status {}", WEXITSTATUS(end.status));
  return fmt::format("{} {}{}{}", end.command, how, said.empty() ? "" : ": ", said);
}

}  // namespace tutti::launch
