#include "model/hub/made_tensor.h"

#include <string>
#include <utility>

#include "base/error.h"
#include "platform/huge_buffer.h"

namespace candor::model {

formats::CopySource source_from(const TensorView& from, const formats::CopySource* made, WriteTensor write) {
  if (made == nullptr) {
    return {[from, write = std::move(write)](std::byte* to) -> Result<void> {
              write(from, to);
              return {};
            },
            {{from.data, from.n_bytes}}};
  }
  return {[make = made->write, from, write = std::move(write)](std::byte* to) -> Result<void> {
            CANDOR_ASSIGN(auto buffer, platform::HugeBuffer::allocate(from.n_bytes, std::string(from.name)));
            CANDOR_TRY(make(buffer.data()));
            TensorView standing = from;
            standing.data = buffer.data();
            write(standing, to);
            return {};
          },
          made->bytes};
}

}  // namespace candor::model
