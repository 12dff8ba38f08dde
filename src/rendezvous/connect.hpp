// connect.hpp: tutti::connect with all dependencies passed in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <tutti/connector.hpp>

#include "rendezvous/detect.hpp"
#include "rendezvous/meeting.hpp"

namespace tutti::rendezvous {

// Combines the options and the environment. No side effects. InvalidArgument if they contradict each other.
Detected read_options(const InitOptions& options, const Environment& environment);

std::unique_ptr<Connector> connect(const InitOptions& options, const Surroundings& surroundings);
// As the caller knows by itself who it is and where the ranks meet.
std::unique_ptr<Connector> connect(const Detected& detected, const Surroundings& surroundings, TimePoint deadline);

}  // namespace tutti::rendezvous
