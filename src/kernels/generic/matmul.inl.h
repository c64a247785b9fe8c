// Matrix products on packed weights. A unit (some hundred k of 16 outputs) is unpacked once and used for all rows of
// the chunk; a tile multiplies the units of kDotPanels panels with a few rows, its sums in registers.

constexpr int32_t kSmallRows = 16;  // up to here few panels are finished before the next are begun: one stream
constexpr int64_t kPanelGroup = 8;  // panels that share one pass over the rows' unit, above
static_assert(kPanelGroup % kDotPanels == 0);

// These use what stands above them.
// clang-format off
#include "kernels/generic/matmul_blocks.inl.h"
#include "kernels/generic/matmul_floats.inl.h"
// clang-format on

// The tile of exactly n_rows rows, at most n.
template <class Product, int n>
inline void multiply_tile(const typename Product::Unit* units, int n_k, const typename Product::Row* rows,
                          int32_t n_rows, float* acc, int64_t acc_stride) {
  if constexpr (n > 1) {
    if (n_rows < n) return multiply_tile<Product, n - 1>(units, n_k, rows, n_rows, acc, acc_stride);
  }
  Product::template tile<n>(units, n_k, rows, acc, acc_stride);
}

// Tiles of about the same size: eight rows are four and four, not six and two.
template <class Product>
inline void multiply_rows(const typename Product::Unit* units, int n_k, const typename Product::Row* rows,
                          int32_t n_rows, float* acc) {
  const int32_t n_tiles = (n_rows + Product::kRows - 1) / Product::kRows;
  const int64_t acc_stride = int64_t{16} * n_rows;
  int32_t first = 0;
  for (int32_t left = n_tiles; left > 0; --left) {
    const int32_t n = (n_rows - first + left - 1) / left;
    multiply_tile<Product, Product::kRows>(units, n_k, rows + first, n, acc + 16 * first, acc_stride);
    first += n;
  }
}

// Where a chunk's working memory lies in MatmulArgs::scratch.
template <class Product>
struct MatmulScratch {
  typename Product::Unit* units;  // [kDotPanels]
  float* acc;                     // [panel of the group][row][16]
  typename Product::Row* rows;    // small chunks: [unit][row]; else of one unit: [row]
  explicit MatmulScratch(std::byte* base)
      : units(reinterpret_cast<typename Product::Unit*>(base)),
        acc(reinterpret_cast<float*>(base + kScratchUnitBytes)),
        rows(reinterpret_cast<typename Product::Row*>(base + kScratchUnitBytes + kScratchSumBytes)) {
    static_assert(kDotPanels * sizeof(typename Product::Unit) <= kScratchUnitBytes);
    static_assert(kPanelGroup * kMatmulRows * kPanelRows * sizeof(float) <= kScratchSumBytes);
    static_assert(sizeof(typename Product::Row) <= kScratchRowBytes && kSmallRows <= kScratchSmallRows);
    static_assert(Product::kDepth >= kScratchDepth);
  }
};

template <class Product>
inline int depth_at(const MatmulArgs& a, int64_t k) {
  return static_cast<int>(a.shape.n_in - k < Product::kDepth ? a.shape.n_in - k : Product::kDepth);
}

template <class Product>
inline void prepare_rows(const MatmulArgs& a, int32_t first_row, int32_t n_rows, int64_t k,
                         typename Product::Row* dst) {
  const int n_k = depth_at<Product>(a, k);
  const size_t stride = encoded_row_bytes(encoding_of(a.shape.dtype), a.shape.n_in);
  const std::byte* row = a.activations + static_cast<size_t>(first_row) * stride;
  for (int32_t r = 0; r < n_rows; ++r, row += stride) Product::prepare(row, a.shape.n_in, k, n_k, dst[r]);
}

inline void store_sums(const MatmulArgs& a, int64_t panel, int32_t first_row, int32_t n_rows, const float* acc) {
  const int64_t column = panel * kPanelRows;
  float* dst = a.dst + first_row * a.dst_stride + column;
  for (int32_t r = 0; r < n_rows; ++r, dst += a.dst_stride) store_part(dst, a.shape.n_out - column, load(acc + 16 * r));
}

// One unit of n_group panels. src: of the first panel.
template <class Product>
inline void multiply_unit(const MatmulArgs& a, const uint8_t* src, int n_k, int64_t n_group,
                          const MatmulScratch<Product>& scratch, const typename Product::Row* rows, int32_t n_rows) {
  const size_t stride = panel_bytes(a.shape);
  for (int64_t i = 0; i < n_group; i += kDotPanels) {
    for (int64_t p = 0; p < kDotPanels && i + p < n_group; ++p) {
      Product::unpack(src + static_cast<size_t>(i + p) * stride, n_k, scratch.units[p]);
    }
    multiply_rows<Product>(scratch.units, n_k, rows, n_rows, scratch.acc + i * n_rows * 16);
  }
}

// Rows [first_row, first_row + n_rows), at most kMatmulRows, of all panels of the range.
template <class Product>
inline void multiply_chunk(const MatmulArgs& a, int32_t first_row, int32_t n_rows) {
  const MatmulScratch<Product> scratch(a.scratch);
  const bool is_small = n_rows <= kSmallRows;
  const int64_t n_in = a.shape.n_in;
  const size_t stride = panel_bytes(a.shape);
  for (int64_t k = 0; is_small && k < n_in; k += Product::kDepth) {
    prepare_rows<Product>(a, first_row, n_rows, k, scratch.rows + k / Product::kDepth * n_rows);
  }
  const int64_t largest_group = is_small ? kDotPanels : kPanelGroup;
  for (int64_t p = a.panel_begin; p < a.panel_end;) {
    const int64_t n_group = a.panel_end - p < largest_group ? a.panel_end - p : largest_group;
    const auto* src = reinterpret_cast<const uint8_t*>(a.weights) + static_cast<size_t>(p) * stride;
    std::memset(scratch.acc, 0, static_cast<size_t>(largest_group * n_rows) * 64);
    for (int64_t k = 0; k < n_in; k += Product::kDepth) {
      const int n_k = depth_at<Product>(a, k);
      if (!is_small) prepare_rows<Product>(a, first_row, n_rows, k, scratch.rows);
      const typename Product::Row* rows = is_small ? scratch.rows + k / Product::kDepth * n_rows : scratch.rows;
      multiply_unit<Product>(a, src, n_k, n_group, scratch, rows, n_rows);
      src += Product::bytes_of_unit(n_k);
    }
    for (int64_t i = 0; i < n_group; ++i) store_sums(a, p + i, first_row, n_rows, scratch.acc + i * n_rows * 16);
    p += n_group;
  }
}

template <class Product>
inline void multiply(const MatmulArgs& a) {
  for (int32_t row = 0; row < a.n_rows; row += kMatmulRows) {
    multiply_chunk<Product>(a, row, a.n_rows - row < kMatmulRows ? a.n_rows - row : kMatmulRows);
  }
}

inline void matmul(const MatmulArgs& a) {
  switch (a.shape.dtype) {
    case DType::kF32:
      return multiply<FloatProduct<DType::kF32>>(a);
    case DType::kF16:
      return multiply<FloatProduct<DType::kF16>>(a);
    case DType::kBF16:
      return multiply<FloatProduct<DType::kBF16>>(a);
    case DType::kQ8_0:
      return multiply<BlockProduct<DType::kQ8_0>>(a);
    case DType::kQ4_0:
      return multiply<BlockProduct<DType::kQ4_0>>(a);
    case DType::kQ4_1:
      return multiply<BlockProduct<DType::kQ4_1>>(a);
    case DType::kQ5_0:
      return multiply<BlockProduct<DType::kQ5_0>>(a);
    case DType::kQ5_1:
      return multiply<BlockProduct<DType::kQ5_1>>(a);
    case DType::kIQ4_NL:
      return multiply<BlockProduct<DType::kIQ4_NL>>(a);
    case DType::kMXFP4:
      return multiply<BlockProduct<DType::kMXFP4>>(a);
    case DType::kQ2_K:
      return multiply<BlockProduct<DType::kQ2_K>>(a);
    case DType::kQ3_K:
      return multiply<BlockProduct<DType::kQ3_K>>(a);
    case DType::kQ4_K:
      return multiply<BlockProduct<DType::kQ4_K>>(a);
    case DType::kQ5_K:
      return multiply<BlockProduct<DType::kQ5_K>>(a);
    case DType::kQ6_K:
      return multiply<BlockProduct<DType::kQ6_K>>(a);
    case DType::kIQ4_XS:
      return multiply<BlockProduct<DType::kIQ4_XS>>(a);
    default:
      return;
  }
}
