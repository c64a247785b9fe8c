#pragma once
// Replies of /completion and /infill.

#include <cstddef>
#include <memory>

#include "serve/core/reply.h"
#include "serve/llama_cpp/requests.h"

namespace candor::serve::llama_cpp {

std::unique_ptr<Reply> make_completion_reply(const Engine& engine, ReplyHead head, ReplyOptions options,
                                             size_t n_choices);

}  // namespace candor::serve::llama_cpp
