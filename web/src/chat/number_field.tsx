// One number of sampling: its name, meaning, range and value.
import type { NumberInfo } from "../api/types";

// Ranges too long for a slider have a box alone.
const slides = (info: NumberInfo) => info.most - info.least <= 100;
const steps = (info: NumberInfo) => (info.whole ? 1 : info.most - info.least <= 2 ? 0.01 : 0.05);

interface Props {
  info: NumberInfo;
  value: number | undefined;
  onChange: (value: number | undefined) => void;
  prefix?: string; // of ids, where there are several of one name
}

export function NumberField({ info, value, onChange, prefix = "number" }: Props) {
  const id = `${prefix}-${info.name}`;
  const current = value ?? info.default;
  const isOwn = value !== undefined && value !== info.default;
  const set = (text: string) => {
    const number = Number(text);
    if (text === "" || Number.isNaN(number)) return onChange(undefined);
    const within = Math.min(info.most, Math.max(info.least, info.whole ? Math.round(number) : number));
    onChange(within === info.default ? undefined : within);
  };
  const most = info.most >= 2147483647 ? "∞" : info.most;
  return (
    <div class={`number${isOwn ? " is-own" : ""}`}>
      <label for={id}>{info.name.replaceAll("_", " ")}</label>
      <input id={id} type="number" min={info.least} max={info.most} step={info.whole ? 1 : "any"} value={current} aria-describedby={`${id}-help`}
             onChange={(e) => set(e.currentTarget.value)} />
      {slides(info) && (
        <input type="range" aria-label={`${info.name.replaceAll("_", " ")}, slider`} min={info.least} max={info.most} step={steps(info)} value={current}
               onInput={(e) => set(e.currentTarget.value)} />
      )}
      <p id={`${id}-help`}>{info.help}; {info.least} to {most}{info.note ? ` (${info.note})` : ""}, default {info.default}</p>
    </div>
  );
}
