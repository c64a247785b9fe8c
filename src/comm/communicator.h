#pragma once
// Message passing between ranks: processes, on one host or several, that each hold a part of one model. Every rank
// calls the same functions in the same order. Nothing here computes: gather() puts rows together out of the ranks'
// columns and never sums, so that no bit depends on the number of ranks.
//
// One thread of each rank calls; health() may be called from any. Once a peer is lost, or sends something other than
// what was expected, every call that would wait returns that error at once: the step then runs to its end without
// waiting, and its results mean nothing.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace candor::comm {

// A rank that has ended or does not answer: what it computed is missing, to everybody, until all begin again.
inline Error lost_rank(std::string message) {
  return fail(ErrorKind::kBusy, std::move(message), "ranks");
}

inline bool is_fault_of_input(ErrorKind kind) {
  return kind == ErrorKind::kInvalidInput || kind == ErrorKind::kUnsupported || kind == ErrorKind::kNotFound ||
         kind == ErrorKind::kIo;
}

// A matrix of which every rank has some columns: rank r those from bounds[r] to bounds[r + 1]. Before, the first
// n_rows * (own columns) floats of `rows` are the own slice, row by row without gaps; behind, `rows` is the whole
// matrix, [n_rows, bounds.back()].
struct RowSlices {
  float* rows = nullptr;
  int32_t n_rows = 0;
  std::span<const int32_t> bounds;  // [size + 1], ascending from 0

  int32_t cols_of(int32_t rank) const {
    const auto i = static_cast<size_t>(rank);
    return bounds[i + 1] - bounds[i];
  }
  int32_t n_cols() const { return bounds.back(); }
};

enum class Receivers : uint8_t { kAll, kFirst };  // kFirst: rank 0; elsewhere `rows` is then as it was

// What went out of this rank since it began.
struct Traffic {
  uint64_t n_gathers = 0;
  uint64_t n_broadcasts = 0;
  uint64_t bytes = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;

  // tag: what is gathered; ranks that gather different things have lost their way, which is an error.
  virtual Result<void> gather(const RowSlices& slices, Receivers receivers, uint64_t tag) = 0;
  // Rank 0's message becomes everybody's.
  virtual Result<void> broadcast(std::vector<std::byte>& message) = 0;
  // Returns when all ranks have called it.
  virtual Result<void> barrier() = 0;

  // Tells the others why this rank can't go on. Of a fault of the input they get an error of the same kind, of any other
  // that a rank is lost.
  virtual void say_failed(const Error& why) = 0;
  // The first peer that is lost, by name. Any thread.
  virtual Result<void> health() const = 0;
  virtual Traffic traffic() const = 0;
};

}  // namespace candor::comm
