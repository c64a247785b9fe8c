#pragma once
// Places system messages that come after the first, or in the middle of a conversation, where the model's chat template
// accepts them; where it accepts none, their text is joined to the neighbouring message. Nothing moves to the front, so
// that the prefix cache still matches, and nothing comes between tool calls and their results.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "candor/request.h"
#include "serve/core/model_form.h"

namespace candor::serve {

// Messages in the order in which they were said. One thread.
class SystemTurns {
 public:
  // The form is borrowed.
  explicit SystemTurns(const ModelForm& form) : form_(form) {}

  // False where the template does not accept it: its text is joined to a neighbouring message.
  bool add_system(Message message);
  // Adds a message of another role. n_calls: the tool calls in it; as many messages of the role `tool` are awaited.
  void add(Message message, size_t n_calls = 0);
  // All messages; a system message that still waits for a neighbour becomes a turn of its own.
  std::vector<Message> finish();

 private:
  struct Held {
    Message message;
    bool is_turn = false;
  };
  // Places the held messages that are turns, and returns the text of the others.
  std::string release();
  void release_behind_result();

  const ModelForm& form_;
  std::vector<Message> placed_;
  std::vector<Held> held_;
  size_t n_awaited_ = 0;  // results
  bool is_front_ = true;
};

// Texts one below the other, with an empty line between them.
void add_paragraph(std::string& text, std::string_view more);

}  // namespace candor::serve
