// Pages of one key tile: reading ahead of them, and V pages that are made out of K pages when the tile is computed.

// Pages [begin, end), all of the key tile that starts at token t0. Pages [next, next_end) are read after them, those of
// the next tile; of the last tile these are its own first one.
struct TilePages {
  int32_t t0;
  int32_t begin;
  int32_t end;
  int32_t next;
  int32_t next_end;
};

// The page of the next tile that stands where `page` does in its own, as near as there is one.
inline int32_t page_ahead(const TilePages& pages, int32_t page) {
  const int32_t ahead = pages.next + page - pages.begin;
  return ahead < pages.next_end ? ahead : pages.next_end - 1;
}

constexpr int32_t kTilePages = kKeyTile / kPageTokens;
constexpr int32_t kTileTable[] = {0, 1, 2, 3};
static_assert(kTilePages == 4);

constexpr int32_t kFewQueries = 8;  // that wait for memory

// Prefetches the pages of the next tile, K and then V, while this one is computed: a few lines with each part of the
// work, so that memory never rests. Many queries wait for no memory, copies of pages are in a cache, and after the last
// tile there is none.
class TileAhead {
 public:
  // Of n queries; steps: with dims of a page's half, 32 each, with each query's weights and with values of 16 dims.
  static constexpr int32_t kStepsOfWeights = 4;

  // A tile that no other one came before is prefetched itself, at once.
  void begin(const AttendArgs& a, const TilePages& pages, int32_t n) {
    n_lines_ = 0;
    if (n > kFewQueries || pages.next == pages.begin) return;
    pages_ = &a.pages;
    page_bytes_ = kv_page_bytes(a.head_dim, a.pages.format);
    has_values_ = a.latent_dim == 0;
    const auto n_lines = static_cast<int32_t>(page_bytes_ / kLineBytes) * kTilePages * (has_values_ ? 2 : 1);
    if (pages.begin != end_of_last_) {
      begin_pages(pages.begin, pages.end);
      n_lines_ = n_lines;
      steps(1);
    }
    end_of_last_ = pages.end;
    const int32_t n_steps = 2 * kTilePages * (padded_dim(a.head_dim) / 16) + kStepsOfWeights * n;
    n_lines_ = (n_lines + n_steps - 1) / n_steps;
    begin_pages(pages.next, pages.next_end);
  }

  void steps(int32_t n) {
    for (int32_t i = n * n_lines_; i > 0; --i, at_ += kLineBytes) {
      if (at_ == page_end_ && !turn_page()) return;
      prefetch_far(at_);
    }
  }

 private:
  void begin_pages(int32_t begin, int32_t end) {
    page_ = begin;
    end_ = end;
    is_values_ = false;
    begin_page(pages_->k_offset);
  }
  void begin_page(size_t offset) {
    at_ = reinterpret_cast<const std::byte*>(page_of(*pages_, page_, offset));
    page_end_ = at_ + page_bytes_;
  }
  bool turn_page() {
    is_values_ = has_values_ && !is_values_;
    if (!is_values_ && ++page_ == end_) return n_lines_ = 0, false;
    begin_page(is_values_ ? pages_->v_offset : pages_->k_offset);
    return true;
  }

  const KvPages* pages_ = nullptr;
  size_t page_bytes_ = 0;
  int32_t end_of_last_ = -1;  // of the pages that were computed
  int32_t page_ = 0;
  int32_t end_ = 0;
  bool has_values_ = false;
  bool is_values_ = false;
  int32_t n_lines_ = 0;  // of a step
  const std::byte* at_ = nullptr;
  const std::byte* page_end_ = nullptr;
};

inline int32_t* scratch_page(const AttendScratch& s, size_t index, size_t bytes) {
  return reinterpret_cast<int32_t*>(s.expanded + index * bytes);
}

// The call with V pages that are made from the K pages of the tile, in s.expanded; there are no keys in it.
inline AttendArgs latent_values(const AttendArgs& a, TilePages& pages, const AttendScratch& s) {
  AttendArgs made = a;
  const size_t bytes = kv_page_bytes(a.head_dim, a.pages.format);
  const auto make = a.pages.format == KvFormat::kF32 ? values_from_wide_keys : values_from_keys;
  made.pages = {s.expanded, kTileTable, bytes, 0, 0, a.pages.format, pages.begin};
  for (int32_t page = pages.begin; page < pages.end; ++page) {
    make(page_of(a.pages, page, a.pages.k_offset), padded_dim(a.head_dim),
         scratch_page(s, static_cast<size_t>(page - pages.begin), bytes));
  }
  pages.next = pages.begin;
  pages.next_end = pages.begin + 1;
  return made;
}
