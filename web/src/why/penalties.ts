// What of a lowered logit is which penalty's, by the rules of docs/server.md: repetition divides (or multiplies, below 0),
// frequency counts, presence is subtracted once.
import type { Settings } from "../store/types";

export function penaltyWords(before: number, after: number, settings: Settings | undefined): string {
  const change = after - before;
  if (Math.abs(change) < 1e-6) return "";
  const { repetition_penalty: r = 1, frequency_penalty: f = 0, presence_penalty: p = 0 } = settings?.numbers ?? {};
  const words: string[] = [];
  const repeated = before > 0 ? before / r : before * r;
  const rest = after - repeated;
  const near = (x: number) => Math.abs(x) < 1e-3;
  if (r !== 1 && (near(rest) || f !== 0 || p !== 0)) words.push(`repetition ${(repeated - before).toFixed(3)}`);
  const left = r !== 1 ? rest : change;
  if (!near(left)) {
    const n = f !== 0 ? Math.round((-left - p) / f) : 0;
    if (f !== 0 && n > 0) words.push(`frequency ${(-f * n).toFixed(3)} (said ${n} times)`);
    if (p !== 0) words.push(`presence ${(-p).toFixed(3)}`);
  }
  return words.join(", ");
}
