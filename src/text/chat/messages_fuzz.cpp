// What a client controls of a chat, through templates of the shapes that published models have. First byte: which
// template and which options; then, parted by NUL: tools, further variables, and messages as role, content, more of it.
// No input ends the process, the same prompt comes twice, and text that was typed never becomes a control token.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_budget.h"
#include "text/chat/chat_template.h"
#include "text/small_vocabularies.h"

namespace {

using candor::ChatPrompt;
using candor::Message;
using candor::text::ChatTemplate;
using candor::text::Tokenizer;

// Plain turns; tools as JSON with calls; a namespace and rules about turns; reasoning that is cut out of old turns;
// arguments item by item; filters over what came.
constexpr std::string_view kTemplates[] = {
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",

    "{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% for c in m.tool_calls or [] %}<tool_call>\n"
    "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson(indent=2) }}}\n</tool_call>"
    "{% endfor %}<|im_end|>\n{% endfor %}",

    "{% set ns = namespace(n=0, system='') %}{% for m in messages %}{% if m['role'] == 'system' %}"
    "{% set ns.system = ns.system + m['content'] | trim %}{% else %}{% if (m['role'] == 'user') != (ns.n % 2 == 0) %}"
    "{{ raise_exception('turns must alternate') }}{% endif %}{% set ns.n = ns.n + 1 %}"
    "{{ '[INST]' + m['content'] | trim + '[/INST]' + ns.system }}{% endif %}{% endfor %}{{ strftime_now('%d %b %Y') }}",

    "{% for m in messages %}{% set text = m.content if m.content is string else '' %}{% if '</think>' in text %}"
    "{% set text = text.split('</think>')[-1].lstrip('\\n') %}{% endif %}{% if m.reasoning_content is defined %}<think>"
    "{{ m.reasoning_content.strip('\\n') }}</think>{% endif %}{{ text.rstrip() | replace('a', 'bb') }}"
    "{{ loop.index0 }}{{ messages[::-1][loop.index0].role | upper }}{% endfor %}",

    "{% for t in tools or [] %}{% for k, v in t.items() %}{{ k }}: {{ v }};{% endfor %}{% endfor %}"
    "{% for m in messages %}{{ m.role | title }}: {{ m.content }}{% for c in m.tool_calls or [] %}"
    "{% for k, v in c.function.arguments | items %}<{{ k }}>{{ v if v is string else v | tojson }}</{{ k }}>"
    "{% endfor %}{% endfor %}{% endfor %}{% for k, v in extra | default({}) | dictsort %}{{ k ~ v }}{% endfor %}",

    "{{ messages | map(attribute='role') | join(', ') }} {{ messages | selectattr('content', 'string') | list "
    "| length }} {{ (messages | first).content | default('', true) | indent(4) }} {{ (messages | last) | tojson }}"
    " {{ width | default(3) | int }} {{ (words | default([])) | sort | unique | join(sep | default('-')) }}"
    " {% for g in messages | groupby('role') %}{{ g[0] }}{{ g[1] | length }}{% endfor %}"};

const Tokenizer& message_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = [] {
    const candor::testing::MemoryModelFile file = candor::testing::small_bpe("qwen2");
    auto made = Tokenizer::from_model_file(file);
    CANDOR_CHECK(made.has_value());
    return std::move(*made);
  }();
  return *tokenizer;
}

const ChatTemplate& template_of(size_t choice) {
  static candor::sandbox::HelperPool helpers;
  static const std::vector<ChatTemplate> templates = [] {
    std::vector<ChatTemplate> made;
    for (const std::string_view source : kTemplates) {
      auto compiled = ChatTemplate::compile(source, message_tokenizer(), helpers);
      CANDOR_CHECK(compiled.has_value());
      made.push_back(std::move(*compiled));
    }
    return made;
  }();
  return templates[choice % templates.size()];
}

std::string next_field(std::string_view& rest) {
  const size_t end = std::min(rest.find('\0'), rest.size());
  const std::string field(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return field;
}

// What the message's own text adds: the first template writes two control tokens a message and one at the end, always.
void check_typed_text(const std::vector<Message>& messages) {
  ChatPrompt plain{.messages = messages};
  for (Message& message : plain.messages) message.extra_json.clear();
  const auto prompt = template_of(0).render(plain, 0);
  if (!prompt) return;
  const auto tokens = candor::text::tokenize_prompt(message_tokenizer(), *prompt);
  CANDOR_CHECK(tokens.has_value());
  const auto is_control = [](candor::TokenId id) {
    return message_tokenizer().kind(id) == candor::text::TokenKind::kControl;
  };
  const auto n_control = static_cast<size_t>(std::ranges::count_if(*tokens, is_control));
  CANDOR_CHECK(n_control <= 2 * messages.size() + 2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ChatTemplate& chosen = template_of(data[0]);
  const candor::testing::FuzzBudget budget(size);
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  ChatPrompt chat{.add_generation_prompt = (data[0] & 0x80) == 0, .continue_final = (data[0] & 0x40) != 0};
  chat.tools_json = next_field(rest);
  chat.kwargs_json = next_field(rest);
  while (!rest.empty()) {
    Message& message = chat.messages.emplace_back();
    message.role = next_field(rest);
    message.content = next_field(rest);
    message.extra_json = next_field(rest);
  }
  const auto prompt = chosen.render(chat, 0);
  const auto again = chosen.render(chat, 0);
  CANDOR_CHECK(prompt.has_value() == again.has_value());
  if (prompt) {
    CANDOR_CHECK(prompt->text == again->text && prompt->breaks == again->breaks);
    CANDOR_CHECK(candor::text::tokenize_prompt(message_tokenizer(), *prompt).has_value());
  } else {
    CANDOR_CHECK(prompt.error().message.find('\n') == std::string::npos);
  }
  check_typed_text(chat.messages);
  return 0;
}
