// join.cpp: opening MPI on every rank of a job, and comparing what the ranks found.
// SPDX-License-Identifier: Apache-2.0
//
// The ranks tell each other twice: which library they have opened, before any of them calls into it, because MPI_Init waits for the
// others and does not return if one of them uses another MPI; and which rank of MPI each of them is, before anything is built on that.
#include "mpi/join.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tutti/error.hpp>

#include "backend/executor_backend.hpp"
#include "mpi/executor.hpp"
#include "mpi/library.hpp"
#include "mpi/process.hpp"
#include "wire/handshake.hpp"

namespace tutti::mpi {
namespace {

constexpr std::int64_t segment_bytes_min = 64, segment_bytes_max = 1 << 28;
constexpr char mark_of_problem = '!', mark_of_value = '=';

/// Every rank's value; or an Error, the same on all ranks, if some rank has a problem instead.
class Exchange {
 public:
  using Texts = std::function<std::vector<std::string>(const std::string& own)>;
  /// `told`: every rank's text, in the order of ranks. `world_of`: their ranks in the world; none: those.
  explicit Exchange(Texts told, std::vector<int> world_of = {})
      : texts_(std::move(told)), world_of_(std::move(world_of)) {}

  /// `find` gives this rank's value, or throws what the problem is.
  template <class Find>
  std::vector<std::string> operator()(Find find) const {
    std::string own;
    try {
      own = mark_of_value + find();
    } catch (const Error& error) {
      own = std::string(1, mark_of_problem) + error.what();
    }
    auto all = texts_(own);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].starts_with(mark_of_problem))
        throw Error(fmt::format("backend mpi: rank {}: {}", world_rank(rank), all[rank].substr(1)));
      all[rank].erase(0, 1);
    }
    return all;
  }
  [[nodiscard]] int world_rank(std::size_t rank) const {
    return world_of_.empty() ? static_cast<int>(rank) : world_of_[rank];
  }

 private:
  Texts texts_;
  std::vector<int> world_of_;
};

std::shared_ptr<const Library> open_library(const Environment& environment, const Log& log) {
  if (wire::encryption_from(environment) == wire::Encryption::tls)
    throw Error("TUTTI_TLS=1 asks for encryption, and MPI's connections have none; use the backend native");
  const Found found = find_library(environment);
  if (found.library) {
    log.info("MPI: {} ({}), because {}", found.library->version, found.library->file, found.reason);
    return found.library;
  }
  throw Error(fmt::format(
      "no MPI can be used: {}; install Open MPI or MPICH (Debian: openmpi-bin, mpich), or use another backend",
      describe_problems(found)));
}

/// Opens MPI on all ranks, and compares what they found.
void open_everywhere(JobFacts& job, const Exchange& exchange, const Environment& environment, const Log& log) {
  const auto names = exchange([&] {
    job.library = open_library(environment, log);
    job.segment_bytes =
        environment.integer("TUTTI_MPI_SEGMENT_BYTES", segment_bytes_min, segment_bytes_max).value_or(0);
    if (job.segment_bytes == 0) return job.library->version;
    return fmt::format("{}, in segments of {} bytes", job.library->version, job.segment_bytes);
  });
  for (std::size_t rank = 1; rank < names.size(); ++rank) {
    if (names[rank] == names[0]) continue;
    throw Error(fmt::format("backend mpi: rank {} uses {}, rank {} uses {}; set TUTTI_MPI to one of them on all ranks",
                            exchange.world_rank(0), names[0], exchange.world_rank(rank), names[rank]));
  }
}

/// "3/8": rank 3 of 8.
struct PlaceInMpi {
  int rank = 0, size = 0;
};

PlaceInMpi parse_place(const std::string& text) {
  PlaceInMpi place;
  const char* const end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, place.rank);
  if (error != std::errc() || slash == end || std::from_chars(slash + 1, end, place.size).ec != std::errc())
    throw Error("backend mpi: a rank told its place in MPI in another version's words; use one version of Tutti");
  return place;
}

/// MPI's rank of each rank, of which MPI has `size`, or more if that is 0.
std::vector<int> check_places(const std::vector<std::string>& texts, const Library& library, int size) {
  std::vector<int> ranks;
  for (const std::string& text : texts) {
    const PlaceInMpi place = parse_place(text);
    if (size > 0 ? place.size != size : place.size < static_cast<int>(texts.size())) {
      throw Error(fmt::format(
          "backend mpi: the {} {} ranks, but {} says that rank {} is rank {} of {}: the job was not started by "
          "this "
          "MPI's launcher. Start it by that launcher (mpirun, srun --mpi=…, tuttirun -B mpi), or set TUTTI_MPI to "
          "the MPI that started it",
          size > 0 ? "job has" : "group has", texts.size(), library.version, ranks.size(), place.rank, place.size));
    }
    ranks.push_back(place.rank);
  }
  if (std::set<int>(ranks.begin(), ranks.end()).size() != ranks.size())
    throw Error("backend mpi: two ranks of the job are the same rank of MPI; give every process a rank of its own");
  return ranks;
}

/// The communicator that everything is made from.
TuttiMpiCommunicator* make_base(const Joining& joining, const Library& library) {
  TuttiMpiCommunicator* base = nullptr;
  const int code = joining.communicator ? library.plugin->duplicate_fortran(*joining.communicator, &base)
                                        : library.plugin->duplicate_world(&base);
  check(library, code, "MPI_Comm_dup");
  return base;
}

/// Where this rank is in MPI, for the others.
std::string place_in(JobFacts& job, const TuttiMpiCommunicator* base) {
  const Library& library = *job.library;
  PlaceInMpi own;
  check(library, library.plugin->place(base, &own.rank, &own.size), "MPI_Comm_rank");
  check(library, library.plugin->tag_max(&job.tag_max), "MPI_Comm_get_attr");
  job.base = base;
  return fmt::format("{}/{}", own.rank, own.size);
}

std::unique_ptr<Backend> make_backend(const std::shared_ptr<const JobFacts>& job, const GroupFacts& facts) {
  if (facts.size == 1) return nullptr;
  return std::make_unique<ExecutorBackend>(
      ExecutorBackend::Parts{.name = "mpi",
                             .facts = &facts,
                             .executor = std::make_shared<MpiExecutor>(*job, facts),
                             .order = Backend::Order::one_at_a_time,
                             .is_worth_spinning = true,
                             .must_be_polled = true,
                             .takes_own_reductions = false});
}

}  // namespace

BackendFactory join(const Joining& joining) {
  const Exchange exchange([&](const std::string& own) { return joining.connector.exchange(own, joining.deadline); });
  auto job = std::make_shared<JobFacts>();
  open_everywhere(*job, exchange, joining.environment, joining.log);
  const Library& library = *job->library;
  const auto places = exchange([&] {
    Process::self().enter(job->library, joining.log);
    TuttiMpiCommunicator* const base = make_base(joining, library);
    return place_in(*job, base);
  });
  job->rank_in_base = check_places(places, library, static_cast<int>(places.size()));
  return [job](const GroupFacts& facts, Transport&) { return make_backend(job, facts); };
}

BackendFactory join_group(const JoiningGroup& joining) {
  const Exchange exchange(joining.exchange, joining.world_of);
  auto job = std::make_shared<JobFacts>();
  open_everywhere(*job, exchange, joining.environment, joining.log);
  const Library& library = *job->library;
  static_cast<void>(exchange([&] {
    int is_initialized = 0;
    check(library, library.plugin->initialized(&is_initialized), "MPI_Initialized");
    if (is_initialized != 0 || joining.has_all_ranks) return std::string();
    throw Error(
        "MPI is not initialised in this process, and MPI_Init waits for all ranks of the job; start the job with the "
        "backend "
        "mpi, initialise MPI in the program, or make a group of all ranks on mpi first");
  }));
  const auto places = exchange([&] {
    Process::self().enter(job->library, joining.log);
    TuttiMpiCommunicator* base = nullptr;
    check(library, library.plugin->world(&base), "MPI_COMM_WORLD");
    return place_in(*job, base);
  });
  const std::vector<int> ranks = check_places(places, library, 0);
  job->rank_in_base.resize(static_cast<std::size_t>(*std::ranges::max_element(joining.world_of)) + 1, -1);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    job->rank_in_base[static_cast<std::size_t>(joining.world_of[i])] = ranks[i];
  return [job](const GroupFacts& facts, Transport&) { return make_backend(job, facts); };
}

}  // namespace tutti::mpi
