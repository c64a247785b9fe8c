// One message, its branches, and what can be done with it.
import { useSignal } from "@preact/signals";
import type { Timings } from "../api/types";
import { edit, isBusy, regenerate } from "../store/actions";
import { keep } from "../store/library";
import { active, store, tickOf } from "../store/store";
import { choose, siblingsOf } from "../store/tree";
import type { MessageNode } from "../store/types";
import { mostMarkdown, Markdown } from "../ui/markdown";
import { bytes, CopyButton, duration, IconButton } from "../ui/parts";
import { Attachments } from "./attachments";
import { EditForm } from "./edit_form";
import { Timeline } from "./timeline";
import { Tokens } from "./tokens";
import { Calls } from "./tool_calls";

const mostShown = 8_000;

function LongText({ text }: { text: string }) {
  const isWhole = useSignal(false);
  if (text.length <= mostShown || isWhole.value) return <div class="plain-text">{text}</div>;
  return (
    <div class="plain-text">
      {text.slice(0, mostShown)}…
      <button type="button" class="plain" onClick={() => (isWhole.value = true)}>Show all ({bytes(text.length)})</button>
    </div>
  );
}

function Branches({ node }: { node: MessageNode }) {
  tickOf(node.id).value;
  const conversation = active.value;
  if (!conversation) return null;
  const siblings = siblingsOf(conversation, node);
  if (siblings.length < 2) return null;
  const at = siblings.indexOf(node.id);
  const go = (to: number) => {
    choose(conversation, conversation.nodes[siblings[to]]);
    store.revision.value++;
    keep(conversation);
  };
  return (
    <span class="branches" role="group" aria-label="Branches">
      <IconButton icon="left" label="Branch before" disabled={at === 0} onClick={() => go(at - 1)} />
      <span>{at + 1} / {siblings.length}</span>
      <IconButton icon="right" label="Next branch" disabled={at === siblings.length - 1} onClick={() => go(at + 1)} />
    </span>
  );
}

// By who drafted, where several did.
function draftsOf(t: Timings): string {
  if (!t.draft_n) return "";
  const by = Object.entries(t.drafts ?? {}).map(([drafter, one]) => `${drafter} ${one.n_accepted} of ${one.n}`);
  return `; ${t.draft_n_accepted} of ${t.draft_n} drafts were right${by.length > 1 ? ` (${by.join(", ")})` : ""}`;
}

function Figures({ node }: { node: MessageNode }) {
  tickOf(node.id).value;
  const t = node.timings;
  if (!t) return node.tookMs ? <span class="figures">{node.tokens?.length ?? 0} tokens, {duration(node.tookMs)}</span> : null;
  const share = t.limit_share ? `, ${(t.limit_share * 100).toFixed(0)} % of this machine's limit` : "";
  return (
    <span class="figures" title={`seed ${t.seed}${draftsOf(t)}`}>
      {t.predicted_n} tokens · {t.predicted_per_second.toFixed(1)} / s{share} · first after {duration(t.ttft_ms)}
      {node.finish && node.finish !== "stop" ? ` · ended by ${node.finish}` : ""}
    </span>
  );
}

function Body({ node }: { node: MessageNode }) {
  tickOf(node.id).value;
  if (store.showsTokens.value && node.tokens?.length) return <Tokens node={node} />;
  return (
    <>
      {node.reasoning && (
        <details class="reasoning" open={node.state === "streaming" && !node.content}>
          <summary>Reasoning</summary>
          <Markdown text={node.reasoning} />
        </details>
      )}
      {node.role === "assistant" && node.content.length <= mostMarkdown ? <Markdown text={node.content} /> : node.content && <LongText text={node.content} />}
    </>
  );
}

export function Message({ node }: { node: MessageNode }) {
  tickOf(node.id).value;
  const isEditing = useSignal(false);
  const showsTime = useSignal(false);
  const isAnswer = node.role === "assistant";
  const isGrowing = node.state === "streaming";
  const name = isAnswer ? "Answer" : node.role === "tool" ? "Result of the tool" : "You";
  const save = (text: string) => {
    isEditing.value = false;
    edit(node, text);
  };
  return (
    <article class={`message is-${node.role}${isGrowing ? " is-growing" : ""}`} aria-label={name}>
      {node.attachments && <Attachments files={node.attachments} />}
      {isEditing.value ? <EditForm text={node.content} onSave={save} onCancel={() => (isEditing.value = false)} /> : <Body node={node} />}
      {isGrowing && !node.tokens?.length && <p class="waiting" aria-label="Waiting"><i /><i /><i /></p>}
      {node.calls && <Calls node={node} />}
      {node.error && (
        <p class="fault" role="alert">
          {node.error} <button type="button" class="plain" onClick={() => regenerate(node)}>Try again</button>
        </p>
      )}
      {node.state === "stopped" && <p class="quiet">Stopped.</p>}
      {node.warnings?.map((warning) => <p class="warning" key={warning}>{warning}</p>)}
      {!isEditing.value && !isGrowing && (
        <footer>
          <Branches node={node} />
          <CopyButton text={() => node.content} label="Copy the text" />
          {isAnswer && <IconButton icon="again" label="Answer again" disabled={isBusy()} onClick={() => regenerate(node)} />}
          <IconButton icon="edit" label="Edit, as a new branch" disabled={isBusy()} onClick={() => (isEditing.value = true)} />
          {isAnswer && <IconButton icon="code" label="Reproduce" onClick={() => (store.dialog.value = { kind: "reproduce", node: node.id })} />}
          {isAnswer && <IconButton icon="clock" label="Timeline" pressed={showsTime.value} onClick={() => (showsTime.value = !showsTime.value)} />}
          {isAnswer && <Figures node={node} />}
        </footer>
      )}
      {showsTime.value && <Timeline node={node} />}
    </article>
  );
}
