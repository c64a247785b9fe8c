#include "hub/pull/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "formats/companion_name.h"
#include "formats/json_text.h"
#include "formats/new_file.h"
#include "formats/quote.h"
#include "hub/pull/digest.h"
#include "hub/pull/http.h"
#include "hub/pull/partial_file.h"

namespace candor::hub {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxUnstatedBytes = uint64_t{64} << 20;  // of a file whose size the hub does not say

struct RemoteFile {
  std::string name;
  std::optional<uint64_t> n_bytes;
  std::string digest;   // SHA-256 of large files, git's SHA-1 of small ones
  std::string place{};  // in the snapshot; empty: its name
};

struct Remote {
  std::string commit;
  std::vector<RemoteFile> files;
};

// A relative path of plain names.
bool is_safe_path(std::string_view path) {
  while (true) {
    const size_t slash = path.find('/');
    if (!is_plain_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

fs::path folder_of(const RepoName& name, const fs::path& root) {
  return root / fmt::format("models--{}--{}", name.user, name.repo);
}

std::string text_at(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::optional<uint64_t> size_at(const json& object) {
  const auto at = object.find("size");
  return at != object.end() && at->is_number_unsigned() ? std::optional(at->get<uint64_t>()) : std::nullopt;
}

// Files whose names or digests are not what they should be are left out: nothing of them can be asked for.
std::optional<RemoteFile> read_file(const json& sibling) {
  if (!sibling.is_object()) return std::nullopt;
  RemoteFile file;
  file.name = text_at(sibling, "rfilename");
  const auto lfs = sibling.find("lfs");
  const bool is_large = lfs != sibling.end() && lfs->is_object();
  file.n_bytes = size_at(sibling);
  if (!file.n_bytes && is_large) file.n_bytes = size_at(*lfs);
  file.digest = is_large ? text_at(*lfs, "sha256") : text_at(sibling, "blobId");
  if (!is_safe_path(file.name) || !is_hex(file.digest, is_large ? 64 : 40)) return std::nullopt;
  return file;
}

Result<Remote> read_remote(HttpClient& http, const RepoName& name, const HubOptions& options) {
  const std::string url = fmt::format("{}/api/models/{}/revision/main?blobs=true", options.endpoint, full_name(name));
  CANDOR_ASSIGN(const std::string text, http.get(url));
  CANDOR_ASSIGN(const json answer, formats::parse_json(text, url));
  Remote remote;
  if (answer.is_object()) remote.commit = text_at(answer, "sha");
  if (!is_hex(remote.commit, 40) || !answer.contains("siblings") || !answer["siblings"].is_array()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: the answer names no commit and files", url));
  }
  for (const json& sibling : answer["siblings"]) {
    if (auto file = read_file(sibling)) remote.files.push_back(std::move(*file));
  }
  return remote;
}

bool is_wanted_beside_safetensors(const std::string& name) {
  if (name.find('/') != std::string::npos) return false;
  constexpr std::string_view kFiles[] = {
      "config.json",           "generation_config.json",   "tokenizer.json",
      "chat_template.jinja",   "chat_template.json",       "model.safetensors.index.json",
      "tokenizer_config.json", "preprocessor_config.json", "processor_config.json"};
  return std::ranges::find(kFiles, name) != std::end(kFiles) || name.ends_with(".safetensors");
}

std::string list_names(const std::vector<RemoteFile>& files) {
  std::string names;
  for (const RemoteFile& file : files) names += fmt::format("{}{}", names.empty() ? "" : ", ", file.name);
  return names;
}

// The mmproj file to take of several: of 16 bits, which loses nothing that is seen and is half of 32.
const RemoteFile* best_mmproj(const Remote& remote) {
  constexpr std::string_view kTypes[] = {"f16", "bf16", "q8_0"};
  const auto rank = [&](const RemoteFile& file) {
    const auto type =
        std::ranges::find_if(kTypes, [&](auto name) { return names_quant(file.name, std::string(name)); });
    return std::pair(type - std::begin(kTypes), file.name);
  };
  const RemoteFile* best = nullptr;
  for (const RemoteFile& file : remote.files) {
    if (formats::is_mmproj_name(file.name) && (best == nullptr || rank(file) < rank(*best))) best = &file;
  }
  return best;
}

// And what stands beside them: their heads, and one file that reads images, which is found there whatever its folder in
// the repository.
std::vector<RemoteFile> with_companions(const Remote& remote, std::vector<RemoteFile> models) {
  const size_t n_models = models.size();
  for (const RemoteFile& file : remote.files) {
    for (size_t i = 0; formats::is_head_name(file.name) && i < n_models; ++i) {
      if (formats::head_name_of(models[i].name) == file.name) models.push_back(file);
    }
  }
  if (const RemoteFile* mmproj = best_mmproj(remote)) {
    const auto opened = std::ranges::min_element(models.begin(), models.begin() + static_cast<std::ptrdiff_t>(n_models),
                                                 {}, &RemoteFile::name);
    const fs::path place = fs::path(opened->name).parent_path() / fs::path(mmproj->name).filename();
    models.push_back(*mmproj);
    models.back().place = place.string();
  }
  return models;
}

Result<std::vector<RemoteFile>> choose_files(const Remote& remote, const RepoName& name) {
  std::vector<RemoteFile> ggufs;
  std::vector<RemoteFile> folder;
  bool has_weights = false;
  for (const RemoteFile& file : remote.files) {
    if (file.name.ends_with(".gguf") && !formats::is_companion_name(file.name)) ggufs.push_back(file);
    if (!is_wanted_beside_safetensors(file.name)) continue;
    folder.push_back(file);
    has_weights |= file.name.ends_with(".safetensors");
  }
  if (name.quant.empty() && has_weights) return folder;
  if (name.quant.empty() && ggufs.size() == 1) return with_companions(remote, std::move(ggufs));
  const std::string quant = name.quant.empty() ? "Q4_K_M" : name.quant;
  std::vector<RemoteFile> chosen;
  for (const RemoteFile& file : ggufs) {
    if (names_quant(file.name, quant)) chosen.push_back(file);
  }
  if (!chosen.empty()) return with_companions(remote, std::move(chosen));
  if (ggufs.empty()) {
    return fail(ErrorKind::kNotFound, fmt::format("{}: holds neither safetensors nor GGUF files", full_name(name)));
  }
  return fail(ErrorKind::kNotFound,
              fmt::format("{}: no GGUF file of {}; there are: {}", full_name(name), quant, list_names(ggufs)));
}

class Puller {
 public:
  Puller(HttpClient& http, const RepoName& name, const HubOptions& options, const PullProgress& progress)
      : http_(http),
        name_(name),
        options_(options),
        progress_(progress),
        folder_(folder_of(name, options.cache_root)) {}

  Result<PulledModel> run() {
    CANDOR_ASSIGN(const Remote remote, read_remote(http_, name_, options_));
    CANDOR_ASSIGN(const std::vector<RemoteFile> files, choose_files(remote, name_));
    PulledModel model;
    const fs::path snapshot = folder_ / "snapshots" / remote.commit;
    for (const RemoteFile& file : files) {
      CANDOR_TRY(fetch(remote.commit, file));
      CANDOR_TRY(link(snapshot / (file.place.empty() ? file.name : file.place), file.digest));
      model.n_bytes += file.n_bytes.value_or(0);
    }
    model.repaired = std::move(repaired_);
    CANDOR_TRY(write_ref(remote.commit));
    const auto first_gguf = std::ranges::min_element(
        files, {}, [](const RemoteFile& file) { return std::pair(formats::is_companion_name(file.name), file.name); });
    model.path = first_gguf->name.ends_with(".gguf") ? snapshot / first_gguf->name : snapshot;
    return model;
  }

 private:
  Error cannot(const fs::path& path, const std::string& why) const {
    return fail(ErrorKind::kIo, fmt::format("{}: cannot be written: {}", path.string(), why));
  }

  // Of the file as far as it is there; false where the person wants to stop.
  bool go_on(const RemoteFile& file, uint64_t done) const {
    return !progress_ || progress_(file.name, done, file.n_bytes.value_or(0));
  }

  Result<std::string> digest_of(const fs::path& path, const RemoteFile& file) const {
    const auto progress = [&](uint64_t done) { return go_on(file, done); };
    return file.digest.size() == 64 ? sha256_of_file(path, progress) : git_sha1_of_file(path, progress);
  }

  // Whether the cache has the file, whole. What cannot be read is fetched again too.
  Result<bool> has(const fs::path& blob, const RemoteFile& file) {
    std::error_code error;
    if (!fs::exists(blob, error)) return false;
    const uint64_t n_bytes = fs::file_size(blob, error);
    const bool has_size = !error && (!file.n_bytes || *file.n_bytes == n_bytes);
    const auto digest = has_size ? digest_of(blob, file) : std::string();
    if (!digest && digest.error().kind == ErrorKind::kCancelled) return digest.error();
    if (digest && *digest == file.digest) return true;
    repaired_.push_back(file.name);
    return false;
  }

  Result<void> fetch(const std::string& commit, const RemoteFile& file) {
    const fs::path blob = folder_ / "blobs" / file.digest;
    CANDOR_ASSIGN(const bool is_there, has(blob, file));
    if (is_there) return {};
    std::error_code error;
    fs::create_directories(blob.parent_path(), error);
    if (error) return cannot(blob.parent_path(), error.message());
    const std::string url = fmt::format("{}/{}/resolve/{}/{}", options_.endpoint, full_name(name_), commit, file.name);
    CANDOR_ASSIGN(PartialFile partial, PartialFile::open(fs::path(blob) += ".incomplete"));
    const auto progress = [&](uint64_t done, uint64_t) { return go_on(file, done); };
    if (partial.size() != file.n_bytes) {
      CANDOR_TRY(http_.download(url, partial, file.n_bytes.value_or(kMaxUnstatedBytes), progress));
    }
    if (file.n_bytes && partial.size() != *file.n_bytes) {
      return fail(ErrorKind::kIo, fmt::format("{}: {} bytes came, the hub states {}; pull again, what has arrived is "
                                              "kept",
                                              url, partial.size(), *file.n_bytes));
    }
    CANDOR_ASSIGN(const std::string digest, digest_of(partial.path(), file));
    if (digest == file.digest) return partial.become(blob);
    partial.remove();
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: the download's digest is {}, expected {}; it was removed, pull again", url, digest,
                            file.digest));
  }

  Result<void> link(const fs::path& path, const std::string& digest) const {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) return cannot(path.parent_path(), error.message());
    const fs::path target = fs::relative(folder_ / "blobs" / digest, path.parent_path(), error);
    fs::remove(path, error);
    fs::create_symlink(target, path, error);
    return error ? cannot(path, error.message()) : Result<void>{};
  }

  Result<void> write_ref(const std::string& commit) const {
    std::error_code error;
    fs::create_directories(folder_ / "refs", error);
    if (error) return cannot(folder_ / "refs", error.message());
    return formats::write_file(folder_ / "refs" / "main", commit);
  }

  HttpClient& http_;
  const RepoName& name_;
  const HubOptions& options_;
  const PullProgress& progress_;
  fs::path folder_;
  std::vector<std::string> repaired_;
};

}  // namespace

Result<PulledModel> pull(const RepoName& name, const HubOptions& options, const PullProgress& progress) {
  HttpClient http(options.token);
  return Puller(http, name, options, progress).run();
}

}  // namespace candor::hub
