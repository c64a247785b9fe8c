// Requests as lines for a shell.
import type { ChatMessage, Parameters, RequestBody } from "../api/types";
import { hasImages } from "./images";
import type { MessageNode } from "./types";

const quoted = (text: string) => (/^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);

const structureOptions: [string, string][] = [["guided_regex", "--regex"], ["guided_grammar", "--grammar"]];

function structureArguments(body: RequestBody): string[] {
  const format = body.response_format as { type: string; json_schema?: { schema: unknown } } | undefined;
  if (format?.type === "json_object") return ["--json-object"];
  if (format?.type === "json_schema") return ["--json-schema", JSON.stringify(format.json_schema!.schema)];
  if (Array.isArray(body.guided_choice)) return (body.guided_choice as string[]).flatMap((choice) => ["--choice", choice]);
  for (const [field, option] of structureOptions) if (typeof body[field] === "string") return [option, body[field] as string];
  return [];
}

// `candor run` takes one prompt: what it cannot say is told instead.
export function commandOf(node: MessageNode, parameters: Parameters | null): { text: string; note: string } {
  const body = node.body!;
  if (node.path !== "/v1/chat/completions") return { text: "", note: "This branch goes on from the middle of another answer, by token ids: the curl line says which." };
  if (hasImages(body)) return { text: "", note: "The images of this request are files of yours: the curl line says where each belongs." };
  const messages = [...(body.messages as ChatMessage[])];
  const textOf = ({ content }: ChatMessage) => (typeof content === "string" ? content : "");
  const system = messages[0]?.role === "system" ? messages.shift() : undefined;
  if (messages.length !== 1) return { text: "", note: `candor run answers one message, and this request has ${messages.length}: the curl line says them all.` };
  if (body.tools) return { text: "", note: "candor run offers no tools: the curl line does." };
  if (node.settings?.extra?.trim()) return { text: "", note: "The further fields of this request are said by the curl line." };
  const parts = ["candor", "run", "-m", parameters?.model.path || "MODEL"];
  if (system) parts.push("--system", textOf(system));
  for (const { name } of parameters?.numbers ?? []) {
    if (body[name] !== undefined) parts.push(`--${name.replaceAll("_", "-")}`, String(body[name]));
  }
  if (body.use_beam_search) parts.push("--beams", String(body.n));
  else if (body.seed !== undefined) parts.push("--seed", String(body.seed));
  if (body.max_tokens !== undefined) parts.push("-n", String(body.max_tokens));
  if (parameters) parts.push("-c", String(parameters.model.n_ctx));
  for (const stop of (body.stop as string[] | undefined) ?? []) parts.push("--stop", stop);
  parts.push(...structureArguments(body), "-p", textOf(messages[0]));
  return { text: parts.map(quoted).join(" "), note: "" };
}

export function curlOf(node: MessageNode): string {
  const body = { ...node.body, stream: false } as RequestBody;
  delete body.stream_options;
  const address = `${location.origin}${node.path}`;
  return `curl ${quoted(address)} -H 'Content-Type: application/json' -H "Authorization: Bearer $KEY" -d ${quoted(JSON.stringify(body))}`;
}
