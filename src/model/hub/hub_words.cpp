#include "model/hub/hub_words.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "formats/json_text.h"
#include "formats/quote.h"
#include "formats/safetensors/other_vocabularies.h"
#include "formats/safetensors/safetensors_file.h"
#include "formats/safetensors/sentencepiece_proto.h"
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

Result<void> read_template_file(const fs::path& path, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const platform::MappedFile file, platform::MappedFile::open(path));
  if (file.bytes().size() > kMaxConfigBytes) return bad(path, "is larger than 16 MiB");
  metadata.add_string("tokenizer.chat_template",
                      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  return file.check_intact();
}

// chat_template.jinja, or the chat_template.json of older processors; either stands above tokenizer_config.json's.
Result<void> read_template(const fs::path& folder, formats::MetaList& metadata) {
  constexpr const char* kKey = "chat_template";
  std::error_code ignored;
  if (const fs::path jinja = folder / "chat_template.jinja"; fs::exists(jinja, ignored))
    return read_template_file(jinja, metadata);
  const fs::path older = folder / "chat_template.json";
  CANDOR_ASSIGN(const auto settings, optional_json(older, kMaxConfigBytes));
  if (!settings) return {};
  const auto text = settings->find(kKey);
  if (text == settings->end() || !text->is_string())
    return bad(older, "has no text under \"chat_template\"; download it again");
  metadata.add_string("tokenizer.chat_template", text->get_ref<const std::string&>());
  return {};
}

// A file that may be absent, as text; at most kMaxTokenizerBytes.
Result<std::optional<std::string>> optional_text(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::optional<std::string>();
  CANDOR_ASSIGN(const platform::MappedFile file, platform::MappedFile::open(path));
  if (file.bytes().size() > kMaxTokenizerBytes) return bad(path, "is larger than 64 MiB");
  std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  CANDOR_TRY(file.check_intact());
  return std::optional<std::string>(std::move(text));
}

// The one file of the folder whose name ends so; "" where there is none.
Result<fs::path> only_file(const fs::path& folder, std::string_view ending) {
  fs::path found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().filename().string().ends_with(ending)) continue;
    if (!found.empty()) return bad(folder, "holds two *.tiktoken files; leave one");
    found = entry->path();
  }
  return found;
}

// The vocabulary of a folder, whichever file holds it.
struct Words {
  std::optional<json> tokenizer;  // or what stands for it
  std::optional<formats::safetensors::SentencePieceFile> pieces;
  bool ranks_are_ids = false;
  std::string file = "tokenizer.json";
};

class WordsReader {
 public:
  WordsReader(const fs::path& folder, std::string_view name, const formats::MetaList& metadata)
      : folder_(folder), name_(name), metadata_(metadata) {}

  Result<Words> read(const std::optional<json>& config) {
    Words words;
    CANDOR_ASSIGN(words.tokenizer, optional_json(folder_ / "tokenizer.json", kMaxTokenizerBytes));
    if (words.tokenizer) return words;
    CANDOR_ASSIGN(const auto tekken, optional_json(folder_ / "tekken.json", kMaxTokenizerBytes));
    if (tekken) {
      CANDOR_ASSIGN(words.tokenizer, formats::safetensors::tokenizer_of_tekken(*tekken, name_));
      words.ranks_are_ids = true;
      words.file = "tekken.json";
      return words;
    }
    CANDOR_ASSIGN(const auto added, optional_json(folder_ / "added_tokens.json", kMaxConfigBytes));
    CANDOR_ASSIGN(const auto special, optional_json(folder_ / "special_tokens_map.json", kMaxConfigBytes));
    const auto pointer = [](const std::optional<json>& value) { return value ? &*value : nullptr; };
    const formats::safetensors::VocabularyNotes notes{.name = name_,
                                                      .config = pointer(config),
                                                      .added = pointer(added),
                                                      .special = pointer(special),
                                                      .is_gpt2_family = is_gpt2_family()};
    CANDOR_TRY(read_model_file(notes, words));
    if (!words.tokenizer) CANDOR_TRY(read_merges(notes, words));
    return words;
  }

 private:
  // tokenizer.model is a SentencePiece model, whose first byte is that of a field, or tiktoken's lines.
  Result<void> read_model_file(const formats::safetensors::VocabularyNotes& notes, Words& words) const {
    CANDOR_ASSIGN(std::optional<std::string> text, optional_text(folder_ / "tokenizer.model"));
    words.file = "tokenizer.model";
    if (text && text->starts_with('\n')) {
      CANDOR_ASSIGN(words.pieces, formats::safetensors::read_sentence_piece(*text, name_));
      CANDOR_ASSIGN(json added, formats::safetensors::added_tokens_of(notes, json::object()));
      words.tokenizer = json{{"added_tokens", std::move(added)}};
      return {};
    }
    if (!text) {
      CANDOR_ASSIGN(text, optional_text(folder_ / "tiktoken.model"));
      words.file = "tiktoken.model";
    }
    if (!text) {
      CANDOR_ASSIGN(const fs::path path, only_file(folder_, ".tiktoken"));
      if (path.empty()) return {};
      CANDOR_ASSIGN(text, optional_text(path));
      words.file = path.filename().string();
    }
    if (!text) return {};
    CANDOR_ASSIGN(words.tokenizer, formats::safetensors::tokenizer_of_tiktoken(*text, notes));
    words.ranks_are_ids = true;
    return {};
  }

  Result<void> read_merges(const formats::safetensors::VocabularyNotes& notes, Words& words) const {
    CANDOR_ASSIGN(const auto vocab, optional_json(folder_ / "vocab.json", kMaxTokenizerBytes));
    CANDOR_ASSIGN(const auto merges, optional_text(folder_ / "merges.txt"));
    if (!vocab || !merges) return {};
    CANDOR_ASSIGN(words.tokenizer, formats::safetensors::tokenizer_of_merges(*vocab, *merges, notes));
    words.file = "vocab.json and merges.txt";
    return {};
  }

  bool is_gpt2_family() const {
    const formats::MetaValue* value = metadata_.find("general.architecture");
    const auto* name = value == nullptr ? nullptr : std::get_if<std::string_view>(value);
    return name != nullptr && (*name == "gpt2" || *name == "starcoder" || *name == "starcoder2" || *name == "gptj");
  }

  const fs::path& folder_;
  std::string_view name_;
  const formats::MetaList& metadata_;
};

}  // namespace

Result<void> read_words(const fs::path& folder, int64_t n_vocab, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const auto config, optional_json(folder / "tokenizer_config.json", kMaxConfigBytes));
  CANDOR_ASSIGN(const auto generation, optional_json(folder / "generation_config.json", kMaxConfigBytes));
  CANDOR_ASSIGN(const auto model, optional_json(folder / "config.json", kMaxConfigBytes));
  const bool has_type = model && model->contains("model_type") && (*model)["model_type"].is_string();
  const std::string model_type = has_type ? (*model)["model_type"].get<std::string>() : "";
  const std::string name = in_quotes(folder.string());
  CANDOR_ASSIGN(const Words words, WordsReader(folder, name, metadata).read(config));
  if (!words.tokenizer) return {};
  const auto pointer = [](const auto& value) { return value ? &*value : nullptr; };
  CANDOR_TRY(formats::safetensors::read_tokenizer({.name = name,
                                                   .vocabulary = words.file,
                                                   .tokenizer = pointer(words.tokenizer),
                                                   .config = pointer(config),
                                                   .generation = pointer(generation),
                                                   .model_type = model_type,
                                                   .pieces = pointer(words.pieces),
                                                   .ranks_are_ids = words.ranks_are_ids},
                                                  n_vocab, metadata));
  return read_template(folder, metadata);
}

}  // namespace candor::model
