#include "backend/cuda/cuda_logits.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "backend/cuda/kernels/kernel_list.h"
#include "base/checked.h"

namespace candor::backend::cuda {
namespace {

constexpr size_t kPartAlignment = 256;
// Rows that are longer have their greatest kept by four threads together, so that a bound is found among few.
constexpr int32_t kLongRow = 32768;

constexpr size_t kScanBytes = sizeof(float) * kSegment + 3 * 32 * sizeof(uint32_t);
constexpr size_t kBoundBytes = 4 * 32 * sizeof(uint32_t);
constexpr size_t kWeighBytes = sizeof(float) * kSegment + 32 * sizeof(uint64_t);
constexpr uint32_t kReachBytes = (sizeof(float) + 2 * sizeof(int32_t)) * kMostGathered;
constexpr size_t kRankBytes = (sizeof(float) + sizeof(int32_t)) * kMostGathered + 32 * sizeof(uint64_t);

int32_t segments_of(int32_t n) {
  return ceil_div(n, kSegment);
}

// Parts of one piece of memory, each aligned.
class Parts {
 public:
  explicit Parts(std::byte* memory) : memory_(memory) {}
  template <class T>
  T* take(size_t n) {
    const size_t at = n_bytes_;
    n_bytes_ = round_up(n_bytes_ + n * sizeof(T), kPartAlignment);
    return reinterpret_cast<T*>(memory_ + at);
  }
  size_t n_bytes() const { return n_bytes_; }

 private:
  std::byte* memory_;
  size_t n_bytes_ = 0;
};

// What lies between the kernels; returns its size.
size_t place_between(std::byte* memory, size_t n_queries, ChooseArgs& args) {
  const auto n_segments = static_cast<size_t>(args.n_segments);
  Parts parts(memory);
  args.maxima = parts.take<float>(n_queries * n_segments * (kSegmentThreads / static_cast<uint32_t>(args.chunk_lanes)));
  args.scans = parts.take<SegmentScan>(n_queries * n_segments);
  args.totals = parts.take<uint64_t>(n_queries * n_segments);
  args.states = parts.take<RowState>(n_queries);
  args.gathered = parts.take<GatheredLogit>(n_queries * kMostGathered);
  return parts.n_bytes();
}

size_t place_reaching(std::byte* memory, ReachArgs& args) {
  Parts parts(memory);
  args.sums = parts.take<uint64_t>(kBuckets);
  args.state = parts.take<ReachState>(1);
  args.gathered = parts.take<GatheredLogit>(kMostGathered);
  args.reached = parts.take<Reached>(1);
  return parts.n_bytes();
}

size_t heads_bytes(size_t n_queries) {
  return n_queries * sizeof(RowHead);
}

}  // namespace

CudaLogits::CudaLogits(Device& device)
    : device_(device), tables_(device), between_(device), reaching_(device), results_(device) {}

void CudaLogits::begin(const float* logits, int32_t n_rows, int32_t n_cols, int32_t part) {
  logits_ = logits;
  n_rows_ = n_rows;
  n_cols_ = n_cols;
  part_ = part;
  is_here_.assign(static_cast<size_t>(n_rows), false);
  summaries_.clear();
}

std::span<const float> CudaLogits::row(int32_t i) {
  bring(i, 1);
  const auto n = static_cast<size_t>(n_cols_);
  return std::span<const float>(host_rows_).subspan(static_cast<size_t>(i) * n, n);
}

void CudaLogits::bring(int32_t first_row, int32_t n_rows) {
  const auto first = is_here_.begin() + first_row;
  if (std::all_of(first, first + n_rows, [](bool is_here) { return is_here; })) return;
  const auto n = static_cast<size_t>(n_cols_);
  host_rows_.resize(std::max(host_rows_.size(), static_cast<size_t>(n_rows_) * n));
  const size_t at = static_cast<size_t>(first_row) * n;
  device_.copy_out(host_rows_.data() + at, logits_ + at, static_cast<size_t>(n_rows) * n * sizeof(float));
  std::fill(first, first + n_rows, true);
}

// By segments: the block that reads one finds its edits together.
void CudaLogits::sort_edits(const RowQuery& query) {
  first_edited_.assign(static_cast<size_t>(segments_of(n_cols_)) + 1, 0);
  for (const EditedToken& each : query.edited) ++first_edited_[static_cast<size_t>(each.token / kSegment) + 1];
  for (size_t i = 1; i < first_edited_.size(); ++i) first_edited_[i] += first_edited_[i - 1];
  edited_.resize(query.edited.size());
  for (const EditedToken& each : query.edited) {
    edited_[static_cast<size_t>(first_edited_[static_cast<size_t>(each.token / kSegment)]++)] = each;
  }
  std::rotate(first_edited_.begin(), first_edited_.end() - 1, first_edited_.end());
  first_edited_.front() = 0;
}

RowQueryArgs CudaLogits::args_of(const RowQuery& query) {
  CANDOR_DCHECK(query.n_best >= 1 && query.n_best <= kMostBest && query.n_vocab <= n_cols_);
  RowQueryArgs args{.logits = logits_ + int64_t{query.row} * n_cols_,
                    .divisor = query.divisor,
                    .n = query.n_vocab,
                    .n_best = query.n_best,
                    .asked = query.asked,
                    .is_scaled = query.is_scaled,
                    .is_weighed = query.is_weighed};
  if (!query.mask.empty()) args.mask = tables_.put(query.mask);
  if (query.edited.empty()) return args;
  sort_edits(query);
  args.edited = tables_.put(std::span<const EditedToken>(edited_));
  args.first_edited = tables_.put(std::span<const int32_t>(first_edited_));
  args.edits = tables_.put(query.edits);
  return args;
}

bool CudaLogits::reserve(size_t n_queries, size_t n_best) {
  ChooseArgs args{.n_segments = segments_of(n_cols_)};
  const size_t n_bytes = heads_bytes(n_queries) + n_best * sizeof(GatheredLogit);
  if (status_) status_ = between_.reserve(place_between(nullptr, kMostQueries, args));
  if (status_) status_ = results_.reserve(std::bit_ceil(n_bytes));
  if (status_) status_ = tables_.status();
  return status_.has_value();
}

void CudaLogits::launch(std::span<const RowQuery> queries, const ChooseArgs& args) {
  const auto n = static_cast<uint32_t>(queries.size());
  const auto reads_twice = [](const RowQuery& query) {
    return query.n_best > 1 || query.is_scaled || query.is_weighed;
  };
  const Launch over_segments{.x = static_cast<uint32_t>(args.n_segments), .y = n, .n_threads = kSegmentThreads};
  const auto with_shared = [](Launch launch, size_t n_bytes) {
    launch.shared_bytes = static_cast<uint32_t>(n_bytes);
    return launch;
  };
  const Launch over_queries{.x = n, .n_threads = kSegmentThreads};
  launches_.run(kernel::scan_logits, with_shared(over_segments, kScanBytes), args);
  launches_.run(kernel::bound_logits, with_shared(over_queries, kBoundBytes), args);
  if (std::ranges::any_of(queries, reads_twice)) {
    launches_.run(kernel::weigh_logits, with_shared(over_segments, kWeighBytes), args);
  }
  launches_.run(kernel::rank_logits, with_shared(over_queries, kRankBytes), args);
}

std::span<const RowSummary> CudaLogits::summarize(std::span<const RowQuery> queries) {
  summaries_.assign(queries.size(), {});
  if (queries.empty()) {
    device_.wait();
    return summaries_;
  }
  tables_.begin();
  launches_.begin(part_);
  queries_.clear();
  size_t n_best = 0;
  for (const RowQuery& query : queries) {
    queries_.push_back(args_of(query));
    queries_.back().best_at = static_cast<int32_t>(n_best);
    n_best += static_cast<size_t>(query.n_best);
  }
  device_queries_ = tables_.put(std::span<const RowQueryArgs>(queries_));
  if (!reserve(queries.size(), n_best)) return summaries_;
  for (size_t first = 0; first < queries.size(); first += kMostQueries) {
    ChooseArgs args{.queries = device_queries_ + first,
                    .heads = reinterpret_cast<RowHead*>(results_.data()) + first,
                    .best = reinterpret_cast<GatheredLogit*>(results_.data() + heads_bytes(queries.size())),
                    .n_segments = segments_of(n_cols_),
                    .chunk_lanes = n_cols_ > kLongRow ? 4 : 1};
    place_between(between_.data(), kMostQueries, args);
    launch(queries.subspan(first, std::min(kMostQueries, queries.size() - first)), args);
  }
  tables_.send();
  device_.run_all(launches_);
  read(queries, n_best);
  return summaries_;
}

void CudaLogits::read(std::span<const RowQuery> queries, size_t n_best) {
  static_assert(sizeof(BestLogit) == sizeof(GatheredLogit));
  const size_t best_at = heads_bytes(queries.size());
  host_results_.resize(best_at + n_best * sizeof(BestLogit));
  device_.copy_out(host_results_.data(), results_.data(), host_results_.size());
  if (!device_.status()) return;
  const auto* best = reinterpret_cast<const BestLogit*>(host_results_.data() + best_at);
  for (size_t i = 0; i < queries.size(); ++i) {
    RowHead head;
    std::memcpy(&head, host_results_.data() + i * sizeof head, sizeof head);
    summaries_[i] = {.is_valid = head.is_valid,
                     .is_whole = head.is_whole,
                     .greatest = head.greatest,
                     .total = head.total,
                     .asked = head.asked,
                     .best = {best + queries_[i].best_at, static_cast<size_t>(head.n_best)}};
  }
}

std::optional<OrderPrefix> CudaLogits::reach(size_t query, uint64_t target) {
  ReachArgs args{.query = device_queries_ + query, .greatest = summaries_[query].greatest, .target = target};
  if (status_) status_ = reaching_.reserve(place_reaching(nullptr, args));
  if (!status_) return std::nullopt;
  place_reaching(reaching_.data(), args);
  device_.clear(args.sums, kBuckets * sizeof(uint64_t));
  const Launch over_segments{.x = static_cast<uint32_t>(segments_of(n_cols_)),
                             .n_threads = kSegmentThreads,
                             .shared_bytes = sizeof(float) * kSegment};
  launches_.begin(part_ + 1);
  launches_.run(kernel::bucket_weights, over_segments, args);
  launches_.run(kernel::find_bucket, {.n_threads = kSegmentThreads, .shared_bytes = kSegmentThreads * sizeof(uint64_t)},
                args);
  launches_.run(kernel::gather_bucket, over_segments, args);
  launches_.run(kernel::reach_weight, {.n_threads = kSegmentThreads, .shared_bytes = kReachBytes}, args);
  device_.run_all(launches_);
  Reached reached;
  device_.copy_out(&reached, args.reached, sizeof reached);
  if (!device_.status() || !reached.is_known) return std::nullopt;
  return OrderPrefix{{reached.last.token, reached.last.logit, reached.last.models}, reached.weight};
}

}  // namespace candor::backend::cuda
