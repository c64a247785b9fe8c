#pragma once
// The images that requests hold, each once, by the content of its file; the thread that encodes them; and those that
// were encoded, kept beyond their requests as far as there is room. The tower's weights are read with the first image.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "base/sha256.h"
#include "candor/info.h"
#include "engine/open/loaded_vision.h"
#include "image/prepare.h"
#include "vision/encoder.h"
#include "vision/row_regions.h"

namespace candor::engine {

// Memory of patches that wait for the tower, over all images.
using PatchBytes = std::shared_ptr<std::atomic<int64_t>>;

// One content. Constant once made, but for what says otherwise.
class StoredImage {
 public:
  StoredImage(Sha256 digest, image::Prepared prepared, std::vector<vision::RowGrid> grids,
              std::vector<int32_t> rows_of_tiles)
      : digest_(digest),
        prepared_(std::move(prepared)),
        grids_(std::move(grids)),
        rows_of_tiles_(std::move(rows_of_tiles)),
        n_rows_(std::accumulate(rows_of_tiles_.begin(), rows_of_tiles_.end(), 0)) {}
  ~StoredImage() { drop_patches(); }
  StoredImage(const StoredImage&) = delete;
  StoredImage& operator=(const StoredImage&) = delete;

  const Sha256& digest() const { return digest_; }
  int32_t n_rows() const { return n_rows_; }
  // What the rows of each tile show.
  std::span<const vision::RowGrid> grids() const { return grids_; }
  std::span<const int32_t> rows_of_tiles() const { return rows_of_tiles_; }
  TokenId first_key() const { return first_key_; }
  // The tiles' sizes and their grid. The patches go when they were encoded.
  const image::Prepared& prepared() const { return prepared_; }

  // Any thread.
  enum class Stage : uint8_t { kNew, kQueued, kReady, kFailed };
  Stage stage() const { return stage_.load(std::memory_order_acquire); }
  // REQUIRES: stage() is kReady, kFailed.
  const vision::EncodedImage& encoded() const { return encoded_; }
  const Error& error() const { return *error_; }

 private:
  friend class ImageStore;
  void drop_patches();

  const Sha256 digest_;
  image::Prepared prepared_;
  const std::vector<vision::RowGrid> grids_;
  const std::vector<int32_t> rows_of_tiles_;
  const int32_t n_rows_;
  TokenId first_key_ = 0;
  PatchBytes counted_{};  // where its patches are counted; nullptr: nowhere
  int64_t patch_bytes_ = 0;
  // The store's thread, until the stage tells.
  vision::EncodedImage encoded_;
  std::optional<Error> error_;
  std::atomic<Stage> stage_{Stage::kNew};
};
using SharedImage = std::shared_ptr<StoredImage>;

class ImageStore {
 public:
  // on_progress: called on the store's thread when an image is ready, or has failed.
  ImageStore(const LoadedVision& vision, size_t cache_bytes, std::function<void()> on_progress);
  // Ends behind the tile in work.
  ~ImageStore();
  ImageStore(const ImageStore&) = delete;
  ImageStore& operator=(const ImageStore&) = delete;

  // Any thread.
  // nullptr where no image of this content is known.
  SharedImage find(const Sha256& digest);
  // The image itself, or the one of this content that another thread added first. kOverloaded where too many wait.
  Result<SharedImage> add(SharedImage image);
  // It is wanted: encoded, unless it is already. An image that nobody holds any more when its turn comes is left out.
  void encode(const SharedImage& image);
  ImageStats stats() const;

 private:
  void run();
  SharedImage next();
  void work_on(StoredImage& image);
  Result<void> encode_tiles(StoredImage& image);
  Result<vision::Encoder*> encoder();
  void keep(const SharedImage& image);

  // What is remembered of a content: its rows' keys outlive it.
  struct Known {
    std::weak_ptr<StoredImage> image;
    TokenId first_key = 0;
  };

  const LoadedVision& vision_;
  const size_t cache_bytes_;
  const std::function<void()> on_progress_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::map<Sha256, Known> known_;
  std::list<SharedImage> kept_;  // encoded; the one that was used last first
  std::deque<SharedImage> queue_;
  int64_t next_key_ = 0;
  PatchBytes patch_bytes_ = std::make_shared<std::atomic<int64_t>>(0);
  ImageStats stats_;
  bool is_stopped_ = false;

  std::unique_ptr<vision::Encoder> encoder_;  // the store's thread; made with the first image
  std::thread thread_;
};

}  // namespace candor::engine
