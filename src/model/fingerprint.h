#pragma once
// A model's content as one number, for prefix-cache keys: the architecture, and name, type, shape and bytes of every
// tensor of the file. Tensors up to 1 MiB are hashed whole; of larger ones 64 windows of 4 KiB, spread evenly from the
// first byte to the last, so that a model of many GB costs about as much as 256 KiB for each tensor. Fine-tunes and
// other quantisations differ everywhere and so in the windows; a patch of a few bytes between two windows goes unseen.

#include <cstdint>

#include "formats/model_file.h"
#include "model/arch_spec.h"

namespace candor::model {

uint64_t fingerprint(const ArchSpec& spec, const formats::ModelFile& file);

}  // namespace candor::model
