// meet.cpp: finding the other ranks as init() was asked to.
// SPDX-License-Identifier: Apache-2.0
#include "group/meet.hpp"

#include <optional>
#include <variant>

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "group/asked_backend.hpp"
#include "mpi/communicator_board.hpp"
#include "rendezvous/connect.hpp"
#include "rendezvous/detect.hpp"

namespace tutti {

namespace {

struct Around {
  Environment environment = Environment::of_process();
  Log log{Log::level_from(environment)};
};

std::shared_ptr<Connector> meet_on_communicator(const InitOptions& options, const mpi::OnCommunicator& what) {
  const rendezvous::Detected detected = mpi::detect_communicator(what);
  return rendezvous::connect(
      detected, {.environment = what.environment, .clock = steady_clock(), .log = what.log.for_rank(detected.rank)},
      deadline_after(steady_clock().now(), options.timeout));
}

/// The size of a job on the backend mpi whose ranks would meet by PMIx, which its MPI cannot bear: they meet on MPI_COMM_WORLD. Nothing: they
/// meet as always.
std::optional<int> size_to_meet_on_mpi(const InitOptions& options, const Environment& environment) {
  const bool is_placed = !options.init_method.empty() || options.rank >= 0 || options.size >= 0;
  if (is_placed || backend_from(options, environment) != "mpi") return std::nullopt;
  const rendezvous::Detected detected = rendezvous::detect(environment);
  const bool meets_by_pmix = std::holds_alternative<rendezvous::RecordInPmix>(detected.meeting);
  if (!meets_by_pmix || !mpi::must_precede_pmix(environment)) return std::nullopt;
  return detected.size;
}

}  // namespace

std::shared_ptr<Connector> connect_as_asked(const InitOptions& options) {
  const Around around;
  if (!options.mpi_communicator) {
    const auto size = size_to_meet_on_mpi(options, around.environment);
    if (!size) return connect(options);
    return meet_on_communicator(options, {.size = *size, .environment = around.environment, .log = around.log});
  }
  if (!options.init_method.empty() || options.rank >= 0 || options.size >= 0) {
    throw InvalidArgument(
        "init: a communicator says who the ranks are and where they meet; leave init_method, rank and size out");
  }
  return meet_on_communicator(
      options, {.communicator = *options.mpi_communicator, .environment = around.environment, .log = around.log});
}

}  // namespace tutti
