// hosts.cpp: parses -H and hostfiles.
// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "base/environment.hpp"
#include "base/printable.hpp"
#include "launch/options.hpp"
#include "launch/suggest.hpp"

namespace tutti::launch {
namespace {

constexpr int slots_max = 16384;
constexpr std::size_t hostfile_bytes_max = std::size_t{16} << 20;

// Where a mistake is: "-H", or "hosts.txt, line 3".
using Where = std::string;

[[noreturn]] void fail(const Where& where, const std::string& what) {
  throw UsageError(fmt::format("{}: {}", where, what));
}

int slot_count(const Where& where, std::string_view text) {
  const auto value = parse_integer(text);
  if (!value || *value < 1 || *value > slots_max)
    fail(where, fmt::format("slots are a number from 1 to {}, not \"{}\"", slots_max, printable_text(text)));
  return static_cast<int>(*value);
}

// Whatever a remote shell could take for an option, or a shell for more than a word, is no name.
void check_name(const Where& where, std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:%";
  if (name.empty() || name.ends_with('@')) fail(where, "the name of a host is missing");
  const std::string_view host = short_name(name);
  if (name.starts_with('-') || host.starts_with('-') || name.find_first_not_of(allowed) != std::string_view::npos)
    fail(where, fmt::format("\"{}\" is no name of a host", printable_text(name)));
}

// "a:8", "a", "[fd00::1]:8", "fd00::1".
Host parse_host(const Where& where, std::string_view text) {
  Host host;
  std::string_view slots;
  const std::size_t bracket = text.find('[');
  const std::size_t end = text.find(']');
  if (bracket != std::string_view::npos && end != std::string_view::npos && bracket < end) {
    host.name = fmt::format("{}{}", text.substr(0, bracket), text.substr(bracket + 1, end - bracket - 1));
    slots = text.substr(end + 1);
    if (!slots.empty() && !slots.starts_with(':'))
      fail(where, fmt::format("\"{}\": write [ADDRESS]:SLOTS", printable_text(text)));
  } else {
    const std::size_t colon = text.find(':');
    const bool is_ipv6 = colon != std::string_view::npos && text.find(':', colon + 1) != std::string_view::npos;
    host.name = text.substr(0, is_ipv6 ? text.size() : std::min(colon, text.size()));
    if (!is_ipv6 && colon != std::string_view::npos) slots = text.substr(colon);
  }
  if (!slots.empty()) host.slots = slot_count(where, slots.substr(1));
  check_name(where, host.name);
  return host;
}

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line.substr(0, line.find('#')))};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

void read_attribute(const Where& where, const std::string& word, Host& host) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  if (equals != std::string::npos && name == "slots") {
    if (host.slots != 0) fail(where, fmt::format("the slots of {} are said twice", host.name));
    host.slots = slot_count(where, std::string_view(word).substr(equals + 1));
    return;
  }
  // Where Open MPI stops oversubscribing. Ranks never exceed slots here.
  if (equals != std::string::npos && (name == "max_slots" || name == "max-slots")) {
    slot_count(where, std::string_view(word).substr(equals + 1));
    return;
  }
  const std::vector<std::string> known = {"slots", "max_slots"};
  const std::string near = nearest(name, known);
  fail(where, fmt::format("\"{}\" is not understood; a line is NAME slots=N{}", printable_text(word),
                          near.empty() ? "" : fmt::format("; did you mean {}=N?", near)));
}

}  // namespace

std::string_view short_name(std::string_view host) {
  const std::size_t at = host.rfind('@');
  return at == std::string_view::npos ? host : host.substr(at + 1);
}

std::vector<Host> parse_host_list(std::string_view text) {
  std::vector<Host> hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const Host host = parse_host("-H", text.substr(begin, end - begin));
    const auto found = std::ranges::find(hosts, host.name, &Host::name);
    if (found == hosts.end()) {
      hosts.push_back(host);
    } else {
      found->slots = std::max(found->slots, 1) + std::max(host.slots, 1);
    }
    begin = end + 1;
  }
  return hosts;
}

std::vector<Host> parse_hostfile(std::string_view text, const std::string& path) {
  std::vector<Host> hosts;
  int number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::vector<std::string> words = words_of(text.substr(begin, end - begin));
    const Where where = fmt::format("{}, line {}", path, ++number);
    begin = end + 1;
    if (words.empty()) continue;
    Host host = parse_host(where, words.front());
    for (std::size_t i = 1; i < words.size(); ++i) read_attribute(where, words[i], host);
    if (std::ranges::find(hosts, host.name, &Host::name) != hosts.end())
      fail(where, fmt::format("host {} is there twice; give it one line with all its slots", host.name));
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw UsageError(fmt::format("{}: there is no host in it; a line is NAME slots=N", path));
  return hosts;
}

std::vector<Host> read_hostfile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text, line;
  while (text.size() <= hostfile_bytes_max && std::getline(file, line)) text.append(line).push_back('\n');
  if (errno != 0) throw UsageError(fmt::format("--hostfile {}: {}", path, std::generic_category().message(errno)));
  if (text.size() > hostfile_bytes_max) throw UsageError(fmt::format("--hostfile {}: it is no list of hosts", path));
  return parse_hostfile(text, path);
}

void deal_ranks(std::vector<Host>& hosts, int per_host) {
  if (per_host == 0) return;
  for (Host& host : hosts) {
    if (host.slots != 0 && host.slots < per_host)
      throw UsageError(fmt::format("-n {}: host {} has {} slot{}; ask for fewer ranks, or give it more slots", per_host,
                                   host.name, host.slots, host.slots == 1 ? "" : "s"));
    host.slots = per_host;
  }
}

}  // namespace tutti::launch
