// meeting.cpp: meeting at the launcher's store or at an address agreed on beforehand.
// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/meeting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include <tutti/error.hpp>

#include "rendezvous/rendezvous.hpp"
#include "rendezvous/store_access.hpp"
#include "store/prefix_store.hpp"
#include "wire/interfaces.hpp"

namespace tutti::rendezvous {

using std::chrono::milliseconds;
using std::chrono::seconds;

Met make_met(const FoundSecret& secret, std::shared_ptr<Store> store, const wire::Address& at, std::string_view how) {
  return {.store = std::move(store),
          .secret = secret.secret,
          .where = fmt::format("rank 0's store at {}{}{}", at.text(), how.empty() ? "" : ", found by ", how),
          .meeting_host = at.host(),
          .secret_source = secret.source,
          .secret_serves_one_machine = secret.serves_one_machine};
}

wire::Address Rendezvous::reachable_address(std::optional<wire::Address> meeting_point) const {
  wire::BindWish wish{.wish = around_.environment.get("TUTTI_INTERFACE").value_or(""),
                      .meeting_point = meeting_point,
                      .route = meeting_point ? wire::route_to(*meeting_point) : std::nullopt};
  if (detected_.on_one_node() && !meeting_point) wish.meeting_point = wire::Address::loopback();
  return wire::choose_address(wire::list_interfaces(), wish);
}

// The key file serves ranks on one machine, so it does where rank 0's address is one of this machine's.
FoundSecret Rendezvous::secret_for(const std::vector<wire::Address>& addresses) const {
  if (auto given = given_secret(around_.environment)) return *std::move(given);
  if (!std::ranges::any_of(addresses, is_local)) {
    throw_no_secret(fmt::format("{} is another machine", addresses.front().host()));
  }
  return given_or_key_file_secret(around_.environment);
}

Met Rendezvous::operator()(const NoRendezvous&) const {
  throw RendezvousError(
      "the launcher names no place to meet; give init_method \"tcp://host:port\" or \"file:///path\"");
}

Met Rendezvous::operator()(const LauncherStore& point) const {
  const auto addresses = wire::resolve(point.where, deadline_);
  const FoundSecret secret = secret_for(addresses);
  auto store = join_store(point.where, secret.secret, deadline_);
  // That store outlives this call, and perhaps this attempt at the job: keys of another life must not be met.
  auto own = prefix_store(std::move(store), fmt::format("job/{}/{}", detected_.job, around_.earlier_connects));
  Met met = make_met(secret, std::move(own), addresses.front());
  met.where = "the launcher's store at " + point.where.text();
  return met;
}

Met Rendezvous::operator()(const FixedAddress& point) const {
  const auto addresses = wire::resolve(point.where, deadline_);
  const FoundSecret secret = secret_for(addresses);
  if (is_root()) return serve_at(point, addresses, secret);
  return join_at(point, addresses.front(), secret);
}

// The server of an earlier init of this very job may still be there: it has another name, or goes while we talk to it.
Met Rendezvous::join_at(const FixedAddress& point, const wire::Address& address, const FoundSecret& secret) const {
  const TimePoint patience = within(seconds(2));
  for (;;) {
    try {
      auto store = join_store(point.where, secret.secret, deadline_);
      if (store->get(nonce_key, deadline_) == meeting_name()) return make_met(secret, std::move(store), address);
    } catch (const AuthenticationError&) {
      if (around_.clock.now() >= patience) throw;
    } catch (const RendezvousError&) {
      if (around_.clock.now() >= deadline_) throw;
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

Met Rendezvous::serve_at(const FixedAddress& point, const std::vector<wire::Address>& addresses,
                         const FoundSecret& secret) const {
  const auto mine = std::ranges::find_if(addresses, is_local);
  if (mine == addresses.end()) {
    throw RendezvousError(
        fmt::format("rank 0 is to be met at {} ({}), which is no address of this machine; start rank 0 "
                    "there, or name this machine (MASTER_ADDR)",
                    point.where.text(), addresses.front().host()));
  }
  std::string why;
  for (const TimePoint patience = within(seconds(5));;) {
    try {
      ServedStore served = serve_store(*mine, secret.secret, deadline_);
      Met met = make_met(secret, std::move(served.store), served.address);
      met.store->set(nonce_key, meeting_name(), deadline_);
      met.host = std::move(served.host);
      met.troubles = std::move(served.troubles);
      return met;
    } catch (const RendezvousError& error) {
      why = error.what();
    }
    // Another rank 0 of this job, perhaps, in which case the roll call names both; or somebody on the way out.
    try {
      auto store = join_store(*mine, secret.secret, within(milliseconds(300)));
      if (store->get(nonce_key, within(milliseconds(300))) == meeting_name())
        return make_met(secret, std::move(store), *mine);
      why = fmt::format("port {} of {} still serves an earlier meeting", point.where.port, mine->host());
    } catch (const AuthenticationError&) {
      why = fmt::format("port {} of {} is held by something that is not of this job", point.where.port, mine->host());
    } catch (const Error&) {
      // It left while we asked: the next round will tell.
    }
    if (around_.clock.now() >= patience) {
      throw RendezvousError(
          fmt::format("{}; end it (`ss -tlnp 'sport = :{}'` names it), or meet at another port "
                      "(MASTER_PORT)",
                      why, point.where.port));
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

Met meet(const Detected& detected, const Surroundings& surroundings, TimePoint deadline) {
  return std::visit(Rendezvous(detected, surroundings, deadline), detected.meeting);
}

}  // namespace tutti::rendezvous
