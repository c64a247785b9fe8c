#pragma once
// How the chunks of a stream are written.

#include <cstdint>

namespace candor::serve {

enum class StreamFormat : uint8_t {
  kData,      // server-sent events without names, the last one [DONE]
  kBareData,  // the same without [DONE]
  kEvents,  // server-sent events named by the chunk's "type"
  kLines,   // a line of JSON each (NDJSON)
};

}  // namespace candor::serve
