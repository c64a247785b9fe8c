#include "quantize/quantizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/half.h"
#include "formats/changed_file.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/quote.h"
#include "formats/tensor_copies.h"
#include "platform/thread_pool.h"
#include "quantize/search.h"
#include "quantize/type_plan.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::quantize {
namespace {

using formats::gguf::GgufArray;
using formats::gguf::GgufHeader;
using formats::gguf::GgufScalar;
using formats::gguf::GgufValue;
using formats::gguf::GgufWriter;

// dst: all rows as Q8_0 blocks of the one scale.
void encode_naive(std::span<const float> row, float scale, std::byte* dst);

class Encoder {
 public:
  static Result<Encoder> make(const formats::ModelFile& file, const QuantizeOptions& options) {
    CANDOR_ASSIGN(auto pool, platform::ThreadPool::start({.n_threads = options.n_threads, .spin = false}));
    return Encoder(file, options, std::move(pool));
  }

  // dst: bytes_of(item).
  Result<void> encode(const Item& item, std::byte* dst) {
    for (const TensorView& part : item.parts) CANDOR_TRY(file_.make_copy(part.bytes()));
    auto done = encode_parts(item, dst);
    CANDOR_TRY(file_.check_intact());
    for (const TensorView& part : item.parts) file_.has_read(part.bytes());
    return done;
  }

 private:
  Encoder(const formats::ModelFile& file, const QuantizeOptions& options, std::unique_ptr<platform::ThreadPool> pool)
      : file_(file), options_(options), pool_(std::move(pool)) {}

  Result<void> encode_parts(const Item& item, std::byte* dst) {
    if (item.dtype == item.view.dtype) {
      for (const TensorView& part : item.parts) {
        std::memcpy(dst, part.data, part.n_bytes);
        dst += part.n_bytes;
      }
      return {};
    }
    for (const TensorView& part : item.parts) {
      CANDOR_TRY(encode_part(part, item.dtype, dst));
      dst += bytes_of(item) / item.parts.size();
    }
    return {};
  }

  // Of a row's columns; nullptr: nothing is known of them.
  const float* importance_of(const TensorView& part, int64_t row) const {
    if (options_.importance == nullptr) return nullptr;
    const bool is_stack = part.shape.n_dims > 2;
    const auto matrix = is_stack ? static_cast<size_t>(row / part.shape[part.shape.n_dims - 2]) : 0;
    const std::span<const float> found = options_.importance->of(part.name, matrix);
    return found.empty() ? nullptr : found.data();
  }

  Result<void> encode_part(const TensorView& part, DType dtype, std::byte* dst) {
    const int64_t row_elements = part.shape.row_elements();
    const size_t stride = row_bytes(dtype_info(dtype), row_elements);
    const bool is_naive = options_.naive_int8 && dtype == DType::kQ8_0;
    const float scale = is_naive ? largest(part) / 127.0f : 0.0f;
    std::atomic<int64_t> bad_row{-1};
    // Taken here: what runs in the pool must not throw.
    std::vector<std::vector<float>> rows(static_cast<size_t>(pool_->n_threads()),
                                         std::vector<float>(static_cast<size_t>(row_elements)));
    pool_->parallel_for({.n_units = part.shape.n_rows(), .grain = 1, .unit_cost = 100 * row_elements},
                        [&](platform::UnitRange range) {
                          std::vector<float>& row = rows[static_cast<size_t>(range.thread)];
                          for (int64_t i = range.begin; i < range.end; ++i) {
                            decode_row(part, i, row.data());
                            if (!is_finite(row)) bad_row = i;
                            std::byte* to = dst + static_cast<size_t>(i) * stride;
                            if (is_naive) {
                              encode_naive(row, scale, to);
                            } else {
                              encode_searched(dtype, row.data(), importance_of(part, i), row_elements, to);
                            }
                          }
                        });
    if (bad_row < 0) return {};
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor {}: row {} holds NaN or infinity; expected finite numbers",
                            formats::in_quotes(part.name), bad_row.load()));
  }

  static bool is_finite(const std::vector<float>& row) {
    return std::ranges::all_of(row, [](float x) { return std::isfinite(x); });
  }

  static float largest(const TensorView& part) {
    std::vector<float> row(static_cast<size_t>(part.shape.row_elements()));
    float result = 0.0f;
    for (int64_t i = 0; i < part.shape.n_rows(); ++i) {
      decode_row(part, i, row.data());
      for (const float x : row) result = std::max(result, std::fabs(x));
    }
    return result;
  }

  const formats::ModelFile& file_;
  const QuantizeOptions& options_;
  std::unique_ptr<platform::ThreadPool> pool_;
};

void encode_naive(std::span<const float> row, float scale, std::byte* dst) {
  const f16 stored = f32_to_f16(scale);
  const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
  for (size_t begin = 0; begin < row.size(); begin += 32) {
    std::memcpy(dst, &stored, sizeof(stored));
    dst += sizeof(stored);
    for (size_t i = begin; i < begin + 32; ++i) {
      *dst++ = static_cast<std::byte>(static_cast<int8_t>(std::clamp(std::round(row[i] * inverse), -127.0f, 127.0f)));
    }
  }
}

GgufScalar narrow(uint64_t value) {
  if (value <= UINT32_MAX) return static_cast<uint32_t>(value);
  return value;
}
GgufScalar narrow(int64_t value) {
  if (value >= INT32_MIN && value <= INT32_MAX) return static_cast<int32_t>(value);
  return value;
}

GgufValue array_value(const formats::MetaArray& array) {
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&array)) {
    return GgufArray(std::vector<int32_t>(numbers->begin(), numbers->end()));
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&array)) {
    std::vector<float> floats;
    for (const double number : *numbers) floats.push_back(static_cast<float>(number));
    return GgufArray(std::move(floats));
  }
  if (const auto* flags = std::get_if<std::vector<bool>>(&array)) return GgufArray(*flags);
  const auto& texts = std::get<std::vector<std::string_view>>(array);
  return GgufArray(std::vector<std::string>(texts.begin(), texts.end()));
}

GgufValue gguf_value(const formats::MetaValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return narrow(*number);
  if (const auto* number = std::get_if<uint64_t>(&value)) return narrow(*number);
  if (const auto* number = std::get_if<double>(&value)) return GgufScalar(static_cast<float>(*number));
  if (const auto* flag = std::get_if<bool>(&value)) return GgufScalar(*flag);
  if (const auto* text = std::get_if<std::string_view>(&value)) return GgufScalar(std::string(*text));
  return array_value(std::get<formats::MetaArray>(value));
}

Result<void> add_metadata(const formats::ModelFile& file, const QuantizeOptions& options, GgufHeader& header) {
  for (const formats::MetaEntry& entry : file.metadata()) {
    const bool is_ours = entry.key == "general.file_type" || entry.key == "general.quantization_version" ||
                         entry.key == "general.alignment" || entry.key.starts_with("split.");
    if (!is_ours) CANDOR_TRY(header.add_meta(entry.key, gguf_value(entry.value)));
  }
  if (options.recipe) CANDOR_TRY(header.add_meta("general.file_type", GgufScalar(options.recipe->file_type)));
  constexpr uint32_t kQuantizationVersion = 2;  // of the block layouts
  return header.add_meta("general.quantization_version", GgufScalar(kQuantizationVersion));
}

// The original's metadata over quantised tensors; those that keep their type stay the original's.
class QuantizedFile final : public formats::ChangedFile {
 public:
  QuantizedFile(std::unique_ptr<formats::ModelFile> source, const QuantizeOptions& options)
      : ChangedFile(std::move(source)), options_(options), plan_(base(), options_) {}

  void drop_copies() override {
    ChangedFile::drop_copies();
    encoder_.reset();
  }

  // Encodes vectors, which the architecture may be read from; of matrices it takes the memory, untouched.
  Result<void> plan() {
    CANDOR_TRY(plan_.make());
    CANDOR_ASSIGN(Encoder encoder, Encoder::make(base(), options_));
    encoder_.emplace(std::move(encoder));
    for (const Item& item : plan_.items()) CANDOR_TRY(add(item));
    sort();
    return {};
  }

 private:
  Result<void> add(const Item& item) {
    TensorView view = item.view;
    if (item.dtype != view.dtype || item.parts.size() > 1) {
      view = {view.name, item.dtype, view.shape, nullptr, bytes_of(item)};
      CANDOR_ASSIGN(view.data, view.shape.n_dims < 2 ? encoded_now(item) : encoded_when_read(item));
    }
    tensors_.push_back(view);
    return {};
  }

  Result<const std::byte*> encoded_now(const Item& item) {
    CANDOR_ASSIGN(std::byte * bytes, copies_.add(bytes_of(item), item.view.name));
    CANDOR_TRY(encoder_->encode(item, bytes));
    return bytes;
  }

  Result<const std::byte*> encoded_when_read(const Item& item) {
    formats::CopySource source{[this, &item](std::byte* to) { return encoder_->encode(item, to); }};
    for (const TensorView& part : item.parts) source.bytes.push_back(part.bytes());
    return copies_.add(bytes_of(item), item.view.name, std::move(source));
  }

  QuantizeOptions options_;
  TypePlan plan_;
  std::optional<Encoder> encoder_;
};

}  // namespace

Result<uint64_t> head_bytes(const formats::ModelFile& file, const QuantizeOptions& options) {
  TypePlan plan(file, options);
  CANDOR_TRY(plan.make());
  GgufHeader header;
  CANDOR_TRY(add_metadata(file, options, header));
  for (const Item& item : plan.items()) CANDOR_TRY(header.add_tensor(item.view.name, item.dtype, item.view.shape));
  return header.bytes().size();
}

Result<formats::WriteReport> write_gguf(const formats::ModelFile& file, const std::filesystem::path& path,
                                        const QuantizeOptions& options) {
  TypePlan plan(file, options);
  CANDOR_TRY(plan.make());
  GgufHeader header;
  CANDOR_TRY(add_metadata(file, options, header));
  formats::WriteReport report;
  for (const Item& item : plan.items()) {
    CANDOR_TRY(header.add_tensor(item.view.name, item.dtype, item.view.shape));
    for (const TensorView& part : item.parts) report.source_bytes += part.n_bytes;
    report.n_weights += item.view.shape.n_elements();
  }
  CANDOR_ASSIGN(GgufWriter writer, GgufWriter::create(path, header));
  CANDOR_ASSIGN(Encoder encoder, Encoder::make(file, options));
  uint64_t done = 0;
  for (const Item& item : plan.items()) {
    std::vector<std::byte> bytes(bytes_of(item));
    CANDOR_TRY(encoder.encode(item, bytes.data()));
    CANDOR_TRY(writer.write_tensor(bytes));
    report.written_bytes += bytes.size();
    for (const TensorView& part : item.parts) done += part.n_bytes;
    if (options.progress && !options.progress(done, report.source_bytes)) {
      return fail(ErrorKind::kCancelled, "interrupted; nothing was written");
    }
  }
  CANDOR_TRY(writer.finish());
  return report;
}

Result<std::unique_ptr<formats::ModelFile>> quantize_on_load(std::unique_ptr<formats::ModelFile> file,
                                                             const QuantizeOptions& options) {
  auto quantized = std::make_unique<QuantizedFile>(std::move(file), options);
  CANDOR_TRY(quantized->plan());
  return std::unique_ptr<formats::ModelFile>(std::move(quantized));
}

}  // namespace candor::quantize
