#pragma once
// What adapters add to rows of products: two thin matrices for each, multiplied by one thread for some rows and outputs
// at a time, whatever other rows there are. Numbers: docs/numerics.md, "Adapters". The engine thread calls.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/arena.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/op_terms.h"
#include "kernels/kernels.h"
#include "platform/thread_pool.h"

namespace candor::backend::cpu {

class ThinProducts {
 public:
  struct Row {
    const float* src = nullptr;  // [in]
    float* dst = nullptr;        // [out]
  };

  // Borrowed.
  ThinProducts(const kernels::KernelTable& table, platform::ThreadPool& pool)
      : table_(table), pool_(pool), room_(pool.n_threads()) {}

  // Forgets what was added. Then what one turn of adapters gives to rows, no row of a term's twice; then all of it.
  void begin();
  void add(const AdapterTerm& term, float scale, std::span<const Row> rows);
  // The same of rows whose src are `down x` already, [rank]; `down` is not read.
  void add_from_middle(const AdapterTerm& term, float scale, std::span<const Row> rows);
  // Memory that is not there is std::bad_alloc.
  void run();

 private:
  struct Job {
    const AdapterTerm* term = nullptr;
    const CpuWeight* down = nullptr;  // or nullptr: what `up` multiplies is there
    bool replaces = false;            // the product, by another W's
    float scale = 1.0f;
    size_t first_row = 0;
    size_t end_row = 0;
    const CpuWeight& up() const { return own(*term->up); }
    const CpuWeight& first() const { return down == nullptr ? up() : *down; }
    int64_t row_cost() const;
  };
  struct Unit {  // panels of outputs of some rows
    const Job* job = nullptr;
    size_t first_row = 0;
    int32_t n_rows = 0;
    int64_t panel_begin = 0;
    int64_t panel_end = 0;
  };
  // Where a thread's pieces begin in its room, in bytes.
  struct Places {
    size_t inputs = 0;   // encoded
    size_t middle = 0;   // [rows, rank]
    size_t codes = 0;    // of middle, encoded
    size_t outputs = 0;  // [rows, outputs at once]
    size_t spare = 0;    // [outputs at once]
    size_t scratch = 0;  // of the kernels
    size_t end = 0;
  };

  static Places places_of(const Job& job, int32_t n_rows);
  void add_job(Job job, std::span<const Row> rows);
  void make_units();
  void run_unit(const Unit& unit, int32_t thread);
  const std::byte* encode_inputs(const Unit& unit, const Places& places, std::byte* room);
  void add_outputs(const Unit& unit, int64_t first, int64_t n, const float* outputs, float* spare);
  void multiply(const CpuWeight& weight, int64_t first_panel, int64_t n_panels, kernels::MatmulArgs args);

  // Constant after construction.
  const kernels::KernelTable& table_;
  platform::ThreadPool& pool_;

  ThreadScratch room_;
  std::vector<Row> rows_;
  std::vector<Job> jobs_;
  std::vector<Unit> units_;
};

}  // namespace candor::backend::cpu
