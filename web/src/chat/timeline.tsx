// Where the time of one request went.
import type { MessageNode } from "../store/types";
import { duration } from "../ui/parts";

interface Part {
  name: string;
  ms: number;
  class: string;
}

function partsOf(node: MessageNode): Part[] {
  const t = node.timings!;
  const queue = Math.max(0, t.queue_ms - (t.images_ms ?? 0) - t.template_ms - t.tokenize_ms);
  return [
    { name: "template", ms: t.template_ms, class: "part-1" },
    { name: "tokenise", ms: t.tokenize_ms, class: "part-2" },
    { name: "queue", ms: queue, class: "part-3" },
    ...(t.images_ms ? [{ name: "images", ms: t.images_ms, class: "part-6" }] : []),
    { name: `prefill, ${t.prompt_n} tokens${t.cache_n ? ` (${t.cache_n} cached)` : ""}`, ms: t.prompt_ms, class: "part-4" },
    { name: `decode, ${t.predicted_n} tokens`, ms: t.predicted_ms, class: "part-5" },
  ];
}

// "256", or "40 to 256".
function chunkSizes(node: MessageNode): string {
  const sizes = node.timings!.prompt_chunks!.map(([, , tokens]) => tokens);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  return least === most ? `${most}` : `${least} to ${most}`;
}

// The pieces in which the prompt was read, on the axis of the parts: milliseconds since the request came in.
function Chunks({ node, total }: { node: MessageNode; total: number }) {
  const chunks = node.timings!.prompt_chunks ?? [];
  if (chunks.length < 2) return null;
  const at = (ms: number) => Math.min(1000, (ms / total) * 1000);
  return (
    <>
      {chunks.map(([begin, ms, tokens], i) => (
        <rect key={i} class="chunk" x={at(begin)} y="4" width={Math.max(1, at(begin + ms) - at(begin) - 1.2)} height="10"><title>{`${tokens} tokens in ${duration(ms)}`}</title></rect>
      ))}
    </>
  );
}

export function Timeline({ node }: { node: MessageNode }) {
  if (!node.timings) return <p class="quiet">The server told no times: the answer did not come to its end.</p>;
  const parts = partsOf(node);
  const total = Math.max(0.001, parts.reduce((sum, part) => sum + part.ms, 0));
  const own = (node.tokens ?? []).slice(node.origin ? node.origin.at + 1 : 0);
  const last = Math.max(1, ...own.map((token) => token.ms));
  let before = 0;
  return (
    <figure class="timeline">
      <svg viewBox="0 0 1000 44" preserveAspectRatio="none" role="img" aria-label={parts.map((part) => `${part.name} ${duration(part.ms)}`).join(", ")}>
        {parts.map((part) => {
          const x = (before / total) * 1000;
          before += part.ms;
          return <rect key={part.class} class={part.class} x={x} y="0" width={Math.max(1.5, (part.ms / total) * 1000)} height="18" />;
        })}
        <Chunks node={node} total={total} />
        {own.slice(0, 2000).map((token, i) => <rect key={i} class="tick" x={(token.ms / last) * 998} y="26" width="1.5" height="14" />)}
      </svg>
      <figcaption>
        {parts.map((part) => <span key={part.class}><i class={part.class} /> {part.name} <b>{duration(part.ms)}</b></span>)}
        {(node.timings.prompt_chunks?.length ?? 0) > 1 && <span><i class="chunk" /> the prompt was read in <b>{node.timings.prompt_chunks!.length} chunks</b> of {chunkSizes(node)} tokens</span>}
        <span><i class="tick" /> when each token arrived here, within <b>{duration(last)}</b></span>
      </figcaption>
    </figure>
  );
}
