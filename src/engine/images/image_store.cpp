#include "engine/images/image_store.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/fault.h"
#include "platform/float_mode.h"

namespace candor::engine {
namespace {

// Keys of rows go down from here; -1 is kNoToken.
constexpr int64_t kFirstKey = -2;
constexpr int64_t kMostPatchBytes = int64_t{2} << 30;
constexpr size_t kMostKnown = 1 << 16;  // contents whose keys are remembered, beyond those in use
constexpr int64_t kLastKey = std::numeric_limits<TokenId>::min();

size_t bytes_of(const StoredImage& image) {
  return image.encoded().rows.size() * sizeof(float);
}

}  // namespace

void StoredImage::drop_patches() {
  for (image::Tile& tile : prepared_.tiles) tile.patches = {};
  if (counted_) *counted_ -= std::exchange(patch_bytes_, 0);
}

ImageStore::ImageStore(const LoadedVision& vision, size_t cache_bytes, std::function<void()> on_progress)
    : vision_(vision),
      cache_bytes_(cache_bytes),
      on_progress_(std::move(on_progress)),
      next_key_(kFirstKey),
      thread_([this] { run(); }) {}

ImageStore::~ImageStore() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

SharedImage ImageStore::find(const Sha256& digest) {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(digest);
  SharedImage image = known == known_.end() ? nullptr : known->second.image.lock();
  if (image == nullptr) return nullptr;
  const auto kept = std::ranges::find(kept_, image);
  if (kept != kept_.end()) kept_.splice(kept_.begin(), kept_, kept);
  return image;
}

Result<SharedImage> ImageStore::add(SharedImage image) {
  int64_t n_bytes = 0;
  for (const image::Tile& tile : image->prepared_.tiles) n_bytes += std::ssize(tile.patches) * int64_t{sizeof(float)};
  const std::lock_guard lock(mutex_);
  const int64_t n_waiting = patch_bytes_->load();
  if (n_waiting > 0 && n_waiting + n_bytes > kMostPatchBytes) {
    return fail(ErrorKind::kOverloaded, "the images that wait take " + std::to_string(n_waiting >> 20) +
                                            " MiB, and at most " + std::to_string(kMostPatchBytes >> 20) +
                                            " are kept: send fewer or smaller images at once, or try again later");
  }
  if (known_.size() >= kMostKnown)
    std::erase_if(known_, [](const auto& entry) { return entry.second.image.expired(); });
  Known& known = known_[image->digest()];
  if (SharedImage first = known.image.lock()) return first;
  if (known.first_key == 0) {
    // Images that came before this many rows have left the prefix cache long ago.
    if (next_key_ - image->n_rows() < kLastKey) next_key_ = kFirstKey;
    known.first_key = static_cast<TokenId>(next_key_);
    next_key_ -= image->n_rows();
  }
  *patch_bytes_ += image->patch_bytes_ = n_bytes;
  image->counted_ = patch_bytes_;
  image->first_key_ = known.first_key;
  known.image = image;
  return image;
}

void ImageStore::encode(const SharedImage& image) {
  const std::lock_guard lock(mutex_);
  if (image->stage() == StoredImage::Stage::kReady) ++stats_.n_reused;
  if (image->stage() != StoredImage::Stage::kNew) return;
  image->stage_.store(StoredImage::Stage::kQueued, std::memory_order_release);
  queue_.push_back(image);
  changed_.notify_all();
}

ImageStats ImageStore::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void ImageStore::run() {
  const platform::ScopedFloatMode float_mode;
  while (const SharedImage image = next()) {
    work_on(*image);
    keep(image);
    on_progress_();
  }
}

// nullptr at the end.
SharedImage ImageStore::next() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_stopped_ || !queue_.empty(); });
    if (is_stopped_) return nullptr;
    SharedImage image = std::move(queue_.front());
    queue_.pop_front();
    if (image.use_count() > 1) return image;
  }
}

void ImageStore::work_on(StoredImage& image) {
  const auto began = std::chrono::steady_clock::now();
  auto done = guarded([&] { return encode_tiles(image); });
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  if (!done) image.error_ = std::move(done).error();
  image.drop_patches();
  const std::lock_guard lock(mutex_);
  stats_.n_encoded += done ? 1 : 0;
  stats_.encode_ms += took.count();
}

Result<void> ImageStore::encode_tiles(StoredImage& image) {
  CANDOR_ASSIGN(vision::Encoder * encoder, this->encoder());
  for (const image::Tile& tile : image.prepared_.tiles) {
    {
      const std::lock_guard lock(mutex_);
      if (is_stopped_) return fail(ErrorKind::kCancelled, "the engine ends");
    }
    CANDOR_TRY(encoder->encode(tile, image.encoded_));
  }
  encoder->finish(image.prepared_, image.encoded_);
  return {};
}

Result<vision::Encoder*> ImageStore::encoder() {
  if (encoder_ == nullptr) {
    CANDOR_ASSIGN(encoder_, load_encoder(vision_));
    const std::lock_guard lock(mutex_);
    stats_.tower_bytes = static_cast<int64_t>(encoder_->n_bytes());
  }
  return encoder_.get();
}

// A failed image is tried again by whoever sends it next.
void ImageStore::keep(const SharedImage& image) {
  const std::lock_guard lock(mutex_);
  const bool is_ready = !image->error_.has_value();
  image->stage_.store(is_ready ? StoredImage::Stage::kReady : StoredImage::Stage::kFailed, std::memory_order_release);
  if (!is_ready) {
    known_[image->digest()].image.reset();
    return;
  }
  kept_.push_front(image);
  stats_.cached_bytes += static_cast<int64_t>(bytes_of(*image));
  while (stats_.cached_bytes > static_cast<int64_t>(cache_bytes_)) {
    stats_.cached_bytes -= static_cast<int64_t>(bytes_of(*kept_.back()));
    kept_.pop_back();
  }
}

}  // namespace candor::engine
