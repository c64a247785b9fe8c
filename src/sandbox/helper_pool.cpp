#include "sandbox/helper_pool.h"

#include <candor_helper.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace candor::sandbox {
namespace {

std::span<const std::byte> linked_program() {
  return std::as_bytes(std::span(candor_helper_image, candor_helper_image_end));
}

// Before the pixels of a reply to an image: width and height.
constexpr size_t kImageHead = 8;

int32_t side_at(std::string_view reply, size_t at) {
  uint32_t side = 0;
  for (size_t i = 0; i < 4; ++i) side |= uint32_t{static_cast<unsigned char>(reply[at + i])} << (8 * i);
  return side <= CANDOR_HELPER_MOST_SIDE ? static_cast<int32_t>(side) : 0;
}

Error refusal_of_image(const HelperReply& reply) {
  const std::string message = reply.is_end ? "the image " + reply.text : reply.text;
  switch (reply.status) {
    case HelperStatus::kUnsupported:
      return {ErrorKind::kUnsupported, message};
    case HelperStatus::kInternal:
      return {ErrorKind::kInternal, "an image cannot be decoded: " + message};
    default:
      return {ErrorKind::kInvalidInput, message};
  }
}

}  // namespace

// A process and what it holds. Belongs to the pool while it is idle, and to its job while it works.
struct HelperPool::Helper {
  std::unique_ptr<HelperProcess> process;
  std::array<SharedAsset, CANDOR_HELPER_SLOTS> slots;
  size_t next_slot = 0;
};

// A helper for one job.
class HelperPool::Lease {
 public:
  Lease(HelperPool& pool, std::unique_ptr<Helper> helper, bool is_trial)
      : pool_(pool), helper_(std::move(helper)), is_trial_(is_trial) {}
  ~Lease() { pool_.give_back(std::move(helper_), is_trial_); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Helper& helper() { return *helper_; }

 private:
  HelperPool& pool_;
  std::unique_ptr<Helper> helper_;
  bool is_trial_;
};

HelperPool::HelperPool() : HelperPool(HelperOptions{}) {}
HelperPool::HelperPool(const HelperOptions& options) : options_(options) {}
HelperPool::~HelperPool() = default;

Result<HelperReply> HelperPool::compile_template(const SharedAsset& source) {
  return run({.asset = source});
}

Result<HelperReply> HelperPool::render(const SharedAsset& source, std::string_view context_json, int64_t now_seconds) {
  std::string bytes(sizeof now_seconds, '\0');
  bytes.reserve(bytes.size() + context_json.size());
  for (size_t i = 0; i < sizeof now_seconds; ++i) {
    bytes[i] = static_cast<char>(static_cast<uint64_t>(now_seconds) >> (8 * i) & 0xff);
  }
  bytes += context_json;
  return run({.asset = source, .request = {.kind = CANDOR_HELPER_RENDER, .bytes = bytes}});
}

Result<HelperReply> HelperPool::try_constraint(const SharedAsset& vocabulary, uint8_t kind, std::string_view source) {
  return run({.asset = vocabulary,
              .request = {.kind = CANDOR_HELPER_CONSTRAINT, .detail = kind, .bytes = source},
              .is_trial = true});
}

std::span<const uint8_t> DecodedImage::rgb() const {
  if (reply.size() < kImageHead) return {};
  return std::span(reinterpret_cast<const uint8_t*>(reply.data()), reply.size()).subspan(kImageHead);
}

Result<DecodedImage> HelperPool::decode_image(std::string_view file) {
  if (file.size() > CANDOR_HELPER_MOST_BYTES) {
    return fail(ErrorKind::kInvalidInput, fmt::format("the image has {} bytes, at most {} are read; make it smaller",
                                                      file.size(), CANDOR_HELPER_MOST_BYTES));
  }
  static const SharedAsset kNone;
  CANDOR_ASSIGN(HelperReply reply,
                run({.asset = kNone, .request = {.kind = CANDOR_HELPER_IMAGE, .bytes = file}, .is_trial = true}));
  if (reply.status != HelperStatus::kOk) return refusal_of_image(reply);
  const bool has_head = reply.text.size() >= kImageHead;
  DecodedImage image;
  if (has_head)
    image = {.width = side_at(reply.text, 0), .height = side_at(reply.text, 4), .reply = std::move(reply.text)};
  const auto n_pixels = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  if (n_pixels > 0 && image.rgb().size() == 3 * n_pixels) return image;
  return fail(ErrorKind::kInternal, "a helper process wrote an image that is none");
}

const TimeLimits& HelperPool::limits_of(const HelperRequest& request) const {
  return request.kind == CANDOR_HELPER_IMAGE ? options_.image : options_.job;
}

void HelperPool::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  for (HelperProcess* process : busy_) process->kill();
  freed_.notify_all();
}

Error HelperPool::stopped() const {
  return {ErrorKind::kCancelled, "the engine is shutting down"};
}

Result<HelperReply> HelperPool::run(const Job& job) {
  CANDOR_ASSIGN(auto helper, take(job));
  Lease lease(*this, std::move(helper), job.is_trial);
  auto reply = run_on(lease.helper(), job);
  if (reply) return reply;
  const std::lock_guard lock(mutex_);
  return is_stopped_ ? stopped() : reply;
}

Result<HelperReply> HelperPool::run_on(Helper& helper, const Job& job) {
  if (helper.process == nullptr || !helper.process->is_usable()) CANDOR_TRY(start(helper));
  if (job.asset == nullptr) return helper.process->ask(job.request, limits_of(job.request));
  HelperReply refusal;
  CANDOR_ASSIGN(const size_t slot, provide(helper, job.asset, refusal));
  if (refusal.status != HelperStatus::kOk || job.request.kind == 0) return refusal;
  HelperRequest request = job.request;
  request.slot = static_cast<uint8_t>(slot);
  return helper.process->ask(request, limits_of(request));
}

// The slot of the asset, or what the helper says against it.
Result<size_t> HelperPool::provide(Helper& helper, const SharedAsset& asset, HelperReply& refusal) {
  const auto held = std::ranges::find(helper.slots, asset);
  if (held != helper.slots.end()) return static_cast<size_t>(held - helper.slots.begin());
  const size_t slot = std::exchange(helper.next_slot, (helper.next_slot + 1) % helper.slots.size());
  const bool is_template = asset->kind == HelperAsset::Kind::kTemplate;
  const auto kind = is_template ? CANDOR_HELPER_TEMPLATE : CANDOR_HELPER_VOCABULARY;
  helper.slots[slot] = nullptr;
  CANDOR_ASSIGN(refusal,
                helper.process->ask(
                    {.kind = static_cast<uint8_t>(kind), .slot = static_cast<uint8_t>(slot), .bytes = asset->bytes},
                    is_template ? options_.job : options_.vocabulary));
  if (refusal.status == HelperStatus::kOk) helper.slots[slot] = asset;
  return slot;
}

// In place of one that has ended.
Result<void> HelperPool::start(Helper& helper) {
  CANDOR_ASSIGN(auto process, start_process());
  helper.slots = {};
  const std::lock_guard lock(mutex_);
  std::erase(busy_, helper.process.get());
  std::swap(helper.process, process);
  busy_.push_back(helper.process.get());
  if (is_stopped_) return stopped();
  return {};
}

// Some systems execute nothing that is in memory alone, others nothing in a temporary folder.
Result<std::unique_ptr<HelperProcess>> HelperPool::start_process() {
  const std::lock_guard lock(program_mutex_);
  if (program_) return HelperProcess::start(program_);
  const auto bytes = options_.program.empty() ? linked_program() : options_.program;
  Error first;
  for (const auto& open : {program_in_memory, program_in_temporary_file}) {
    auto program = open(bytes);
    auto process = program ? HelperProcess::start(*program) : program.error();
    if (process) {
      program_ = std::move(*program);
      return process;
    }
    if (process.error().kind != ErrorKind::kIo) return process;
    if (first.message.empty()) first = process.error();
  }
  return first;
}

Result<std::unique_ptr<HelperPool::Helper>> HelperPool::take(const Job& job) {
  const int32_t most_trials = std::max(1, options_.max_helpers / 2);
  std::unique_lock lock(mutex_);
  const bool is_free = freed_.wait_for(lock, options_.job.clock, [&] {
    return is_stopped_ || (n_jobs_ < options_.max_helpers && (!job.is_trial || n_trials_ < most_trials));
  });
  if (is_stopped_) return stopped();
  if (!is_free) return fail(ErrorKind::kBusy, "all helper processes are busy; try again later");
  ++n_jobs_;
  if (job.is_trial) ++n_trials_;
  if (idle_.empty()) return std::make_unique<Helper>();
  const auto holds = [&](const auto& helper) {
    return std::ranges::find(helper->slots, job.asset) != helper->slots.end();
  };
  auto best = std::ranges::find_if(idle_.rbegin(), idle_.rend(), holds);
  if (best == idle_.rend()) best = idle_.rbegin();
  std::unique_ptr<Helper> helper = std::move(*best);
  idle_.erase(std::next(best).base());
  if (helper->process != nullptr) busy_.push_back(helper->process.get());
  return helper;
}

void HelperPool::give_back(std::unique_ptr<Helper> helper, bool is_trial) {
  std::unique_ptr<Helper> ended = std::move(helper);
  {
    const std::lock_guard lock(mutex_);
    --n_jobs_;
    if (is_trial) --n_trials_;
    std::erase(busy_, ended->process.get());
    if (ended->process != nullptr && ended->process->is_usable()) idle_.push_back(std::move(ended));
  }
  freed_.notify_all();
}

}  // namespace candor::sandbox
