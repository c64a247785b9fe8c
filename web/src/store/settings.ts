// Settings, and the request that they make.
import type { ChatMessage, ContentPart, ModelFacts, Parameters, RequestBody } from "../api/types";
import { messageText } from "./files";
import { hasImages, referenceTo } from "./images";
import type { MessageNode, Settings } from "./types";

export const plainSettings: Settings = {
  system: "", preset: "", numbers: {}, seed: null, maxTokens: null, stop: [], structure: { kind: "none", text: "" },
  tools: "", extra: "", beams: 0, model: "", explains: false,
};

export function withPreset(settings: Settings, name: string, parameters: Parameters): Settings {
  const preset = parameters.presets.find((one) => one.name === name);
  if (!preset) return { ...settings, preset: "" };
  const numbers: Record<string, number> = { ...settings.numbers, temperature: preset.temperature, top_p: preset.top_p };
  delete numbers.top_k;
  return { ...settings, preset: name, numbers };
}

export const newSeed = () => crypto.getRandomValues(new Uint32Array(1))[0];

// Text alone is a string. With images: the text, then each of them.
function contentOf({ content, attachments = [] }: MessageNode): string | ContentPart[] {
  const text = messageText(content, attachments);
  const images = attachments.filter((one) => one.kind === "image");
  if (images.length === 0) return text;
  const parts: ContentPart[] = images.map((one) => ({ type: "image_url", image_url: { url: referenceTo(one) } }));
  return text === "" ? parts : [{ type: "text", text }, ...parts];
}

export function messagesOf(path: MessageNode[], system: string): ChatMessage[] {
  const messages: ChatMessage[] = system ? [{ role: "system", content: system }] : [];
  for (const node of path) {
    if (node.role === "assistant" && node.content === "" && !node.calls?.length) continue;
    const message: ChatMessage = { role: node.role, content: contentOf(node) };
    if (node.calls?.length) {
      message.tool_calls = node.calls.map((call) => ({
        id: call.id, type: "function", function: { name: call.name, arguments: call.arguments },
      }));
    }
    if (node.callId) message.tool_call_id = node.callId;
    messages.push(message);
  }
  return messages;
}

// Why the settings cannot be sent; "" where they can.
export function faultOf(settings: Settings): string {
  const json = (text: string, what: string) => {
    try {
      JSON.parse(text);
      return "";
    } catch (error) {
      return `${what} is not JSON: ${(error as Error).message}`;
    }
  };
  if (settings.tools.trim()) {
    const fault = json(settings.tools, "The list of tools");
    if (fault) return fault;
    if (!Array.isArray(JSON.parse(settings.tools))) return "The list of tools must be a JSON array.";
  }
  if (settings.extra?.trim()) {
    const fault = json(settings.extra, "What stands under further fields");
    if (fault) return fault;
    const fields = JSON.parse(settings.extra);
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) return "Further fields must be a JSON object: {\"ignore_eos\": true}.";
    const taken = Object.keys(fields).find((name) => ["messages", "prompt", "stream", "stream_options", "model", "logprobs", "n"].includes(name));
    if (taken) return `"${taken}" is the page's own to say: leave it out of the further fields.`;
  }
  if (settings.structure.kind === "schema") return json(settings.structure.text, "The JSON schema");
  if (settings.structure.kind !== "none" && settings.structure.kind !== "object" && !settings.structure.text.trim()) {
    return "The answer's form is chosen, but not written: see Settings, Form of the answer.";
  }
  return "";
}

function structureOf({ kind, text }: Settings["structure"]): RequestBody {
  if (kind === "object") return { response_format: { type: "json_object" } };
  if (kind === "schema") {
    return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: JSON.parse(text) } } };
  }
  if (kind === "regex") return { guided_regex: text };
  if (kind === "grammar") return { guided_grammar: text };
  if (kind === "choice") return { guided_choice: text.split("\n").filter((line) => line !== "") };
  return {};
}

// What is said of sampling, in every route's words.
export function samplingOf(settings: Settings): RequestBody {
  const body: RequestBody = { ...settings.numbers, seed: settings.seed ?? newSeed() };
  if (settings.maxTokens !== null) body.max_tokens = settings.maxTokens;
  if (settings.stop.length > 0) body.stop = settings.stop;
  if (settings.beams > 0) {
    body.use_beam_search = true;
    body.n = settings.beams;
    for (const name of ["temperature", "top_p", "top_k", "min_p", "typical_p"]) delete body[name];
  }
  return body;
}

// What a request asks for to be explained, as far as the model's server knows it.
export const explaining = (body: RequestBody, model?: ModelFacts) => ({
  explain: true,
  ...(model?.attention && hasImages(body) ? { attention: true } : {}),
});

export function chatBody(path: MessageNode[], settings: Settings, model?: ModelFacts): RequestBody {
  const body: RequestBody = {
    ...(settings.model ? { model: settings.model } : {}),
    messages: messagesOf(path, settings.system),
    ...samplingOf(settings),
    ...structureOf(settings.structure),
    stream: true,
    stream_options: { include_usage: true },
    logprobs: true,
  };
  if (settings.tools.trim()) body.tools = JSON.parse(settings.tools);
  if (settings.extra?.trim()) Object.assign(body, JSON.parse(settings.extra));
  if (settings.explains) Object.assign(body, explaining(body, model));
  return body;
}

export const isConstrained = (settings: Settings) => settings.structure.kind !== "none" || settings.tools.trim() !== "";
