// report_json.cpp: the facts of `tutti doctor` as JSON.
// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cli/report.hpp"

namespace tutti::cli {

namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Empty text means that there is nothing to say.
Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

template <class List, class Convert>
Json list_of(const List& list, Convert convert) {
  Json all = Json::array();
  for (const auto& entry : list) all.push_back(convert(entry));
  return all;
}

Json json_of(const BuildFacts& build) {
  return {{"version", build.version},
          {"type", build.type},
          {"compiler", build.compiler},
          {"flags", build.flags},
          {"vector_target", build.vector_target},
          {"vector_targets", build.vector_targets}};
}

Json json_of(const MachineFacts& machine) {
  return {{"host", machine.host},
          {"system", machine.system},
          {"processor", machine.processor},
          {"packages", machine.packages},
          {"numa_nodes", machine.numa_nodes},
          {"cores", machine.cores},
          {"threads", machine.threads},
          {"usable_threads", machine.usable_threads},
          {"cpu_quota", or_null(machine.cpu_quota)},
          {"caches", list_of(machine.caches, [](const CacheFacts& cache) {
             return Json{{"level", cache.level}, {"kind", cache.kind}, {"bytes", cache.bytes}, {"count", cache.count}};
           })}};
}

Json json_of(const MemoryFacts& memory) {
  return {{"total", memory.total},
          {"available", memory.available},
          {"cgroup_limit", or_null(memory.cgroup_limit)},
          {"cgroup_used", or_null(memory.cgroup_used)},
          {"locked_limit", or_null(memory.locked_limit)},
          {"address_space_limit", or_null(memory.address_space_limit)},
          {"open_files_limit", or_null(memory.open_files_limit)}};
}

Json json_of(const NetworkFacts& network) {
  return {{"interfaces",
           list_of(network.interfaces,
                   [](const InterfaceFacts& entry) {
                     return Json{{"name", entry.name}, {"address", entry.address},   {"prefix_bits", entry.prefix_bits},
                                 {"up", entry.up},     {"loopback", entry.loopback}, {"internal", entry.internal}};
                   })},
          {"used_between_hosts", text_or_null(network.used_between_hosts)},
          {"used_on_one_host", text_or_null(network.used_on_one_host)},
          {"wish", text_or_null(network.wish)},
          {"problem", text_or_null(network.problem)},
          {"identity", text_or_null(network.identity)},
          {"loopback_problem", text_or_null(network.loopback_problem)}};
}

Json json_of(const PythonFacts& python) {
  return {{"path", python.path},
          {"version", text_or_null(python.version)},
          {"problem", text_or_null(python.problem)},
          {"frameworks", list_of(python.frameworks, [](const FrameworkFacts& framework) {
             return Json{{"name", framework.name},
                         {"version", text_or_null(framework.version)},
                         {"reason", text_or_null(framework.reason)}};
           })}};
}

}  // namespace

std::string to_json(const Facts& facts) {
  const Json json{
      {"build", json_of(facts.build)},
      {"machine", json_of(facts.machine)},
      {"memory", json_of(facts.memory)},
      {"shared_memory",
       {{"memfd_problem", text_or_null(facts.shared_memory.memfd_problem)},
        {"shm_problem", text_or_null(facts.shared_memory.shm_problem)},
        {"shm_total", facts.shared_memory.shm_total},
        {"shm_available", facts.shared_memory.shm_available}}},
      {"cross_memory",
       {{"problem", text_or_null(facts.cross_memory.problem)},
        {"ptrace_scope", or_null(facts.cross_memory.ptrace_scope)}}},
      {"clock",
       {{"source", facts.clock.source},
        {"others", facts.clock.others},
        {"resolution_ns", facts.clock.resolution_ns},
        {"smallest_step_ns", facts.clock.smallest_step_ns}}},
      {"network", json_of(facts.network)},
      {"backends",
       list_of(facts.backends,
               [](const BackendFacts& backend) {
                 return Json{{"name", backend.name}, {"available", backend.available}, {"detail", backend.detail}};
               })},
      {"python", json_of(facts.python)},
      {"launcher",
       {{"launcher", text_or_null(facts.launcher.launcher)},
        {"rank", facts.launcher.rank},
        {"size", facts.launcher.size},
        {"meeting", text_or_null(facts.launcher.meeting)},
        {"secret", text_or_null(facts.launcher.secret)},
        {"problem", text_or_null(facts.launcher.problem)}}},
      {"table",
       {{"path", text_or_null(facts.table.path)},
        {"rows", facts.table.rows},
        {"limits", facts.table.limits},
        {"problem", text_or_null(facts.table.problem)}}},
      {"problems", problems(facts)}};
  // File names and the like may hold bytes that are no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace tutti::cli
