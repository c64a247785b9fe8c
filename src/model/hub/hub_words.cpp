#include "model/hub/hub_words.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "formats/json_text.h"
#include "formats/quote.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/safetensors/tokenizer_json.h"

namespace candor::model {

namespace fs = std::filesystem;
using formats::in_quotes;
using nlohmann::json;

namespace {

constexpr size_t kMaxTokenizerBytes = size_t{64} << 20;

Error bad(const fs::path& path, const char* reason) {
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: {}", in_quotes(path.string()), reason));
}

// A file that may be absent; whatever else is wrong with it is an error.
Result<std::optional<json>> optional_json(const fs::path& path, size_t max_bytes) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::optional<json>();
  CANDOR_ASSIGN(json value, formats::read_json_file(path, max_bytes));
  if (!value.is_object()) return bad(path, "is no JSON object; download it again");
  return std::optional<json>(std::move(value));
}

// chat_template.jinja, which stands above tokenizer_config.json's.
Result<void> read_template_file(const fs::path& path, formats::MetaList& metadata) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  CANDOR_ASSIGN(const platform::MappedFile file, platform::MappedFile::open(path));
  if (file.bytes().size() > kMaxConfigBytes) return bad(path, "is larger than 16 MiB");
  metadata.add_string("tokenizer.chat_template",
                      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  return file.check_intact();
}

}  // namespace

Result<void> read_words(const fs::path& folder, int64_t n_vocab, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const auto tokenizer, optional_json(folder / "tokenizer.json", kMaxTokenizerBytes));
  CANDOR_ASSIGN(const auto config, optional_json(folder / "tokenizer_config.json", kMaxConfigBytes));
  CANDOR_ASSIGN(const auto generation, optional_json(folder / "generation_config.json", kMaxConfigBytes));
  if (!tokenizer) return {};
  const auto pointer = [](const std::optional<json>& value) { return value ? &*value : nullptr; };
  const std::string name = in_quotes(folder.string());
  CANDOR_TRY(formats::safetensors::read_tokenizer(
      {.name = name, .tokenizer = pointer(tokenizer), .config = pointer(config), .generation = pointer(generation)},
      n_vocab, metadata));
  return read_template_file(folder / "chat_template.jinja", metadata);
}

}  // namespace candor::model
