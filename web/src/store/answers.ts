// Reads the chunks of a stream into a message.
import type { Chunk, Explanation } from "../api/types";
import type { MessageNode, Token } from "./types";

function appendTo(node: MessageNode, text: string, kind: Token["k"]) {
  if (kind === "r") node.reasoning = (node.reasoning ?? "") + text;
  else node.content += text;
}

// Text that a completion says as it stands: reasoning ends with its mark.
function kindOf(node: MessageNode, text: string): Token["k"] {
  const last = node.tokens?.findLast((token) => token.k !== "x");
  if (text.includes("<think>")) return "r";
  return last?.k === "r" && !text.includes("</think>") && !last.s.includes("</think>") ? "r" : "c";
}

function addCalls(node: MessageNode, choice: Chunk["choices"][0]) {
  for (const call of choice.delta?.tool_calls ?? []) {
    node.calls ??= [];
    const known = (node.calls[call.index] ??= { id: "", name: "", arguments: "" });
    known.id = call.id ?? known.id;
    known.name += call.function.name ?? "";
    known.arguments += call.function.arguments ?? "";
  }
}

// One answer of several, or of beams, is shown: the first.
export function takeChunk(node: MessageNode, chunk: Chunk, ms: number, explained: Explanation[]) {
  if (chunk.usage) node.usage = chunk.usage;
  if (chunk.timings) node.timings = chunk.timings;
  if (chunk.warnings) node.warnings = chunk.warnings;
  const choice = chunk.choices[0];
  if (!choice || choice.index !== 0) return;
  const content = choice.delta?.content ?? choice.text ?? "";
  const reasoning = choice.delta?.reasoning_content ?? "";
  const shownText = reasoning || content;
  const kind: Token["k"] = reasoning ? "r" : choice.text !== undefined ? kindOf(node, content) : "c";
  const piece = choice.logprobs?.content?.[0]?.token ?? choice.logprobs?.tokens?.[0];
  const logprob = choice.logprobs?.content?.[0]?.logprob ?? choice.logprobs?.token_logprobs?.[0];
  const explanation = choice.explain?.[0];
  node.tokens ??= [];
  if (piece !== undefined) {
    node.tokens.push({ t: shownText, s: explanation?.text ?? piece, p: logprob ?? 0, ms: Math.round(ms), k: shownText === "" ? "x" : kind });
  } else if (shownText !== "" && node.tokens.length > 0) {
    const last = node.tokens[node.tokens.length - 1];
    last.t += shownText;
    last.k = kind;
  }
  if (explanation) {
    explained.push(explanation);
    if (explanation.draft === explanation.token && node.tokens.length > 0) node.tokens[node.tokens.length - 1].d = true;
  }
  if (shownText !== "") appendTo(node, shownText, kind);
  addCalls(node, choice);
  if (choice.finish_reason) {
    node.finish = choice.stop_reason != null ? `${choice.finish_reason}: ${JSON.stringify(choice.stop_reason)}` : choice.finish_reason;
  }
}
