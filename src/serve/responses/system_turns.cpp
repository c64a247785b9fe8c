// Clients send what a system says in several messages, and in the middle of a conversation; many templates know one, at
// the front.

#include <utility>

#include "serve/responses/requests.h"

namespace candor::serve::responses {
namespace {

void add_paragraph(std::string& text, const std::string& more) {
  if (!text.empty() && !more.empty()) text += "\n\n";
  text += more;
}

bool is_system(const Message& message, const ModelForm& form) {
  return message.role == "system" || (message.role == "developer" && !form.knows_developer);
}

class SystemPlacer {
 public:
  explicit SystemPlacer(const ModelForm& form) : form_(form) {}

  void add(Message message) {
    if (is_system(message, form_)) return add_system(std::move(message));
    if (message.role == "user") {
      std::string text = std::exchange(waiting_, {});
      add_paragraph(text, message.content);
      message.content = std::move(text);
    } else if (message.role == "tool") {
      add_paragraph(message.content, std::exchange(waiting_, {}));
    }
    is_front_ = false;
    placed_.push_back(std::move(message));
  }
  std::vector<Message> take() {
    if (!waiting_.empty()) placed_.push_back({.role = "user", .content = std::exchange(waiting_, {})});
    return std::move(placed_);
  }
  bool has_folded() const { return has_folded_; }

 private:
  void add_system(Message message) {
    const bool is_first = is_front_ && placed_.empty();
    if ((is_first && form_.takes_system) || (!is_front_ && form_.takes_late_system)) {
      placed_.push_back(std::move(message));
      return;
    }
    has_folded_ = true;
    const bool has_place = !placed_.empty() && placed_.back().role != "assistant";
    add_paragraph(has_place ? placed_.back().content : waiting_, message.content);
  }

  const ModelForm& form_;
  std::vector<Message> placed_;
  std::string waiting_;  // for the next message that may hold it
  bool is_front_ = true;
  bool has_folded_ = false;
};

}  // namespace

std::vector<Message> place_system(std::vector<Message> messages, const ModelForm& form,
                                  std::vector<std::string>& warnings) {
  if (form.takes_system && form.takes_late_system) return messages;
  SystemPlacer placer(form);
  for (Message& message : messages) placer.add(std::move(message));
  if (placer.has_folded()) {
    warnings.push_back(
        "the model's chat template has no place for some messages of the system: they are folded into "
        "those beside them");
  }
  return placer.take();
}

}  // namespace candor::serve::responses
