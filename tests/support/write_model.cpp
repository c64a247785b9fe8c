#include <limits>

#include "formats/gguf/gguf_writer.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

using formats::gguf::GgufArray;
using formats::gguf::GgufScalar;
using formats::gguf::GgufValue;

struct ToGguf {
  GgufValue operator()(int64_t value) const {
    if (std::in_range<int32_t>(value)) return GgufScalar(static_cast<int32_t>(value));
    return GgufScalar(value);
  }
  GgufValue operator()(uint64_t value) const {
    if (std::in_range<uint32_t>(value)) return GgufScalar(static_cast<uint32_t>(value));
    return GgufScalar(value);
  }
  GgufValue operator()(double value) const { return GgufScalar(static_cast<float>(value)); }
  GgufValue operator()(bool value) const { return GgufScalar(value); }
  GgufValue operator()(std::string_view value) const { return GgufScalar(std::string(value)); }
  GgufValue operator()(const formats::MetaArray& value) const { return std::visit(*this, value); }

  GgufValue operator()(const std::vector<int64_t>& values) const {
    return GgufArray(std::vector<int32_t>(values.begin(), values.end()));
  }
  GgufValue operator()(const std::vector<double>& values) const {
    return GgufArray(std::vector<float>(values.begin(), values.end()));
  }
  GgufValue operator()(const std::vector<bool>& values) const { return GgufArray(values); }
  GgufValue operator()(const std::vector<std::string_view>& values) const {
    return GgufArray(std::vector<std::string>(values.begin(), values.end()));
  }
};

}  // namespace

Result<void> write_model(const formats::ModelFile& file, const std::filesystem::path& path) {
  formats::gguf::GgufHeader header;
  for (const formats::MetaEntry& entry : file.metadata()) {
    CANDOR_TRY(header.add_meta(entry.key, std::visit(ToGguf{}, entry.value)));
  }
  for (const TensorView& tensor : file.tensors()) {
    CANDOR_TRY(header.add_tensor(tensor.name, tensor.dtype, tensor.shape));
  }
  CANDOR_ASSIGN(formats::gguf::GgufWriter writer, formats::gguf::GgufWriter::create(path, header));
  for (const TensorView& tensor : file.tensors()) {
    CANDOR_TRY(writer.write_tensor(tensor.bytes()));
  }
  return writer.finish();
}

}  // namespace candor::testing
