// The machine, live.
import { useEffect } from "preact/hooks";
import { live, liveFault, points, watch } from "../store/live";
import { active, shown } from "../store/store";
import { Timeline } from "../chat/timeline";
import { bytes } from "../ui/parts";
import { Charts } from "./charts";
import { Drafters } from "./drafters";
import { Percentiles } from "./percentiles";

const rounded = (x: number) => x.toLocaleString("en", { maximumFractionDigits: x < 100 ? 1 : 0 });

function Figure({ name, value, note }: { name: string; value: string; note?: string }) {
  return <div class="figure"><dt>{name}</dt><dd>{value}{note && <small>{note}</small>}</dd></div>;
}

function Now() {
  const now = live.value;
  const last = points.value.at(-1);
  if (!now || !last) return null;
  const blocks = now.kv_blocks;
  return (
    <dl class="figures-now">
      <Figure name="Tokens a second" value={rounded(last.decode)} note={now.limit ? `one stream at most ${rounded(now.limit.steps_per_s)}` : "limit: candor doctor measures it"} />
      <Figure name="Running" value={String(now.running)} note={`${now.waiting} wait`} />
      <Figure name="K/V blocks" value={blocks.used.toLocaleString("en")} note={`of ${blocks.total.toLocaleString("en")}, ${blocks.tokens} tokens each`} />
      <Figure name="Cached tokens" value={now.cached_tokens.toLocaleString("en")} note="not computed again" />
      {last.watts !== null && <Figure name="Power" value={`${last.watts.toFixed(0)} W`} note={last.decode > 0 ? `${(last.watts / last.decode).toFixed(2)} J a token` : "of the processors"} />}
      <Figure name="Refused" value={String(now.refused)} note={`${now.preemptions} preempted`} />
    </dl>
  );
}

function Memory() {
  const memory = live.value?.memory;
  if (!memory) return null;
  const taken = memory.weights + memory.kv;
  const total = Math.max(taken, memory.machine || taken + memory.available);
  const part = (n: number) => `${Math.max(0.4, (n / total) * 100)}%`;
  return (
    <section class="memory">
      <h2>Memory</h2>
      <div class="memory-bar" role="img" aria-label={`weights ${bytes(memory.weights)}, K/V ${bytes(memory.kv)} of ${bytes(total)}`}>
        <i style={{ width: part(memory.weights), background: "var(--series-1)" }} />
        <i style={{ width: part(memory.kv), background: "var(--series-2)" }} />
      </div>
      <p>weights <b>{bytes(memory.weights)}</b> · K/V <b>{bytes(memory.kv)}</b> · {memory.device ?? "machine"} <b>{bytes(total)}</b>{memory.available ? <> · free <b>{bytes(memory.available)}</b></> : ""}</p>
    </section>
  );
}

function LastRequest() {
  const node = shown.value.findLast((one) => one.role === "assistant" && one.timings);
  if (!node) return null;
  return <section class="last-request"><h2>The last answer of “{active.value?.title}”</h2><Timeline node={node} /></section>;
}

export function Machine() {
  useEffect(watch, []);
  return (
    <div class="view machine" tabIndex={0} role="region" aria-label="The machine">
      {liveFault.value && <p class="notice" role="alert">{liveFault.value}</p>}
      <Now />
      <Charts />
      <div class="below-charts">
        <Percentiles />
        <Memory />
        <Drafters />
      </div>
      <LastRequest />
    </div>
  );
}
