#include "serve/batch/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/batch/batch_line.h"
#include "serve/batch/batch_store.h"
#include "serve/batch/multipart.h"
#include "serve/core/fields.h"
#include "serve/http/access.h"
#include "serve/http/exchange.h"
#include "serve/http/text.h"

namespace candor::serve::batch {
namespace {

using Shared = std::shared_ptr<http::Exchange>;

constexpr std::string_view kFiles = "/v1/files/";
constexpr std::string_view kBatches = "/v1/batches/";
constexpr uint64_t kMaxReplyBytes = uint64_t{256} << 20;
constexpr size_t kMaxName = 512;
constexpr size_t kMaxMetadata = 16;

// One request: to the store of the server, in the name of the key that it came with.
class BatchRoutes {
 public:
  BatchRoutes(const ServerCore& core, const Shared& exchange)
      : core_(core), exchange_(*exchange), owner_(core.access.key_id(exchange->request().key)) {}

  void upload();
  void list_files();
  void file();
  void delete_file();
  void order();
  void list_batches();
  void batch();
  void cancel();

  bool has_store() const { return core_.batches != nullptr; }

 private:
  BatchStore& store() const { return *core_.batches; }
  const http::HttpRequest& request() const { return exchange_.request(); }
  // Behind the prefix, up to a further '/', and what follows that.
  std::pair<std::string, std::string_view> id_behind(std::string_view prefix) const;
  void refuse_unknown(std::string_view kind, const std::string& id) {
    answer(exchange_, Error{ErrorKind::kNotFound, fmt::format("there is no {} {}", kind, shown(Json(id)))});
  }
  void answer_list(const std::vector<Json>& all);
  void content(const StoredFile& file);

  const ServerCore& core_;
  http::Exchange& exchange_;
  const std::string owner_;
};

std::pair<std::string, std::string_view> BatchRoutes::id_behind(std::string_view prefix) const {
  const std::string_view rest = std::string_view(request().path).substr(prefix.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  return {std::string(rest.substr(0, slash)), rest.substr(slash)};
}

// With `limit` and `after`, as OpenAI's clients turn pages.
void BatchRoutes::answer_list(const std::vector<Json>& all) {
  size_t limit = 20;
  if (const auto text = http::query_value(request().query, "limit")) {
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
    if (error != std::errc() || end != text->data() + text->size() || limit < 1 || limit > FileStore::kMaxFiles)
      return answer(exchange_, Error{ErrorKind::kInvalidInput, "limit is no number from 1 to 10000", "limit"});
  }
  auto first = all.begin();
  if (const auto after = http::query_value(request().query, "after")) {
    first = std::ranges::find_if(all, [&](const Json& one) { return one["id"] == *after; });
    if (first == all.end())
      return answer(exchange_, Error{ErrorKind::kNotFound, fmt::format("after: {} is not there", shown(Json(*after)))});
    ++first;
  }
  const auto last =
      static_cast<size_t>(all.end() - first) > limit ? first + static_cast<std::ptrdiff_t>(limit) : all.end();
  Json data = Json::array();
  std::copy(first, last, std::back_inserter(data));
  answer(exchange_, Json{{"object", "list"},
                         {"first_id", data.empty() ? Json() : data.front()["id"]},
                         {"last_id", data.empty() ? Json() : data.back()["id"]},
                         {"has_more", last != all.end()},
                         {"data", std::move(data)}});
}

void BatchRoutes::upload() {
  const auto parts = parse_form(request().header("content-type"), request().body);
  if (!parts) return answer(exchange_, parts.error());
  const FormPart* file = nullptr;
  std::string purpose;
  for (const FormPart& part : *parts) {
    if (part.name == "file") file = &part;
    if (part.name == "purpose") purpose = std::string(part.bytes.substr(0, kMaxName));
  }
  if (file == nullptr) return answer(exchange_, Error{ErrorKind::kInvalidInput, "the form has no file", "file"});
  if (purpose != "batch")
    return answer(exchange_, Error{ErrorKind::kUnsupported,
                                   fmt::format("purpose is {}, expected \"batch\"", shown(Json(purpose))), "purpose"});
  StoredFile given{.id = {}, .owner = owner_, .name = file->file_name.substr(0, kMaxName), .purpose = purpose};
  if (given.name.empty()) given.name = "batch.jsonl";
  const auto stored = store().files().add(std::move(given), file->bytes);
  if (!stored) return answer(exchange_, stored.error());
  answer(exchange_, store().files().to_json(*stored));
}

void BatchRoutes::list_files() {
  const auto purpose = http::query_value(request().query, "purpose");
  std::vector<Json> list;
  for (const StoredFile& file : store().files().list(owner_)) {
    if (!purpose || *purpose == file.purpose) list.push_back(store().files().to_json(file));
  }
  answer_list(list);
}

void BatchRoutes::content(const StoredFile& file) {
  const auto path = store().files().path_of(file.id);
  std::error_code error;
  const uint64_t n_bytes = std::filesystem::file_size(path, error);
  if (error || n_bytes > kMaxReplyBytes)
    return answer(exchange_, Error{ErrorKind::kUnsupported,
                                   fmt::format("{} has {} bytes; {} are sent at most: take it from the server's "
                                               "--batch-dir",
                                               file.id, error ? 0 : n_bytes, kMaxReplyBytes)});
  std::ifstream stream(path, std::ios::binary);
  std::string text(n_bytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(n_bytes));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(0, stream.gcount())));
  exchange_.respond({.content_type = "application/jsonl", .body = std::move(text)});
}

void BatchRoutes::file() {
  const auto [id, rest] = id_behind(kFiles);
  const auto found = store().files().find(owner_, id);
  if (!found || (!rest.empty() && rest != "/content")) return refuse_unknown("file", id + std::string(rest));
  if (!rest.empty()) return content(*found);
  answer(exchange_, store().files().to_json(*found));
}

void BatchRoutes::delete_file() {
  const auto [id, rest] = id_behind(kFiles);
  if (!rest.empty() || !store().files().remove(owner_, id)) return refuse_unknown("file", id + std::string(rest));
  answer(exchange_, Json{{"id", id}, {"object", "file"}, {"deleted", true}});
}

void BatchRoutes::order() {
  const auto body = parse_body(request().body);
  if (!body) return answer(exchange_, body.error());
  Fields fields(*body);
  const std::string input = fields.text("input_file_id").value_or("");
  const std::string url = fields.text("endpoint").value_or("");
  const std::string window = fields.text("completion_window").value_or("24h");
  const Json* metadata = fields.object("metadata");
  if (!fields.fault() && !store().files().find(owner_, input))
    fields.refuse("input_file_id", fmt::format("there is no file {}", shown(Json(input))));
  if (!fields.fault() && !is_batch_url(url))
    fields.refuse("endpoint", fmt::format("{} is none of /v1/chat/completions, /v1/completions, /v1/embeddings and "
                                          "/v1/responses",
                                          shown(Json(url))));
  if (window != "24h") fields.refuse("completion_window", "expected \"24h\"; a batch is answered as soon as possible");
  if (metadata != nullptr && metadata->size() > kMaxMetadata) fields.refuse("metadata", "more than 16 entries");
  if (fields.fault()) return answer(exchange_, *fields.fault());
  const auto order = store().add({.id = {},
                                  .owner = owner_,
                                  .input_file = input,
                                  .url = url,
                                  .metadata = metadata == nullptr ? Json() : *metadata});
  if (!order) return answer(exchange_, order.error());
  answer(exchange_, to_json(*order));
}

void BatchRoutes::list_batches() {
  std::vector<Json> list;
  for (const BatchOrder& order : store().list(owner_)) list.push_back(to_json(order));
  answer_list(list);
}

void BatchRoutes::batch() {
  const auto [id, rest] = id_behind(kBatches);
  const auto found = store().find(owner_, id);
  if (!found || !rest.empty()) return refuse_unknown("batch", id + std::string(rest));
  answer(exchange_, to_json(*found));
}

void BatchRoutes::cancel() {
  const auto [id, rest] = id_behind(kBatches);
  const auto order = rest == "/cancel" ? store().cancel(owner_, id) : std::nullopt;
  if (!order) return refuse_unknown("batch", id + std::string(rest));
  answer(exchange_, to_json(*order));
}

template <void (BatchRoutes::*answer_by)()>
void route(const ServerCore& core, const Shared& exchange) {
  BatchRoutes routes(core, exchange);
  if (routes.has_store()) return (routes.*answer_by)();
  answer(*exchange,
         Error{ErrorKind::kUnsupported,
               "files and batches are kept where the server is started with --batch-dir FOLDER; candor batch "
               "answers a file without a server"});
}

constexpr Route kRoutes[] = {
    {.method = "POST", .path = "/v1/files", .tell = route<&BatchRoutes::upload>},
    {.method = "GET", .path = "/v1/files", .tell = route<&BatchRoutes::list_files>},
    {.method = "GET", .path = kFiles, .tell = route<&BatchRoutes::file>},
    {.method = "DELETE", .path = kFiles, .tell = route<&BatchRoutes::delete_file>},
    {.method = "POST", .path = "/v1/batches", .tell = route<&BatchRoutes::order>},
    {.method = "GET", .path = "/v1/batches", .tell = route<&BatchRoutes::list_batches>},
    {.method = "GET", .path = kBatches, .tell = route<&BatchRoutes::batch>},
    {.method = "POST", .path = kBatches, .tell = route<&BatchRoutes::cancel>},
};

}  // namespace

const Api kApi{.name = "batch", .routes = kRoutes};

}  // namespace candor::serve::batch
