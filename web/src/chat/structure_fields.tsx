// What form an answer must have, and which tools it may call.
import type { Settings, StructureKind } from "../store/types";

const kinds: { kind: StructureKind; title: string; help: string }[] = [
  { kind: "none", title: "Free", help: "" },
  { kind: "object", title: "A JSON object", help: "" },
  { kind: "schema", title: "JSON by a schema", help: '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}' },
  { kind: "regex", title: "A pattern", help: "[0-9]{4}-[0-9]{2}-[0-9]{2}" },
  { kind: "choice", title: "One of these lines", help: "yes\nno" },
  { kind: "grammar", title: "A grammar (GBNF)", help: 'root ::= "yes" | "no"' },
];

const toolExample = '[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}}}]';

export function StructureFields({ settings, onChange }: { settings: Settings; onChange: (part: Partial<Settings>) => void }) {
  const { kind, text } = settings.structure;
  const help = kinds.find((one) => one.kind === kind)!.help;
  return (
    <>
      <label class="field">
        Form of the answer
        <select value={kind} onChange={(e) => onChange({ structure: { kind: e.currentTarget.value as StructureKind, text } })}>
          {kinds.map((one) => <option key={one.kind} value={one.kind}>{one.title}</option>)}
        </select>
      </label>
      {help && (
        <label class="field">
          {kinds.find((one) => one.kind === kind)!.title}
          <textarea class="code-input" rows={5} spellcheck={false} placeholder={help} value={text}
                    onInput={(e) => onChange({ structure: { kind, text: e.currentTarget.value } })} />
        </label>
      )}
      <label class="field">
        Tools (a JSON array)
        <textarea class="code-input" rows={3} spellcheck={false} placeholder={toolExample} value={settings.tools}
                  onInput={(e) => onChange({ tools: e.currentTarget.value })} />
      </label>
    </>
  );
}
