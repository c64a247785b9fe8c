#include "serve/core/system_turns.h"

#include <utility>

#include "serve/core/message_parts.h"

namespace candor::serve {

void add_paragraph(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += "\n\n";
  text += more;
}

bool SystemTurns::add_system(Message message) {
  const bool is_first = placed_.empty() && held_.empty();
  if (is_front_ && form_.takes_system) {
    if (is_first || form_.takes_late_system) {
      placed_.push_back(std::move(message));
    } else {
      add_paragraph(placed_.back(), message.content, Side::kBehind);
    }
    return true;
  }
  const bool is_turn = !is_front_ && form_.takes_late_system;
  const bool has_neighbour = !placed_.empty() && placed_.back().role != "assistant";
  if (is_turn && n_awaited_ == 0) {
    placed_.push_back(std::move(message));
  } else if (!is_turn && has_neighbour) {
    add_paragraph(placed_.back(), message.content, Side::kBehind);
  } else {
    held_.push_back({std::move(message), is_turn});
  }
  return is_turn;
}

void SystemTurns::add(Message message, size_t n_calls) {
  is_front_ = false;
  if (message.role == "tool") {
    n_awaited_ -= n_awaited_ > 0 ? 1 : 0;
    placed_.push_back(std::move(message));
    if (n_awaited_ == 0) release_behind_result();
    return;
  }
  std::string words = release();
  n_awaited_ = n_calls;
  if (message.role == "user") {
    add_paragraph(message, words, Side::kBefore);
  } else if (!words.empty()) {
    placed_.push_back({.role = "user", .content = std::move(words)});
  }
  placed_.push_back(std::move(message));
}

std::vector<Message> SystemTurns::finish() {
  if (std::string words = release(); !words.empty()) placed_.push_back({.role = "user", .content = std::move(words)});
  return std::move(placed_);
}

std::string SystemTurns::release() {
  std::string words;
  for (Held& held : std::exchange(held_, {})) {
    if (held.is_turn) {
      placed_.push_back(std::move(held.message));
    } else {
      add_paragraph(words, held.message.content);
    }
  }
  return words;
}

void SystemTurns::release_behind_result() {
  const size_t result = placed_.size() - 1;
  const std::string words = release();
  add_paragraph(placed_[result], words, Side::kBehind);
}

}  // namespace candor::serve
