// How answers are made: of the conversation that is open, and of those that will begin.
import type { NumberInfo } from "../api/types";
import { change } from "../store/library";
import { faultOf, withPreset } from "../store/settings";
import { settings, store } from "../store/store";
import { IconButton } from "../ui/parts";
import { ExtraFields } from "./extra_fields";
import { NumberField } from "./number_field";
import { StructureFields } from "./structure_fields";

const usual = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty"];

function Numbers({ list }: { list: NumberInfo[] }) {
  const { numbers } = settings.value;
  const set = (name: string, value: number | undefined) => {
    const next = { ...numbers };
    if (value === undefined) delete next[name];
    else next[name] = value;
    change({ numbers: next, preset: "" });
  };
  return <>{list.map((info) => <NumberField key={info.name} info={info} value={numbers[info.name]} onChange={(value) => set(info.name, value)} />)}</>;
}

function whole(text: string): number | null {
  const value = Math.round(Number(text));
  return text === "" || !(value >= 0) ? null : value;
}

function Basics() {
  const parameters = store.parameters.value;
  const now = settings.value;
  return (
    <>
      {store.models.value.length > 1 && (
        <label class="field">
          Model
          <select value={now.model || store.models.value[0]} onChange={(e) => change({ model: e.currentTarget.value })}>
            {store.models.value.map((id) => <option key={id}>{id}</option>)}
          </select>
        </label>
      )}
      {store.models.value.length === 1 && <p class="field">Model <b>{store.models.value[0]}</b></p>}
      <label class="field">
        System text
        <textarea rows={3} placeholder="What the model is told first" value={now.system} onInput={(e) => change({ system: e.currentTarget.value })} />
      </label>
      <label class="field">
        Preset
        <select value={now.preset} onChange={(e) => parameters && change(withPreset(now, e.currentTarget.value, parameters))}>
          <option value="">own numbers</option>
          {parameters?.presets.map((one) => <option key={one.name} value={one.name}>{one.name} (temperature {one.temperature}, top-p {one.top_p})</option>)}
        </select>
      </label>
    </>
  );
}

function Ends() {
  const now = settings.value;
  const beams = store.parameters.value?.limits.beams ?? 8;
  return (
    <>
      <div class="pair">
        <label class="field">Seed<input type="number" min={0} placeholder="a new one" value={now.seed ?? ""} onInput={(e) => change({ seed: whole(e.currentTarget.value) })} /></label>
        <label class="field">Most tokens<input type="number" min={1} placeholder="until the end" value={now.maxTokens ?? ""}
          onInput={(e) => change({ maxTokens: whole(e.currentTarget.value) || null })} /></label>
      </div>
      <label class="field">
        Stop before (one a line)
        <textarea rows={2} value={now.stop.join("\n")} onInput={(e) => change({ stop: e.currentTarget.value.split("\n").filter((line) => line !== "") })} />
      </label>
      <label class="field">
        Beams (0: tokens are drawn)
        <input type="number" min={0} max={beams} value={now.beams} onInput={(e) => change({ beams: Math.min(beams, whole(e.currentTarget.value) ?? 0) })} />
      </label>
      <label class="check">
        <input type="checkbox" checked={now.explains} onChange={(e) => change({ explains: e.currentTarget.checked })} />
        Explain every token while it comes (otherwise when you open one)
      </label>
    </>
  );
}

export function SettingsPanel() {
  const numbers = store.parameters.value?.numbers ?? [];
  const now = settings.value;
  const fault = faultOf(now);
  const own = Object.keys(now.numbers).filter((name) => !usual.includes(name)).length;
  return (
    <aside class="panel" aria-label="Settings">
      <header>
        <h2>Settings</h2>
        <IconButton icon="close" label="Close the settings" onClick={() => (store.panel.value = { kind: "none" })} />
      </header>
      <div class="panel-body">
        <Basics />
        <Numbers list={numbers.filter((info) => usual.includes(info.name))} />
        <details>
          <summary>All other numbers{own > 0 ? ` (${own} set)` : ""}</summary>
          <Numbers list={numbers.filter((info) => !usual.includes(info.name))} />
        </details>
        <ExtraFields settings={now} onChange={change} />
        <Ends />
        <StructureFields settings={now} onChange={change} />
        {fault && <p class="fault" role="alert">{fault}</p>}
        <button type="button" onClick={() => change({ numbers: {}, preset: "", seed: null, maxTokens: null, stop: [], beams: 0, structure: { kind: "none", text: "" }, tools: "", extra: "" })}>
          Back to the engine's defaults
        </button>
      </div>
    </aside>
  );
}
