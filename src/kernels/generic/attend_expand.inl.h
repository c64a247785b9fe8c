// Pages of one key tile that are made when it is computed: int8 ones as bf16, and V pages out of K pages.

// Pages [begin, end), all of the key tile that starts at token t0. Page `next` is read after them; begin: none is.
struct TilePages {
  int32_t t0;
  int32_t begin;
  int32_t end;
  int32_t next;
};

constexpr int32_t kTileTable[] = {0, 1, 2, 3};
static_assert(kKeyTile / kPageTokens == 4);

inline int32_t* scratch_page(const AttendScratch& s, size_t index, size_t bytes) {
  return reinterpret_cast<int32_t*>(s.expanded + index * bytes);
}

// The call with the tile's pages as bf16, in s.expanded; there is no page after them.
inline AttendArgs expand_tile(const AttendArgs& a, TilePages& pages, const AttendScratch& s) {
  AttendArgs expanded = a;
  const size_t bytes = kv_page_bytes(a.head_dim);
  expanded.pages = {s.expanded, kTileTable, 2 * bytes, 0, bytes, KvFormat::kBf16, pages.begin};
  for (int32_t page = pages.begin; page < pages.end; ++page) {
    const size_t index = 2 * static_cast<size_t>(page - pages.begin);
    int32_t* keys = scratch_page(s, index, bytes);
    expand_keys(page_of(a.pages, page, a.pages.k_offset), a.head_dim, keys);
    if (a.latent_dim > 0) {
      values_from_keys(keys, padded_dim(a.head_dim), scratch_page(s, index + 1, bytes));
    } else {
      expand_values(page_of(a.pages, page, a.pages.v_offset), a.head_dim, scratch_page(s, index + 1, bytes));
    }
  }
  pages.next = pages.begin;
  return expanded;
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
  return made;
}
