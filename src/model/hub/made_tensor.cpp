#include "model/hub/made_tensor.h"

#include <utility>

#include "base/error.h"

namespace candor::model {

formats::CopySource source_from(const TensorView& from, const formats::CopySource* made, WriteTensor write) {
  if (made == nullptr) {
    return {[from, write = std::move(write)](std::byte* to) -> Result<void> {
              write(from, to);
              return {};
            },
            {from.bytes()}};
  }
  return formats::behind(*made, from.n_bytes, [from, write = std::move(write)](const std::byte* bytes, std::byte* to) {
    TensorView standing = from;
    standing.data = bytes;
    write(standing, to);
  });
}

}  // namespace candor::model
