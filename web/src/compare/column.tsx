// One of the settings, and its answer.
import { useSignal } from "@preact/signals";
import { NumberField } from "../chat/number_field";
import { type Column, compare, named, setColumn } from "../store/compare";
import { store } from "../store/store";
import { confidence, IconButton, percent, visible } from "../ui/parts";

function Choice({ column, at }: { column: Column; at: number }) {
  const parameters = store.parameters.value;
  const isOpen = useSignal(false);
  const choose = (name: string) => {
    if (!parameters) return;
    setColumn(at, name === "own" ? { name } : { name, numbers: named(name, parameters) });
    isOpen.value = name === "own";
  };
  const set = (name: string, value: number | undefined) => {
    const numbers = { ...column.numbers };
    if (value === undefined) delete numbers[name];
    else numbers[name] = value;
    setColumn(at, { numbers, name: "own" });
  };
  const drop = () => (compare.columns.value = compare.columns.value.filter((_, i) => i !== at));
  const words = Object.entries(column.numbers).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ");
  return (
    <header>
      <select aria-label={`Settings of column ${at + 1}`} value={column.name} onChange={(e) => choose(e.currentTarget.value)}>
        <option value="greedy">greedy</option>
        {parameters?.presets.map((preset) => <option key={preset.name}>{preset.name}</option>)}
        <option value="own">own</option>
      </select>
      <IconButton icon="sliders" label={`Numbers of column ${at + 1}`} pressed={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)} />
      {compare.columns.value.length > 2 && <IconButton icon="close" label={`Remove column ${at + 1}`} onClick={drop} />}
      <p>{words || "the engine's defaults"}</p>
      {isOpen.value && (
        <div class="column-numbers">
          {parameters?.numbers.map((info) => (
            <NumberField key={info.name} info={info} prefix={`column-${at}`} value={column.numbers[info.name]} onChange={(value) => set(info.name, value)} />
          ))}
        </div>
      )}
    </header>
  );
}

export function ColumnCard({ column, at, parts }: { column: Column; at: number; parts: number }) {
  compare.tick.value;
  const answer = column.answer;
  const tokens = answer?.tokens ?? [];
  return (
    <section class="column" aria-label={`Column ${at + 1}, ${column.name}`}>
      <Choice column={column} at={at} />
      <div class="column-text">
        <span class="is-same">{tokens.slice(0, Math.min(parts, tokens.length)).map((token) => token.t).join("")}</span>
        {parts < tokens.length && (
          <>
            <hr class="parts-here" aria-label="They part here" />
            {tokens.slice(parts).map((token, i) => (
              <span key={i} class={`token confidence-${confidence(token.p)}${i === 0 ? " is-first" : ""}`} title={percent(Math.exp(token.p))}>
                {token.t === "" ? visible(token.s) : token.t}
              </span>
            ))}
          </>
        )}
        {answer?.error && <p class="fault" role="alert">{answer.error}</p>}
      </div>
      {answer?.timings && <footer>{answer.timings.predicted_n} tokens · {answer.timings.predicted_per_second.toFixed(1)} / s · {answer.finish}</footer>}
    </section>
  );
}
