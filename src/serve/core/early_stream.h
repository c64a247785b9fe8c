#pragma once
// The beginning of a streamed reply that is sent while the model is still being loaded (progress frames or comments),
// and how each API writes it. The reply continues the same stream.

#include <cstdint>
#include <string>

#include "serve/core/stream_format.h"
#include "serve/http/message.h"

namespace candor::serve {

struct EarlyStream {
  std::string model;     // as the client wrote it; "": none was named
  std::string number;    // that the reply will have (core/reply.h)
  int64_t created = 0;   // seconds since 1970
  int64_t n_frames = 0;  // said already
};

// How an API writes the early part of a stream, in whole frames of its own.
struct LoadingForm {
  StreamFormat format = StreamFormat::kData;
  bool streams_unasked = false;  // where the body does not say
  // One frame; nullptr: the route does not stream.
  std::string (*words)(const EarlyStream& stream) = nullptr;
  // What ends the stream where there will be no reply; nullptr: the interface's plain error.
  std::string (*last_words)(const EarlyStream& stream, const http::HttpResponse& response) = nullptr;
};
// The same as a comment, which every reader of server-sent events skips.
std::string loading_comment(const EarlyStream& stream);

}  // namespace candor::serve
