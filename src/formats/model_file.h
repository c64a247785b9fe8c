#pragma once
// A model file as the rest of the engine sees it: typed metadata under canonical keys and a directory of tensors,
// whatever the format on disk. Keys are GGUF's ("llama.block_count", "tokenizer.ggml.tokens"); other formats translate
// to them. Immutable after construction, but for the bytes of copies; all const methods may be called from any thread.
// Views borrow from the file.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "tensor/tensor_view.h"

namespace candor::formats {

// Widened: signed integers to int64_t, unsigned ones to uint64_t (in arrays to int64_t too), floats to double. Strings
// are arbitrary bytes (token pieces need not be UTF-8) and stay in the file; keys and tensor names are valid UTF-8.
using MetaScalar = std::variant<int64_t, uint64_t, double, bool, std::string_view>;
using MetaArray =
    std::variant<std::vector<int64_t>, std::vector<double>, std::vector<bool>, std::vector<std::string_view>>;
using MetaValue = std::variant<int64_t, uint64_t, double, bool, std::string_view, MetaArray>;

struct MetaEntry {
  std::string key;
  MetaValue value;
};

// A key and its value, as JSON.
struct AssumedSetting {
  std::string key;
  std::string value;
};

struct FileInfo {
  std::string format;                        // "GGUF v3"
  std::vector<std::filesystem::path> paths;  // every part, in order
  uint64_t n_bytes = 0;                      // all parts together
  std::vector<std::string> left_out;         // names of a checkpoint's tensors that are known and not computed
  std::vector<AssumedSetting> assumed;       // settings that the file leaves out
  std::string assumed_by;                    // whose values these are: "transformers 5.23.0"
  std::vector<std::string> without_effect;   // keys of config.json that change nothing here
  std::vector<AssumedSetting> suggested;     // for generation, where options and requests decide
};

class ModelFile {
 public:
  virtual ~ModelFile() = default;

  virtual const FileInfo& info() const = 0;
  virtual std::span<const MetaEntry> metadata() const = 0;  // in the file's order
  virtual std::span<const TensorView> tensors() const = 0;  // in the file's order
  // nullptr when absent; find() gives one of tensors().
  virtual const MetaValue* meta(std::string_view key) const = 0;
  virtual const TensorView* find(std::string_view name) const = 0;
  // An error, naming the file, when one on disk has become shorter since it was opened or could not be read: what was
  // read of it may be zeros. Asked behind reading, before what was read is used or an error about it is told.
  virtual Result<void> check_intact() const { return {}; }

  // Hints, for bytes of tensors that are read once: the system begins to fetch a part, or it leaves memory.
  virtual void will_read(std::span<const std::byte> /*part*/) const {}
  virtual void has_read(std::span<const std::byte> /*part*/) const {}

  // Copies are tensors whose bytes are not those of the file on disk: in another order, or encoded while loading. Their
  // names, types, shapes and sizes stand from the start, so that memory can be planned. Bytes of a matrix may be read
  // behind make_copy() of them, which makes the whole tensor, and until they were read: one thread at a time, and of a
  // tensor's parts in ascending order, else it is made again. copy_bytes(): of what stands together, where tensors are
  // read one after another. After drop_copies() no tensor may be read.
  virtual uint64_t copy_bytes() const { return 0; }
  virtual Result<void> make_copy(std::span<const std::byte> /*part*/) const { return {}; }
  virtual void drop_copies() {}
};

// Typed access. Absent keys give nullopt or the fallback; a key of another type, or a number out of range, is an error
// that names the key, the type found and the type expected.
Result<std::optional<int64_t>> meta_int(const ModelFile& file, std::string_view key);
Result<std::optional<double>> meta_float(const ModelFile& file, std::string_view key);
Result<std::optional<bool>> meta_bool(const ModelFile& file, std::string_view key);
Result<std::optional<std::string_view>> meta_string(const ModelFile& file, std::string_view key);
// nullptr when absent.
Result<const std::vector<std::string_view>*> meta_strings(const ModelFile& file, std::string_view key);
Result<const std::vector<int64_t>*> meta_ints(const ModelFile& file, std::string_view key);
Result<const std::vector<bool>*> meta_bools(const ModelFile& file, std::string_view key);
Result<const std::vector<double>*> meta_floats(const ModelFile& file, std::string_view key);
// An absent key is an error too; the value must lie in [min, max].
Result<int32_t> require_int(const ModelFile& file, std::string_view key, int64_t min, int64_t max);

// Opens a model file by looking at what it is (not at its extension). Refuses, in one line each: a missing path, a
// folder, a device, an unreadable or empty file, an HTML page, a Git-LFS pointer, a pickle, and anything else that is
// no model file.
Result<std::unique_ptr<ModelFile>> open_model_file(const std::filesystem::path& path);

}  // namespace candor::formats
