// error.hpp: the errors, one type per kind. docs/errors.md says when each is thrown and what to do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace tutti {

/// Base of every error that the library throws. The text says which rank, which call, why, and what to try.
class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The caller's mistake, found on this rank before any byte was sent. The group stays usable.
class InvalidArgument : public Error {
  using Error::Error;
};

/// Ranks asked for different things in the same call. The group is broken.
class Mismatch : public Error {
  using Error::Error;
};

/// A deadline passed. From `wait(timeout)` it only means "not yet"; from a request's own deadline the group is broken.
class Timeout : public Error {
  using Error::Error;
};

/// A member of the group is gone. Every group that contains it is broken; not if it only left without having received a message.
class PeerLost : public Error {
 public:
  PeerLost(const std::string& text, int rank, std::string host, std::string reason)
      : Error(text), rank_(rank), host_(std::move(host)), reason_(std::move(reason)) {}
  /// Its rank in the world.
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  int rank_;
  std::string host_, reason_;
};

/// A rank called abort(), rejected its part of the call, or ended the job.
class Aborted : public Error {
  using Error::Error;
};

/// The ranks could not find each other.
class RendezvousError : public Error {
  using Error::Error;
};

/// The other side does not know the job's secret, or is not a Tutti rank at all.
class AuthenticationError : public Error {
  using Error::Error;
};

/// Asked for something this build or this machine does not have.
class Unsupported : public Error {
  using Error::Error;
};

}  // namespace tutti
