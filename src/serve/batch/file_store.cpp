#include "serve/batch/file_store.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "formats/new_file.h"
#include "serve/batch/owned.h"
#include "serve/batch/stored_json.h"
#include "serve/core/generations.h"

namespace candor::serve {

namespace fs = std::filesystem;

std::string new_id(std::string_view prefix) {
  uint64_t words[2] = {};
  CANDOR_CHECK(getrandom(words, sizeof words, 0) == static_cast<ssize_t>(sizeof words));
  return fmt::format("{}{:016x}{:016x}", prefix, words[0], words[1]);
}

Result<std::unique_ptr<FileStore>> FileStore::open(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(ErrorKind::kIo, fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  fs::permissions(folder, fs::perms::owner_all, error);  // what clients sent is nobody else's to read
  std::unique_ptr<FileStore> store(new FileStore(folder));
  store->read_folder();
  return store;
}

void FileStore::read_folder() {
  read_stored(folder_, [this](const Json& json) {
    StoredFile file{.id = json.value("id", ""),
                    .owner = json.value("owner", ""),
                    .name = json.value("filename", ""),
                    .purpose = json.value("purpose", ""),
                    .created = json.value("created_at", int64_t{0})};
    files_.emplace(file.id, std::move(file));
  });
}

// Of all owners, and of one.
FileStore::Held FileStore::held(const std::string& owner) const {
  Held held;
  for (const auto& [id, file] : files_) {
    std::error_code error;
    const uint64_t n_bytes = fs::file_size(path_of(id), error);
    held.all.add(error ? 0 : n_bytes);
    if (file.owner == owner) held.own.add(error ? 0 : n_bytes);
  }
  return held;
}

Result<StoredFile> FileStore::add(StoredFile file, std::string_view bytes) {
  file.id = new_id("file-");
  file.created = unix_seconds();
  const std::lock_guard lock(mutex_);
  const auto [all, own] = held(file.owner);
  const size_t shares = file.owner.empty() ? 1 : kShares;
  const bool fits_all = all.n_files < kMaxFiles && all.n_bytes + bytes.size() <= kMaxBytes;
  const bool fits_own = own.n_files < kMaxFiles / shares && own.n_bytes + bytes.size() <= kMaxBytes / shares;
  if (!fits_all || !fits_own)
    return fail(ErrorKind::kOutOfMemory,
                fmt::format("the server keeps {} files and {} bytes at most{}: delete some", kMaxFiles, kMaxBytes,
                            shares == 1 ? "" : fmt::format(", a key 1/{} of them", shares)));
  CANDOR_TRY(formats::write_file(path_of(file.id), bytes));
  const Json json = {{"id", file.id},
                     {"owner", file.owner},
                     {"filename", file.name},
                     {"purpose", file.purpose},
                     {"created_at", file.created}};
  CANDOR_TRY(formats::write_file(folder_ / (file.id + ".json"), to_text(json)));
  files_.emplace(file.id, file);
  return file;
}

std::vector<StoredFile> FileStore::list(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  return owned_by(owner, files_);
}

std::optional<StoredFile> FileStore::find(const std::string& owner, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const StoredFile* file = find_owned(owner, id, files_);
  return file == nullptr ? std::nullopt : std::optional(*file);
}

bool FileStore::remove(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (find_owned(owner, id, files_) == nullptr) return false;
  std::error_code ignored;
  fs::remove(folder_ / (id + ".json"), ignored);
  fs::remove(path_of(id), ignored);
  files_.erase(id);
  return true;
}

Json FileStore::to_json(const StoredFile& file) const {
  std::error_code error;
  const uint64_t n_bytes = fs::file_size(path_of(file.id), error);
  return {
      {"id", file.id},         {"object", "file"},        {"bytes", error ? 0 : n_bytes}, {"created_at", file.created},
      {"filename", file.name}, {"purpose", file.purpose}, {"status", "processed"}};
}

}  // namespace candor::serve
