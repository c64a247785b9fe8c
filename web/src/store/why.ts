// Explanations of answers: the same request, asked again to be explained, gives the same tokens.
import { client } from "../api/client";
import type { Candidate, Explanation, ImageAttention, RequestBody } from "../api/types";
import { takeChunk } from "./answers";
import { answer, grow, isBusy, setExplained, tell } from "./actions";
import { hasImages, imagesOf, withImages } from "./images";
import { explaining, isConstrained } from "./settings";
import { active, store } from "./store";
import { addNode } from "./tree";
import type { MessageNode } from "./types";

export function openWhy(node: MessageNode, at: number) {
  store.panel.value = { kind: "why", node: node.id, at };
  void explain(node);
}

// Tokens that an answer took over from another one.
export const takenOver = (node: MessageNode) => (node.origin ? node.origin.at + 1 : 0);

export async function explain(node: MessageNode) {
  const origin = node.origin && active.value?.nodes[node.origin.node];
  if (origin) await explain(origin);
  const known = store.explained.value[node.id];
  if (known && known.state !== "failed") return;
  if (!node.body || !node.tokens?.length || node.state === "streaming") return;
  setExplained(node.id, [], "asking");
  const again: MessageNode = { ...node, content: "", reasoning: "", tokens: [], calls: [], children: [] };
  const explained: Explanation[] = [];
  const n = node.tokens.length - takenOver(node);
  const body: RequestBody = { ...node.body, ...explaining(node.body, store.parameters.value?.model) };
  if (!body.use_beam_search && node.state !== "done" && n > 0) body.max_tokens = n;
  try {
    for await (const chunk of client.stream(node.path!, await withImages(body, active.value), new AbortController().signal)) {
      takeChunk(again, chunk, 0, explained);
    }
    const own = node.tokens.slice(takenOver(node));
    const isSame = own.every((token, i) => explained[i]?.text === token.s || again.tokens![i]?.s === token.s);
    own.forEach((token, i) => (token.d = explained[i] !== undefined && explained[i].draft === explained[i].token));
    grow(node);
    setExplained(node.id, explained, isSame ? "done" : "failed",
      isSame ? `Asked again with the same seed to explain it: the same ${own.length} tokens.`
             : "Asked again, the answer has other tokens: the server's model or settings changed since.");
  } catch (failure) {
    setExplained(node.id, explained, "failed", tell(failure));
  }
}

// How the token at that place came about, whoever of the family drew it.
export function explanationAt(node: MessageNode, at: number): Explanation | undefined {
  const origin = node.origin && active.value?.nodes[node.origin.node];
  if (origin && at <= node.origin!.at) return explanationAt(origin, at);
  return store.explained.value[node.id]?.tokens[at - takenOver(node)];
}

// Where that token looked in the images of its prompt, by their ids.
export function attentionAt(node: MessageNode, at: number): { id: string; looked: ImageAttention }[] {
  const images = explanationAt(node, at)?.images ?? [];
  const ids = node.body ? imagesOf(node.body) : [];
  return images.flatMap((looked, i) => (ids[i] ? [{ id: ids[i], looked }] : []));
}

// Of the token whose explanation is open; undefined where it is not known, or it saw another image.
export function attentionOn(id: string): ImageAttention | undefined {
  const panel = store.panel.value;
  const node = panel.kind === "why" ? active.value?.nodes[panel.node] : undefined;
  return node && panel.kind === "why" ? attentionAt(node, panel.at).find((one) => one.id === id)?.looked : undefined;
}

function idsBefore(node: MessageNode, at: number): number[] | null {
  const ids: number[] = [];
  for (let i = 0; i < at; i++) {
    const id = node.origin?.at === i ? node.origin.token : explanationAt(node, i)?.token;
    if (typeof id !== "number") return null;
    ids.push(id);
  }
  return ids;
}

// Why no branch can begin inside of this answer; "" where one can.
export function branchFault(node: MessageNode): string {
  if (isBusy()) return "An answer is being written.";
  if (!node.settings) return "";
  if (isConstrained(node.settings)) return "An answer that obeys a form or calls tools cannot go on from its middle.";
  if (node.body && hasImages(node.body)) return "An answer about images cannot go on from its middle: token ids hold no images.";
  if (node.settings.beams > 0) return "A beam search is no chain of draws: there is no place to go on from.";
  return "";
}

// The same answer up to there, then this token, then whatever the same random numbers draw: by token ids, so that no
// text is cut into tokens anew.
export async function goOnWith(node: MessageNode, at: number, candidate: Candidate) {
  const conversation = active.value;
  const before = idsBefore(node, at);
  if (!conversation || !before || !node.body) return;
  const { messages, prompt, stream_options, explain: _, ...rest } = node.body as Record<string, unknown>;
  try {
    const first = Array.isArray(prompt)
      ? (prompt as number[]).slice(0, (prompt as number[]).length - takenOver(node))
      : await client.promptTokens({ messages, ...(rest.model ? { model: rest.model } : {}) });
    const ids = [...first, ...before, candidate.token];
    const room = (store.parameters.value?.model.n_ctx ?? 4096) - ids.length;
    const most = node.settings?.maxTokens ? node.settings.maxTokens - at - 1 : room;
    const kept = (node.tokens ?? []).slice(0, at).map((token) => ({ ...token }));
    const kind = kept.findLast((token) => token.k !== "x")?.k ?? "c";
    const tokens = [...kept, { t: candidate.text, s: candidate.text, p: Math.log(Math.max(candidate.probability, 1e-300)), ms: 0, k: kind }];
    const textOf = (which: string) => tokens.filter((token) => token.k === which).map((token) => token.t).join("");
    const body: RequestBody = { ...rest, prompt: ids, logprobs: 0, stream: true, stream_options, max_tokens: Math.max(1, Math.min(most, room)) };
    const branch = addNode(conversation, node.parent, {
      role: "assistant", state: "streaming", path: "/v1/completions", body, settings: node.settings, tokens,
      content: textOf("c"), reasoning: textOf("r"), origin: { node: node.id, at, token: candidate.token },
    });
    store.panel.value = { kind: "why", node: branch.id, at };
    await answer(conversation, branch);
  } catch (failure) {
    store.notice.value = tell(failure);
  }
}
