// What the machine does, asked once a second while somebody looks.
import { signal } from "@preact/signals";
import { client } from "../api/client";
import type { Distribution, Live, StepRow } from "../api/types";
import { tell } from "./actions";

export interface Point {
  t: number; // seconds since 1970
  decode: number; // tokens a second
  prefill: number;
  running: number;
  waiting: number;
  used: number; // K/V blocks
  cached: number;
  free: number;
  watts: number | null; // of the processors, where the system tells
}

const mostPoints = 300;
const mostSteps = 256;
export const live = signal<Live | null>(null);
export const points = signal<Point[]>([]);
export const steps = signal<StepRow[]>([]);
export const liveFault = signal("");
const seen: { t: number; live: Live }[] = [];

// Between two readings of the same counters.
function wattsOf(before: Live["energy_uj"], now: Live["energy_uj"], seconds: number): number | null {
  if (!before || !now || before.length !== now.length || seconds <= 0) return null;
  const used = now.map(([, uj, range], i) => (uj >= before[i][1] ? uj - before[i][1] : uj + range - before[i][1]));
  return used.reduce((sum, uj) => sum + uj, 0) / 1e6 / seconds;
}

function add(now: Live, t: number) {
  const before = seen.at(-1);
  const seconds = before ? t - before.t : 0;
  const rate = (of: (live: Live) => number) => (before && seconds > 0 ? Math.max(0, (of(now) - of(before.live)) / seconds) : 0);
  const blocks = now.kv_blocks;
  const point: Point = {
    t, decode: rate((one) => one.sampled_tokens), prefill: rate((one) => one.steps?.prefill_rows ?? 0),
    running: now.running, waiting: now.waiting,
    used: blocks.used, cached: blocks.cached, free: Math.max(0, blocks.total - blocks.used - blocks.cached),
    watts: wattsOf(before?.live.energy_uj ?? null, now.energy_uj, seconds),
  };
  points.value = [...points.value, point].slice(-mostPoints);
  if (now.steps) steps.value = [...steps.value, ...now.steps.newest].slice(-mostSteps);
  seen.push({ t, live: now });
  while (seen.length > 62) seen.shift();
}

// Asks until it is told to stop.
export function watch(): () => void {
  let timer = 0;
  let isOver = false;
  const ask = async () => {
    if (!document.hidden) {
      try {
        const now = await client.live(live.value?.steps?.n ?? 0);
        add(now, Date.now() / 1000);
        live.value = now;
        liveFault.value = "";
      } catch (failure) {
        liveFault.value = tell(failure);
      }
    }
    if (!isOver) timer = window.setTimeout(ask, 1000);
  };
  void ask();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

export type Timed = "ttft_ms" | "itl_ms" | "tpot_ms" | "queue_ms" | "step_ms";

// Of what came within the last minute, from the growth of the server's buckets; null where nothing came.
export function lately(name: Timed, quantile: number): number | null {
  const first = seen[0]?.live[name];
  const last = live.value?.[name];
  if (!first || !last) return null;
  const old = new Map(first.buckets);
  const grown = last.buckets.map(([upper, count]) => [upper, count - (old.get(upper) ?? 0)] as const).filter(([, n]) => n > 0);
  const total = grown.reduce((sum, [, n]) => sum + n, 0);
  if (total === 0) return null;
  let sum = 0;
  for (const [upper, n] of grown) if ((sum += n) >= quantile * total) return upper;
  return null;
}

export const sinceStart = (distribution: Distribution, quantile: 50 | 90 | 99) => (distribution.count > 0 ? distribution[`p${quantile}`] : null);
