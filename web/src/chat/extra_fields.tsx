// What else a request may say of sampling: lists and switches, which are no numbers.
import type { Settings } from "../store/types";
import { store } from "../store/store";

const meanings: [name: string, meaning: string][] = [
  ["samplers", "the order of the stages, of all that are set"],
  ["logit_bias", '{"42": -2}: added to the logits of tokens, -100 bans'],
  ["bad_words", "texts that never come"],
  ["allowed_token_ids", "nothing else comes"],
  ["stop_token_ids", "tokens that end the answer"],
  ["ignore_eos", "true: the model's own end does not end it"],
  ["dry_sequence_breakers", "texts at which DRY begins anew"],
];

export function ExtraFields({ settings, onChange }: { settings: Settings; onChange: (part: Partial<Settings>) => void }) {
  const stages = store.parameters.value?.stages ?? [];
  return (
    <details class="extra-fields">
      <summary>Order of stages, biases, bans{settings.extra ? " (set)" : ""}</summary>
      <label class="field">
        Further fields of the request (a JSON object)
        <textarea class="code-input" rows={4} spellcheck={false} value={settings.extra ?? ""} placeholder={`{"samplers": ${JSON.stringify(stages.slice(0, 3))}}`}
                  aria-describedby="extra-help" onInput={(e) => onChange({ extra: e.currentTarget.value })} />
      </label>
      <dl id="extra-help">{meanings.map(([name, meaning]) => <div key={name}><dt>{name}</dt><dd>{meaning}</dd></div>)}</dl>
      <p class="quiet">Stages, as they stand: {stages.join(", ")}.</p>
    </details>
  );
}
