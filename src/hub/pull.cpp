#include "hub/pull.h"

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

#include "formats/json_text.h"
#include "formats/new_file.h"
#include "formats/quote.h"
#include "hub/digest.h"
#include "hub/http.h"
#include "hub/partial_file.h"

namespace candor::hub {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxUnstatedBytes = uint64_t{64} << 20;  // of a file whose size the hub does not say

struct RemoteFile {
  std::string name;
  std::optional<uint64_t> n_bytes;
  std::string digest;  // SHA-256 of large files, git's SHA-1 of small ones
};

struct Remote {
  std::string commit;
  std::vector<RemoteFile> files;
};

bool is_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

// A user's or a repository's name, by the hub's rules.
bool is_repo_part(std::string_view text) {
  constexpr size_t kMaxBytes = 96;
  const auto is_end = [](char c) { return c != '-' && c != '.'; };
  return is_name(text) && text.size() <= kMaxBytes && is_end(text.front()) && is_end(text.back()) &&
         text.find("--") == std::string_view::npos && text.find("..") == std::string_view::npos;
}

bool is_hex(std::string_view text, size_t size) {
  return text.size() == size &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// A relative path of plain names.
bool is_safe_path(std::string_view path) {
  while (true) {
    const size_t slash = path.find('/');
    if (!is_name(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return result;
}

std::string full_name(const RepoName& name) {
  return fmt::format("{}/{}", name.user, name.repo);
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
      "config.json",         "generation_config.json",       "tokenizer.json",
      "chat_template.jinja", "model.safetensors.index.json", "tokenizer_config.json"};
  return std::ranges::find(kFiles, name) != std::end(kFiles) || name.ends_with(".safetensors");
}

// "Q4_K_M" in "x-Q4_K_M.gguf" and "Q4_K_M/x-00001-of-00002.gguf", not "Q4_K" in it.
bool names_quant(const std::string& file, const std::string& quant) {
  const std::string text = lower(file);
  const std::string wanted = lower(quant);
  const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
    const bool begins = at == 0 || !is_part(text[at - 1]);
    const bool ends = at + wanted.size() == text.size() || !is_part(text[at + wanted.size()]);
    if (begins && ends) return true;
  }
  return false;
}

std::string list_names(const std::vector<RemoteFile>& files) {
  std::string names;
  for (const RemoteFile& file : files) names += fmt::format("{}{}", names.empty() ? "" : ", ", file.name);
  return names;
}

Result<std::vector<RemoteFile>> choose_files(const Remote& remote, const RepoName& name) {
  std::vector<RemoteFile> ggufs;
  std::vector<RemoteFile> folder;
  bool has_weights = false;
  for (const RemoteFile& file : remote.files) {
    if (file.name.ends_with(".gguf")) ggufs.push_back(file);
    if (!is_wanted_beside_safetensors(file.name)) continue;
    folder.push_back(file);
    has_weights |= file.name.ends_with(".safetensors");
  }
  if (name.quant.empty() && has_weights) return folder;
  if (name.quant.empty() && ggufs.size() == 1) return ggufs;
  const std::string quant = name.quant.empty() ? "Q4_K_M" : name.quant;
  std::vector<RemoteFile> chosen;
  for (const RemoteFile& file : ggufs) {
    if (names_quant(file.name, quant)) chosen.push_back(file);
  }
  if (!chosen.empty()) return chosen;
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
      CANDOR_TRY(link(snapshot / file.name, file.digest));
      model.n_bytes += file.n_bytes.value_or(0);
    }
    model.repaired = std::move(repaired_);
    CANDOR_TRY(write_ref(remote.commit));
    const auto first_gguf = std::ranges::min_element(files, {}, [](const RemoteFile& file) { return file.name; });
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

// Whole files only: a link whose blob is there.
std::vector<fs::path> complete_files(const fs::path& snapshot) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(snapshot, ignored), end; at != end; at.increment(ignored)) {
    if (at->is_regular_file(ignored)) files.push_back(at->path());
  }
  std::ranges::sort(files);
  return files;
}

void add_snapshot(const std::string& name, const fs::path& snapshot, std::vector<CachedModel>& models) {
  CachedModel folder{name, snapshot, 0};
  bool has_config = false;
  std::error_code ignored;
  for (const fs::path& file : complete_files(snapshot)) {
    const uint64_t n_bytes = fs::file_size(file, ignored);
    if (file.extension() == ".gguf") models.push_back({name, file, n_bytes});
    if (file.extension() == ".safetensors") folder.n_bytes += n_bytes;
    has_config |= file == snapshot / "config.json";
  }
  if (has_config && folder.n_bytes > 0) models.push_back(folder);
}

}  // namespace

Result<RepoName> parse_repo_name(std::string_view text) {
  RepoName name;
  const size_t slash = text.find('/');
  const size_t colon = text.find(':');
  if (slash != std::string_view::npos) {
    name.user = text.substr(0, slash);
    name.repo = text.substr(slash + 1, colon == std::string_view::npos ? colon : colon - slash - 1);
    if (colon != std::string_view::npos) name.quant = text.substr(colon + 1);
  }
  const bool has_quant = colon != std::string_view::npos;
  if (is_repo_part(name.user) && is_repo_part(name.repo) && (!has_quant || is_name(name.quant))) return name;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{} names no model of a hub; expected user/repo or user/repo:quant, without \"--\" "
                          "or \"..\" in a name",
                          formats::in_quotes(text)));
}

Result<PulledModel> pull(const RepoName& name, const HubOptions& options, const PullProgress& progress) {
  HttpClient http(options.token);
  return Puller(http, name, options, progress).run();
}

std::vector<CachedModel> list_models(const fs::path& cache_root) {
  std::vector<CachedModel> models;
  std::error_code ignored;
  for (fs::directory_iterator at(cache_root, ignored), end; at != end; at.increment(ignored)) {
    constexpr std::string_view kPrefix = "models--";
    const std::string folder = at->path().filename().string();
    const size_t split = folder.find("--", std::min(folder.size(), kPrefix.size()));
    std::string commit;
    std::ifstream(at->path() / "refs" / "main") >> commit;
    if (!folder.starts_with(kPrefix) || split == std::string::npos || !is_hex(commit, 40)) continue;
    if (!is_repo_part(folder.substr(kPrefix.size(), split - kPrefix.size())) || !is_repo_part(folder.substr(split + 2)))
      continue;
    const std::string name =
        fmt::format("{}/{}", folder.substr(kPrefix.size(), split - kPrefix.size()), folder.substr(split + 2));
    add_snapshot(name, at->path() / "snapshots" / commit, models);
  }
  std::ranges::sort(models, {}, [](const CachedModel& model) { return std::pair(model.name, model.path); });
  return models;
}

Result<fs::path> find_cached(const RepoName& name, const fs::path& cache_root) {
  for (const CachedModel& model : list_models(cache_root)) {
    const bool is_gguf = model.path.extension() == ".gguf";
    if (model.name != full_name(name)) continue;
    if (name.quant.empty() || (is_gguf && names_quant(model.path.filename().string(), name.quant))) return model.path;
  }
  const std::string quant = name.quant.empty() ? "" : ":" + name.quant;
  return fail(ErrorKind::kNotFound,
              fmt::format("{0}{1} is not on this machine: candor pull {0}{1} fetches it", full_name(name), quant));
}

}  // namespace candor::hub
