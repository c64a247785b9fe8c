#pragma once
// A model's content as one number, for prefix-cache keys: the architecture, and name, type, shape and bytes of every
// tensor of the file. Tensors up to 1 MiB are hashed whole; of larger ones 64 windows of 4 KiB, spread evenly from the
// first byte to the last, so that a model of many GB costs about as much as 256 KiB for each tensor. Fine-tunes and
// other quantisations differ everywhere and so in the windows; a patch of a few bytes between two windows goes unseen.
// Tensors are looked at while they are in memory to be packed: a large file is not read again for this.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"

namespace candor::model {

// The content of a file's tensors, noted one by one in any order. The file outlives it.
class Contents {
 public:
  explicit Contents(const formats::ModelFile& file);

  // Notes the tensor that the part lies in. REQUIRES: its bytes may be read (ModelFile::make_copy()).
  void note(std::span<const std::byte> part);
  // Behind those that nobody has noted: of the architecture and of all tensors.
  Result<uint64_t> fingerprint(const ArchSpec& spec);

 private:
  const formats::ModelFile& file_;
  std::vector<size_t> by_address_;               // tensors of the file
  std::vector<std::optional<uint64_t>> hashes_;  // of the file's tensors, in its order
};

}  // namespace candor::model
