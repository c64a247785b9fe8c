#include "formats/safetensors/sentencepiece_proto.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/utf8.h"

namespace candor::formats::safetensors {
namespace {

constexpr size_t kMaxPieces = size_t{1} << 22;

// One field of a message: a number, or bytes.
struct Field {
  uint64_t key = 0;  // its number in the message
  uint64_t number = 0;
  std::string_view bytes;
  bool is_bytes = false;
};

// The fields of a message, one after the other.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  bool is_at_end() const { return rest_.empty(); }
  // Nothing where the bytes are no field.
  std::optional<Field> next() {
    const auto tag = varint();
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    Field field{.key = *tag >> 3, .number = 0, .bytes = {}, .is_bytes = false};
    switch (*tag & 7) {
      case 0: {
        const auto number = varint();
        field.number = number.value_or(0);
        return number ? std::optional(field) : std::nullopt;
      }
      case 1:
        return fixed(field, 8);
      case 2: {
        const auto size = varint();
        if (!size || *size > rest_.size()) return std::nullopt;
        field.bytes = rest_.substr(0, static_cast<size_t>(*size));
        field.is_bytes = true;
        rest_.remove_prefix(field.bytes.size());
        return field;
      }
      case 5:
        return fixed(field, 4);
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::optional<Field> fixed(Field field, size_t n_bytes) {
    if (rest_.size() < n_bytes) return std::nullopt;
    for (size_t i = 0; i < n_bytes; ++i) {
      field.number |= static_cast<uint64_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
    }
    rest_.remove_prefix(n_bytes);
    return field;
  }

  std::string_view rest_;
};

class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  Result<SentencePieceFile> read() {
    CANDOR_TRY(for_each(bytes_, [&](const Field& field) -> Result<void> {
      if (!field.is_bytes) return {};
      if (field.key == 1) return read_piece(field.bytes);
      if (field.key == 2) return for_each(field.bytes, [&](const Field& f) { return read_trainer(f); });
      if (field.key == 3) return for_each(field.bytes, [&](const Field& f) { return read_normalizer(f); });
      if (field.key == 5) return for_each(field.bytes, [&](const Field& f) { return read_denormalizer(f); });
      return {};
    }));
    if (file_.pieces.empty()) return bad("it has no pieces");
    for (const int64_t id : {file_.unk_id, file_.bos_id, file_.eos_id, file_.pad_id}) {
      if (id >= static_cast<int64_t>(file_.pieces.size())) {
        return bad(fmt::format("the id {} of a special piece, expected below {}", id, file_.pieces.size()));
      }
    }
    return std::move(file_);
  }

 private:
  Error bad(const std::string& reason) const {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: tokenizer.model: {}; expected a SentencePiece model; download it again", name_, reason));
  }
  Error unsupported(std::string_view what) const {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: tokenizer.model: {} is not supported (supported: BPE and Unigram with spaces before "
                            "words); use a folder with tokenizer.json",
                            name_, what));
  }

  template <class Use>
  Result<void> for_each(std::string_view bytes, const Use& use) const {
    Message message(bytes);
    while (!message.is_at_end()) {
      const std::optional<Field> field = message.next();
      if (!field) return bad("a field is cut off or of no known form");
      CANDOR_TRY(use(*field));
    }
    return {};
  }

  Result<void> read_piece(std::string_view bytes) {
    if (file_.pieces.size() >= kMaxPieces) return bad(fmt::format("more than {} pieces", kMaxPieces));
    SentencePieceFile::Piece piece;
    CANDOR_TRY(for_each(bytes, [&](const Field& field) -> Result<void> {
      if (field.key == 1 && field.is_bytes) piece.text = field.bytes;
      if (field.key == 2 && !field.is_bytes) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field.number));
      if (field.key == 3 && !field.is_bytes) piece.type = static_cast<int64_t>(field.number);
      return {};
    }));
    const size_t id = file_.pieces.size();
    if (piece.type < 1 || piece.type > 6) return bad(fmt::format("piece {} is of type {}, expected 1 to 6", id, piece.type));
    if (!std::isfinite(piece.score)) return bad(fmt::format("the score of piece {} is no finite number", id));
    if (first_invalid_utf8(piece.text) != piece.text.size()) return bad(fmt::format("piece {} is no UTF-8", id));
    file_.pieces.push_back(std::move(piece));
    return {};
  }

  Result<void> read_trainer(const Field& field) {
    const auto id = static_cast<int64_t>(static_cast<int32_t>(field.number));
    if (field.is_bytes) return {};
    if (field.key == 3) {
      if (field.number != 1 && field.number != 2) return unsupported("a model of words or characters");
      file_.is_unigram = field.number == 1;
    }
    if (field.key == 24 && field.number != 0) return unsupported("treat_whitespace_as_suffix");
    if (field.key == 40) file_.unk_id = id;
    if (field.key == 41) file_.bos_id = id;
    if (field.key == 42) file_.eos_id = id;
    if (field.key == 43) file_.pad_id = id;
    return {};
  }

  Result<void> read_normalizer(const Field& field) {
    if (field.key == 2 && field.is_bytes) file_.charsmap = field.bytes;
    if (field.is_bytes) return {};
    if (field.key == 3) file_.adds_space = field.number != 0;
    if (field.key == 4) file_.squeezes_spaces = field.number != 0;
    if (field.key == 5 && field.number == 0) return unsupported("escape_whitespaces = false");
    return {};
  }

  Result<void> read_denormalizer(const Field& field) const {
    if (field.key == 2 && field.is_bytes && !field.bytes.empty()) return unsupported("a denormaliser with rules");
    return {};
  }

  std::string_view bytes_;
  std::string_view name_;
  SentencePieceFile file_;
};

}  // namespace

Result<SentencePieceFile> read_sentence_piece(std::string_view bytes, std::string_view name) {
  return ProtoReader(bytes, name).read();
}

}  // namespace candor::formats::safetensors
