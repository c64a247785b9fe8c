#pragma once
// Files of images to what a prompt needs of them: decoded in a helper process, cut as the model's tower wants them. Any
// thread.

#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "candor/info.h"
#include "engine/images/image_store.h"
#include "engine/open/loaded_vision.h"
#include "sandbox/helper_pool.h"

namespace candor::engine {

class ImageReader {
 public:
  // All are borrowed.
  ImageReader(const LoadedVision& vision, ImageStore& store, sandbox::HelperPool& helpers)
      : vision_(vision), store_(store), helpers_(helpers) {}

  const vision::VisionSpec& spec() const { return vision_.spec; }
  // Reads parts of all weights, the first time.
  Result<VisionInfo> info() const { return vision_info(vision_); }
  // The image of this file, decoded only where the store does not know it. number: of the request's, from 1, for
  // errors.
  Result<SharedImage> read(std::string_view file, size_t number) const;

 private:
  const LoadedVision& vision_;
  ImageStore& store_;
  sandbox::HelperPool& helpers_;
};

}  // namespace candor::engine
