#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "run_program.hpp"

namespace example {

/// The processes of an MPI job, from MPI_Init to MPI_Finalize. What MPI itself cannot do ends the job with a message of MPI's.
class MpiRanks {
 public:
  /// Loader threads may run beside; only this thread calls MPI.
  MpiRanks(int& argc, char**& argv) {
    int provided = 0, rank = 0, ranks = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    rank_ = static_cast<std::uint32_t>(rank);
    ranks_ = static_cast<std::uint32_t>(ranks);
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return ranks_; }
  /// The one that speaks for all.
  bool is_first() const { return rank_ == 0; }

  /// Calls f on every rank. Where it throws on any, all ranks leave: the first of them with its exception, and the others
  /// quietly with the same exit code.
  template <class F>
  void together(F&& f) {
    std::exception_ptr error;
    int code = 0;
    try {
      f();
    } catch (const UserError&) {
      error = std::current_exception();
      code = 2;
    } catch (...) {
      error = std::current_exception();
      code = 1;
    }
    const int own = static_cast<int>(rank_);
    int speaker = error ? own : static_cast<int>(ranks_);
    MPI_Allreduce(MPI_IN_PLACE, &speaker, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (speaker == static_cast<int>(ranks_)) return;
    MPI_Bcast(&code, 1, MPI_INT, speaker, MPI_COMM_WORLD);
    leaving_together_ = true;
    if (own == speaker) std::rethrow_exception(error);
    throw QuietExit{code};
  }

  /// The mean over the ranks in place of each number, the same on all of them.
  void average(std::vector<float>& numbers) const {
    MPI_Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (float& number : numbers) number /= static_cast<float>(ranks_);
  }

  /// Whether all ranks have the same number here.
  bool agree_on(std::uint64_t number) const {
    std::uint64_t least = 0, most = 0;
    MPI_Allreduce(&number, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&number, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return least == most;
  }

  /// The first rank's value, on all of them. Values are sent as bytes.
  template <class Value>
  void broadcast(Value& value) const {
    MPI_Bcast(&value, static_cast<int>(sizeof value), MPI_BYTE, 0, MPI_COMM_WORLD);
  }

  /// Which of the ranks on this machine this one is, from 0 on, and how many they are.
  struct Place {
    std::uint32_t rank, ranks;
  };
  Place place_on_this_machine() const {
    MPI_Comm here = MPI_COMM_NULL;
    int rank = 0, ranks = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &rank);
    MPI_Comm_size(here, &ranks);
    MPI_Comm_free(&here);
    return {static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(ranks)};
  }

  /// Everybody's value, by rank, on the first; nothing on the others. Values are sent as bytes.
  template <class Value>
  std::vector<Value> gather(const Value& own) const {
    std::vector<Value> all(is_first() ? std::size_t{ranks_} : 0);
    const int bytes = static_cast<int>(sizeof(Value));
    MPI_Gather(&own, bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    return all;
  }

  /// The last call. A rank that has failed alone takes the others with it, as they would wait for it for ever.
  ///
  /// Returns: the exit code.
  int finish(int code) {
    if (code != 0 && !leaving_together_ && ranks_ > 1) MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Finalize();
    return code;
  }

 private:
  std::uint32_t rank_ = 0, ranks_ = 1;
  bool leaving_together_ = false;
};

}  // namespace example
