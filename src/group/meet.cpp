// meet.cpp: finding the other ranks as init() was asked to.
// SPDX-License-Identifier: Apache-2.0
#include "group/meet.hpp"

#include <tutti/error.hpp>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "mpi/communicator_board.hpp"
#include "rendezvous/connect.hpp"

namespace tutti {

std::shared_ptr<Connector> connect_as_asked(const InitOptions& options) {
  if (!options.mpi_communicator) return connect(options);
  if (!options.init_method.empty() || options.rank >= 0 || options.size >= 0) {
    throw InvalidArgument(
        "init: a communicator says who the ranks are and where they meet; leave init_method, rank and size out");
  }
  const Environment environment = Environment::of_process();
  const Log log(Log::level_from(environment));
  const rendezvous::Detected detected =
      mpi::detect_communicator({.communicator = *options.mpi_communicator, .environment = environment, .log = log});
  return rendezvous::connect(detected,
                             {.environment = environment, .clock = steady_clock(), .log = log.for_rank(detected.rank)},
                             deadline_after(steady_clock().now(), options.timeout));
}

}  // namespace tutti
