#pragma once
// The directory of a ZIP archive whose files are stored as they are (PKWARE, APPNOTE 6.3, methods and records that
// torch.save writes). Pure; any thread.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::formats::torch {

// Borrowed from the archive.
struct StoredFile {
  std::string_view name;
  std::span<const std::byte> bytes;
};

// In the directory's order. Refused: no archive, compressed or encrypted files, archives of 4 GiB and more or of
// several parts, more than 2^16 files, and places outside of the archive. file_name: of errors, in quotes.
Result<std::vector<StoredFile>> read_directory(std::span<const std::byte> archive, std::string_view file_name);

}  // namespace candor::formats::torch
