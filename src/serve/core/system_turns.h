#pragma once
// What a system says in several messages, and in the middle of a conversation, put where the model's chat template has
// a place for it; where it has none, the words join the message beside them. Nothing is moved to the front, so that
// what was read before is found in the prefix cache, and nothing comes between calls of tools and their results.

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

  // False where the template has no place for it: its words are folded into another's message.
  bool add_system(Message message);
  // Of others. n_calls: of an answer; as many messages of the role `tool` are awaited.
  void add(Message message, size_t n_calls = 0);
  // What still waits for a neighbour is a turn by itself.
  std::vector<Message> finish();

 private:
  struct Held {
    Message message;
    bool is_turn = false;
  };
  // Turns are placed; the words of the others.
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
