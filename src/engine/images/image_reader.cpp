#include "engine/images/image_reader.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "image/prepare.h"

namespace candor::engine {
namespace {

Error of_image(size_t number, Error error) {
  error.message = "image " + std::to_string(number) + ": " + error.message;
  return error;
}

}  // namespace

Result<SharedImage> ImageReader::read(std::string_view file, size_t number) const {
  const Sha256 digest = sha256(file);
  if (SharedImage known = store_.find(digest)) return known;
  const auto decoded = helpers_.decode_image(file);
  if (!decoded) return of_image(number, decoded.error());
  auto prepared = image::prepare({decoded->width, decoded->height, decoded->rgb()}, vision_.spec.recipe);
  if (!prepared) return of_image(number, std::move(prepared).error());
  std::vector<int32_t> rows = vision::rows_of_tiles(vision_.spec, *prepared);
  std::vector<vision::RowGrid> grids = vision::row_grids(vision_.spec, *prepared);
  auto stored =
      store_.add(std::make_shared<StoredImage>(digest, std::move(*prepared), std::move(grids), std::move(rows)));
  if (!stored) return of_image(number, std::move(stored).error());
  return stored;
}

}  // namespace candor::engine
