// The messages of the branch that is shown, or what to begin with.
import { change } from "../store/library";
import { settings, shown, store } from "../store/store";
import { withPreset } from "../store/settings";
import { Message } from "./message";
import { VirtualList } from "./virtual_list";

const openings = [
  "Tell me a story about a cat that finds a lighthouse.",
  "Once upon a time, a small dog",
  "Write a short poem about rain.",
  "Why is the sky blue?",
];

function Welcome() {
  const parameters = store.parameters.value;
  const model = parameters?.model;
  return (
    <div class="welcome">
      <h2>Ask, and see why.</h2>
      <p>
        Every token can be opened: its candidates, what each stage cut, the number that was drawn. The same seed gives the same answer, bit for
        bit.
      </p>
      {model && (
        <p class="facts">
          {model.id} · {model.family} · {(model.n_parameters / 1e6).toFixed(model.n_parameters < 1e8 ? 1 : 0)} M parameters · context {model.n_ctx} ·{" "}
          {model.backend}
        </p>
      )}
      {model && !model.has_chat_template && (
        <p class="notice" role="alert">
          This model has no chat template{model.chat_template_error ? ` that can be used (${model.chat_template_error})` : ""}: it continues texts and
          was not made for conversations, so that a chat with it is refused. Side by side continues texts as they stand.
        </p>
      )}
      <div class="presets" role="group" aria-label="Presets">
        {parameters?.presets.map((preset) => (
          <button type="button" key={preset.name} aria-pressed={settings.value.preset === preset.name}
                  onClick={() => change(withPreset(settings.value, preset.name, parameters))}>
            <strong>{preset.name}</strong>
            <span>temperature {preset.temperature}, top-p {preset.top_p}</span>
          </button>
        ))}
      </div>
      <div class="openings">
        {openings.map((text) => (
          <button type="button" key={text} onClick={() => ((store.draft.value = text), document.getElementById("composer")?.focus())}>{text}</button>
        ))}
      </div>
    </div>
  );
}

export function Thread() {
  const path = shown.value;
  if (path.length === 0) return <div class="list" tabIndex={0} role="region" aria-label="Beginning"><Welcome /></div>;
  return <VirtualList keys={path.map((node) => node.id)} row={(i) => <Message node={path[i]} />} label="Conversation"
                      target={store.target.value} onTarget={() => (store.target.value = "")} />;
}
