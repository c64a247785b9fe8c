#pragma once
// Where a row looked in the images of its prompt. Engine thread only.

#include <span>
#include <vector>

#include "candor/event.h"
#include "engine/request/active_request.h"

namespace candor::engine {

// One for each image of the prompt. shares: of the positions before the row (PickInput::attention); empty: none are
// known, and nothing is shown.
std::vector<ImageAttention> image_attention(const ActiveRequest& request, std::span<const double> shares);

}  // namespace candor::engine
