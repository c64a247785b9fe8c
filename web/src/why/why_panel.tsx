// How one token came about, stage by stage.
import { active, store, tickOf } from "../store/store";
import { branchFault, explanationAt, goOnWith, openWhy, takenOver } from "../store/why";
import type { Candidate } from "../api/types";
import type { MessageNode } from "../store/types";
import { IconButton, percent, visible } from "../ui/parts";
import { Beams } from "./beams";
import { Draw } from "./draw";
import { Looked } from "./looked";
import { StageCard } from "./stage";

function Head({ node, at }: { node: MessageNode; at: number }) {
  const token = node.tokens![at];
  const n = node.tokens!.length;
  return (
    <header>
      <h2>Why this token</h2>
      <IconButton icon="left" label="Token before" disabled={at === 0} onClick={() => openWhy(node, at - 1)} />
      <span class="quiet">{at + 1} / {n}</span>
      <IconButton icon="right" label="Next token" disabled={at === n - 1} onClick={() => openWhy(node, at + 1)} />
      <IconButton icon="close" label="Close the explanation" onClick={() => (store.panel.value = { kind: "none" })} />
      <p class="why-token">
        <code>{visible(token.s)}</code>
        <span>{percent(Math.exp(token.p))} by the model · logprob <b data-logprob={token.p}>{token.p.toFixed(4)}</b></span>
      </p>
    </header>
  );
}

function Context({ node, at }: { node: MessageNode; at: number }) {
  const before = node.tokens!.slice(Math.max(0, at - 24), at).map((token) => token.t).join("");
  const after = node.tokens!.slice(at + 1, at + 13).map((token) => token.t).join("");
  return <p class="context">{at > 24 && "…"}{before}<mark>{node.tokens![at].t || visible(node.tokens![at].s)}</mark>{after}{at + 13 < node.tokens!.length && "…"}</p>;
}

function Body({ node, at }: { node: MessageNode; at: number }) {
  const explained = store.explained.value[node.id];
  const explanation = explanationAt(node, at);
  if (!explanation) {
    if (node.state === "streaming") return <p class="quiet">The explanation comes when the answer is there.</p>;
    if (explained?.state === "failed") return <p class="fault" role="alert">{explained.note}</p>;
    if (!node.body) return <p class="quiet">No request gave this text: it was written or edited by hand.</p>;
    return <p class="quiet" role="status">The same request is asked again, with the same seed, to be explained…</p>;
  }
  const isFixed = node.origin?.at === at;
  const fault = branchFault(node);
  const chosen = isFixed ? node.origin!.token : explanation.token;
  const go = fault ? null : (candidate: Candidate) => void goOnWith(node, at, candidate);
  return (
    <>
      {isFixed && <p class="warning">You chose this one here; the draw gave <code>{visible(explanation.text)}</code>.</p>}
      {explanation.draft !== null && (
        <p class={explanation.draft === explanation.token ? "good" : "warning"}>
          {explanation.draft === explanation.token ? "It was guessed ahead, and right: one step gave this token and the next." : "Another token was guessed ahead here, and rejected."}
        </p>
      )}
      <Looked node={node} at={at} />
      {explanation.beam_options ? <Beams explanation={explanation} /> : <Draw explanation={explanation} />}
      {explanation.stages.map((stage, i) => (
        <StageCard key={stage.name + i} stage={stage} before={explanation.stages[i - 1]} chosen={chosen} isLast={i === explanation.stages.length - 1}
                   settings={node.settings} onChoose={go} />
      ))}
      {fault && <p class="quiet">{fault}</p>}
      {explained?.note && at >= takenOver(node) && <p class="quiet">{explained.note}</p>}
    </>
  );
}

export function WhyPanel({ node: id, at }: { node: string; at: number }) {
  tickOf(id).value;
  const node = active.value?.nodes[id];
  if (!node?.tokens?.[at]) return null;
  return (
    <aside class="panel why" aria-label="Why this token">
      <Head node={node} at={at} />
      <div class="panel-body" tabIndex={0} role="region" aria-label="Stages">
        <Context node={node} at={at} />
        <Body node={node} at={at} />
      </div>
    </aside>
  );
}
