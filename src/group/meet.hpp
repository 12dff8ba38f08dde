// meet.hpp: finding the other ranks as init() was asked to: through the launcher, or on a communicator of MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <tutti/connector.hpp>

namespace tutti {

/// As connect(), and also on InitOptions::mpi_communicator.
std::shared_ptr<Connector> connect_as_asked(const InitOptions& options);

}  // namespace tutti
