#include "serve/batch/batch_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "formats/new_file.h"
#include "serve/batch/owned.h"
#include "serve/batch/stored_json.h"
#include "serve/core/generations.h"

namespace candor::serve {
namespace {

constexpr std::array<std::string_view, 5> kStatusNames = {"validating", "in_progress", "completed", "failed",
                                                          "cancelled"};

std::string_view to_string(BatchStatus status) {
  return kStatusNames[static_cast<size_t>(status)];
}

bool has_ended(const BatchOrder& order) {
  return order.status != BatchStatus::kValidating && order.status != BatchStatus::kInProgress;
}

Json stored(const BatchOrder& order) {
  return {{"id", order.id},
          {"owner", order.owner},
          {"input_file", order.input_file},
          {"output_file", order.output_file},
          {"url", order.url},
          {"metadata", order.metadata},
          {"status", to_string(order.status)},
          {"is_cancelling", order.is_cancelling},
          {"created", order.created},
          {"begun", order.begun},
          {"ended", order.ended},
          {"n_lines", order.n_lines},
          {"n_done", order.n_done},
          {"n_failed", order.n_failed},
          {"fault", order.fault}};
}

// Nothing for what this version does not know.
std::optional<BatchOrder> read_order(const Json& json) {
  const auto* status = std::ranges::find(kStatusNames, json.value("status", ""));
  if (status == kStatusNames.end()) return std::nullopt;
  return BatchOrder{.id = json.value("id", ""),
                    .owner = json.value("owner", ""),
                    .input_file = json.value("input_file", ""),
                    .output_file = json.value("output_file", ""),
                    .url = json.value("url", ""),
                    .metadata = json.value("metadata", Json()),
                    .status = static_cast<BatchStatus>(status - kStatusNames.begin()),
                    .is_cancelling = json.value("is_cancelling", false),
                    .created = json.value("created", int64_t{0}),
                    .begun = json.value("begun", int64_t{0}),
                    .ended = json.value("ended", int64_t{0}),
                    .n_lines = json.value("n_lines", uint64_t{0}),
                    .n_done = json.value("n_done", uint64_t{0}),
                    .n_failed = json.value("n_failed", uint64_t{0}),
                    .fault = json.value("fault", "")};
}

}  // namespace

Result<std::unique_ptr<BatchStore>> BatchStore::open(const BatchStoreOptions& options) {
  CANDOR_ASSIGN(std::unique_ptr<FileStore> files, FileStore::open(options.folder / "files"));
  std::error_code error;
  std::filesystem::create_directories(options.folder / "batches", error);
  if (error)
    return fail(ErrorKind::kIo, fmt::format("{}: cannot be made: {}", options.folder.string(), error.message()));
  std::filesystem::permissions(options.folder / "batches", std::filesystem::perms::owner_all, error);
  std::unique_ptr<BatchStore> store(new BatchStore(options, std::move(files)));
  store->read_folder();
  return store;
}

void BatchStore::read_folder() {
  read_stored(options_.folder / "batches", [this](const Json& json) {
    if (auto order = read_order(json)) orders_.emplace(order->id, std::move(*order));
  });
}

void BatchStore::start(http::Handler& handler, std::function<int32_t(const std::string& owner)> key_of) {
  handler_ = &handler;
  key_of_ = std::move(key_of);
  worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

void BatchStore::stop() {
  worker_.request_stop();
  if (worker_.joinable()) worker_.join();
}

Result<void> BatchStore::keep(const BatchOrder& order) const {
  return formats::write_file(options_.folder / "batches" / (order.id + ".json"), to_text(stored(order)));
}

// The oldest one of that owner that has ended goes; its files stay.
Result<void> BatchStore::make_room(const std::string& owner) {
  const size_t n_most = owner.empty() ? kMaxOrders : kMaxOrders / FileStore::kShares;
  size_t n_own = 0;
  auto oldest = orders_.end();
  for (auto at = orders_.begin(); at != orders_.end(); ++at) {
    if (at->second.owner != owner) continue;
    ++n_own;
    if (has_ended(at->second) && (oldest == orders_.end() || at->second.created < oldest->second.created)) oldest = at;
  }
  if (orders_.size() < kMaxOrders && n_own < n_most) return {};
  if (oldest == orders_.end())
    return fail(ErrorKind::kOutOfMemory,
                fmt::format("{} batches wait to be answered: cancel one, or try again later", n_own));
  std::error_code ignored;
  std::filesystem::remove(options_.folder / "batches" / (oldest->first + ".json"), ignored);
  orders_.erase(oldest);
  return {};
}

Result<BatchOrder> BatchStore::add(BatchOrder order) {
  order.id = new_id("batch_");
  order.created = unix_seconds();
  const std::lock_guard lock(mutex_);
  CANDOR_TRY(make_room(order.owner));
  CANDOR_TRY(keep(order));
  orders_.emplace(order.id, order);
  changed_.notify_all();
  return order;
}

std::vector<BatchOrder> BatchStore::list(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  return owned_by(owner, orders_);
}

std::optional<BatchOrder> BatchStore::find(const std::string& owner, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const BatchOrder* order = find_owned(owner, id, orders_);
  return order == nullptr ? std::nullopt : std::optional(*order);
}

std::optional<BatchOrder> BatchStore::cancel(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  BatchOrder* found = find_owned(owner, id, orders_);
  if (found == nullptr) return std::nullopt;
  BatchOrder& order = *found;
  if (has_ended(order)) return order;
  order.is_cancelling = true;
  if (order.status == BatchStatus::kValidating) {
    order.status = BatchStatus::kCancelled;
    order.ended = unix_seconds();
  }
  static_cast<void>(keep(order));
  return order;
}

void BatchStore::work(const std::stop_token& stop) {
  const auto next = [this] {
    const BatchOrder* first = nullptr;
    for (const auto& [id, order] : orders_) {
      if (!has_ended(order) && (first == nullptr || order.created < first->created)) first = &order;
    }
    return first == nullptr ? std::string() : first->id;
  };
  while (!stop.stop_requested()) {
    std::string id;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [&] { return !(id = next()).empty(); });
    }
    if (!stop.stop_requested() && !id.empty()) answer(id, stop);
  }
}

Result<BatchOptions> BatchStore::begin(const std::string& id) {
  BatchOrder order;
  {
    const std::lock_guard lock(mutex_);
    order = orders_.at(id);
  }
  if (!files_->find(order.owner, order.input_file))
    return fail(ErrorKind::kNotFound, fmt::format("the input, {}, is not there any more", order.input_file));
  if (order.output_file.empty() || !files_->find(order.owner, order.output_file)) {
    CANDOR_ASSIGN(
        const StoredFile output,
        files_->add({.id = {}, .owner = order.owner, .name = id + "_output.jsonl", .purpose = "batch_output"}, ""));
    order.output_file = output.id;
  }
  const std::lock_guard lock(mutex_);
  BatchOrder& kept = orders_.at(id);
  kept.output_file = order.output_file;
  CANDOR_TRY(keep(kept));
  return BatchOptions{.input = files_->path_of(order.input_file),
                      .output = files_->path_of(order.output_file),
                      .n_at_once = options_.n_at_once,
                      .url = order.url,
                      .key = key_of_(order.owner),
                      .model = options_.model};
}

void BatchStore::answer(const std::string& id, const std::stop_token& stop) {
  const auto options = begin(id);
  if (!options) return end(id, options.error(), false, stop);
  auto batch = Batch::open(*options);
  if (!batch) return end(id, batch.error(), false, stop);
  const auto goes_on = [&](const BatchCounts& counts) {
    const std::lock_guard lock(mutex_);
    BatchOrder& order = orders_.at(id);
    order.n_lines = counts.n_lines;
    order.n_done = counts.n_before + counts.n_done;
    order.n_failed = counts.n_failed_before + counts.n_failed;
    if (order.status == BatchStatus::kValidating) {
      order.status = BatchStatus::kInProgress;
      order.begun = unix_seconds();
      static_cast<void>(keep(order));
    }
    return !order.is_cancelling && !stop.stop_requested();
  };
  const auto result = batch->run(*handler_, goes_on);
  goes_on(batch->counts());
  end(id, result, batch->is_complete(), stop);
}

void BatchStore::end(const std::string& id, const Result<void>& result, bool is_complete, const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  BatchOrder& order = orders_.at(id);
  if (!result) {
    order.status = BatchStatus::kFailed;
    order.fault = result.error().message;
  } else if (is_complete) {
    order.status = BatchStatus::kCompleted;
  } else if (order.is_cancelling) {
    order.status = BatchStatus::kCancelled;
  } else if (stop.stop_requested()) {
    return;
  }
  order.ended = unix_seconds();
  static_cast<void>(keep(order));
}

Json to_json(const BatchOrder& order) {
  const auto at = [&order](BatchStatus status) { return order.status == status ? Json(order.ended) : Json(); };
  const bool is_cancelling = order.is_cancelling && !has_ended(order);
  Json json = {{"id", order.id},
               {"object", "batch"},
               {"endpoint", order.url},
               {"errors", nullptr},
               {"input_file_id", order.input_file},
               {"completion_window", "24h"},
               {"status", is_cancelling ? "cancelling" : to_string(order.status)},
               {"output_file_id", order.output_file.empty() ? Json() : Json(order.output_file)},
               {"error_file_id", nullptr},
               {"created_at", order.created},
               {"in_progress_at", order.begun == 0 ? Json() : Json(order.begun)},
               {"expires_at", nullptr},
               {"completed_at", at(BatchStatus::kCompleted)},
               {"failed_at", at(BatchStatus::kFailed)},
               {"cancelled_at", at(BatchStatus::kCancelled)},
               {"request_counts",
                {{"total", order.n_lines}, {"completed", order.n_done - order.n_failed}, {"failed", order.n_failed}}},
               {"metadata", order.metadata}};
  if (!order.fault.empty())
    json["errors"] = {
        {"object", "list"},
        {"data",
         Json::array({{{"code", "invalid_batch"}, {"message", order.fault}, {"param", nullptr}, {"line", nullptr}}})}};
  return json;
}

}  // namespace candor::serve
