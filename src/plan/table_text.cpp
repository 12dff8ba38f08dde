// table_text.cpp: the selection table as text, for files and for handing it from rank 0 to all.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include <tutti/error.hpp>

#include "plan/select.hpp"

namespace tutti {

namespace {

using Json = nlohmann::ordered_json;

Json link_json(const CostModel::Link& link) {
  return {{"latency", link.latency}, {"seconds_per_byte", link.seconds_per_byte}};
}

double number(const Json& object, const char* name, double otherwise) {
  const double value = object.value(name, otherwise);
  if (!(value >= 0)) throw InvalidArgument(fmt::format("selection table: {} must not be negative", name));
  return value;
}

CostModel::Link link_from(const Json& model, const char* name, const CostModel::Link& otherwise) {
  if (!model.contains(name)) return otherwise;
  const Json& link = model.at(name);
  return {.latency = number(link, "latency", otherwise.latency),
          .seconds_per_byte = number(link, "seconds_per_byte", otherwise.seconds_per_byte)};
}

TableRow row_from(const Json& json) {
  TableRow row;
  row.verb = verb_from_name(json.at("verb").get<std::string>());
  row.choice.algorithm = algorithm_from_name(json.at("algorithm").get<std::string>());
  if (find_algorithm(row.verb, row.choice.algorithm) == nullptr) {
    throw InvalidArgument(
        fmt::format("the algorithm {} does not serve {}", name_of(row.choice.algorithm), name_of(row.verb)));
  }
  row.choice.segment_bytes = json.value("segment_bytes", row.choice.segment_bytes);
  row.ranks_min = json.value("ranks_min", row.ranks_min);
  row.ranks_max = json.value("ranks_max", row.ranks_max);
  row.bytes_min = json.value("bytes_min", row.bytes_min);
  row.bytes_max = json.value("bytes_max", row.bytes_max);
  if (row.choice.segment_bytes < 0) throw InvalidArgument("segment_bytes must not be negative");
  return row;
}

SharedLimits limits_from(const Json& json) {
  SharedLimits limits;
  for (const auto& item : json.items()) {
    const std::string& name = item.key();
    const Json& value = item.value();
    const auto* known = std::find_if(shared_limits.begin(), shared_limits.end(),
                                     [&](const SharedLimit& limit) { return limit.name == name; });
    if (known == shared_limits.end()) {
      std::vector<std::string_view> names;
      for (const SharedLimit& limit : shared_limits) names.push_back(limit.name);
      throw InvalidArgument(fmt::format(
          "selection table: shared memory has no limit \"{}\"; it has {}. tutti tune writes a table for this version",
          name, fmt::join(names, ", ")));
    }
    if (!value.is_number_integer() || value < known->least || value > known->most) {
      throw InvalidArgument(fmt::format("selection table: {} is {}; it must be a whole number, at least {}{}", name,
                                        value.dump(), known->least,
                                        known->most == any_bytes ? "" : fmt::format(" and at most {}", known->most)));
    }
    limits.*known->value = value.get<std::int64_t>();
  }
  return limits;
}

Json limits_json(const SharedLimits& limits) {
  Json json = Json::object();
  for (const SharedLimit& limit : shared_limits) json[std::string(limit.name)] = limits.*limit.value;
  return json;
}

}  // namespace

std::string to_text(const Table& table) {
  Json json;
  json["model"] = {
      {"inside", link_json(table.model.inside)}, {"between", link_json(table.model.between)},
      {"overhead", table.model.overhead},        {"incast", table.model.incast},
      {"queue_bytes", table.model.queue_bytes},  {"reduce_seconds_per_byte", table.model.reduce_seconds_per_byte}};
  json["shared"] = limits_json(table.shared);
  json["rows"] = Json::array();
  for (const TableRow& row : table.rows) {
    Json out{{"verb", name_of(row.verb)}, {"algorithm", name_of(row.choice.algorithm)}};
    if (row.choice.segment_bytes != 0) out["segment_bytes"] = row.choice.segment_bytes;
    if (row.ranks_min != TableRow{}.ranks_min) out["ranks_min"] = row.ranks_min;
    if (row.ranks_max != TableRow{}.ranks_max) out["ranks_max"] = row.ranks_max;
    if (row.bytes_min != TableRow{}.bytes_min) out["bytes_min"] = row.bytes_min;
    if (row.bytes_max != TableRow{}.bytes_max) out["bytes_max"] = row.bytes_max;
    json["rows"].push_back(std::move(out));
  }
  return json.dump(2);
}

Table table_from_text(std::string_view text) {
  Table table;
  std::size_t row = 0;
  try {
    const Json json = Json::parse(text);
    if (json.contains("model")) {
      const Json& model = json.at("model");
      table.model.inside = link_from(model, "inside", table.model.inside);
      table.model.between = link_from(model, "between", table.model.between);
      table.model.overhead = number(model, "overhead", table.model.overhead);
      table.model.incast = number(model, "incast", table.model.incast);
      table.model.queue_bytes = number(model, "queue_bytes", table.model.queue_bytes);
      table.model.reduce_seconds_per_byte =
          number(model, "reduce_seconds_per_byte", table.model.reduce_seconds_per_byte);
    }
    if (json.contains("shared")) table.shared = limits_from(json.at("shared"));
    if (!json.contains("rows")) return table;
    for (const Json& entry : json.at("rows")) {
      ++row;
      table.rows.push_back(row_from(entry));
    }
  } catch (const Json::exception& error) {
    throw InvalidArgument(
        fmt::format("selection table{}: {}", row > 0 ? fmt::format(", row {}", row) : "", error.what()));
  } catch (const InvalidArgument& error) {
    if (row == 0) throw;
    throw InvalidArgument(fmt::format("selection table, row {}: {}", row, error.what()));
  }
  return table;
}

}  // namespace tutti
