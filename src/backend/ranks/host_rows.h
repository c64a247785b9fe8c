#pragma once
// The rows of an activation on the host, where ranks put them together: the backend's own memory, or a copy of what a
// device holds, which goes back when it was changed. One thread.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/op_terms.h"

namespace candor::backend {

class HostRows {
 public:
  // x: as large as what will be read or written. REQUIRES: the room of x in its slot is that of what goes back too.
  HostRows(Backend& backend, Activation x) : backend_(backend), place_(backend.host_rows(x)) {
    if (place_ != nullptr) return;
    copy_.resize(static_cast<size_t>(x.n_rows) * static_cast<size_t>(x.n_cols));
    place_ = copy_.data();
  }

  float* data() { return place_; }
  // Brings what the last operation left, no more than x; it stands at the beginning.
  HostRows& read(Activation of) {
    if (copy_.empty()) return *this;
    const RowsView rows = backend_.read_rows(of);
    std::copy_n(rows.data, static_cast<size_t>(of.n_rows) * static_cast<size_t>(of.n_cols), place_);
    return *this;
  }
  // For the operations that come next.
  void write(Activation of) {
    if (copy_.empty()) return;
    backend_.write_rows(of, {place_, static_cast<size_t>(of.n_rows) * static_cast<size_t>(of.n_cols)});
  }

 private:
  Backend& backend_;
  float* place_;
  std::vector<float> copy_{};  // empty where the host reaches the rows
};

}  // namespace candor::backend
