// What a conversation is: a tree of messages, of which one path is shown.
import type { Explanation, RequestBody, Timings, ToolCall, Usage } from "../api/types";

export type StructureKind = "none" | "object" | "schema" | "regex" | "choice" | "grammar";

export interface Settings {
  system: string;
  preset: string; // "" where the numbers are nobody's preset
  numbers: Record<string, number>; // those that differ from the engine's defaults
  seed: number | null; // null: a new one for each answer
  maxTokens: number | null;
  stop: string[];
  structure: { kind: StructureKind; text: string };
  tools: string; // a JSON array, or ""
  extra?: string; // a JSON object of further fields, or ""
  beams: number; // 0: drawn
  model: string; // "": the server's
  explains: boolean; // every token, while it comes
}

export interface Token {
  t: string; // what it added to the text that is shown
  s: string; // what it is by itself
  p: number; // logprob
  ms: number; // after the request was sent
  k: "c" | "r" | "x"; // content, reasoning, nothing that is shown
  d?: boolean; // a draft that was right
}

export interface TextFile {
  id: string;
  kind: "text";
  name: string;
  size: number; // bytes of the file
  text: string;
}

export interface ImageFile {
  id: string;
  kind: "image";
  name: string;
  size: number; // bytes, as it is sent
  width: number;
  height: number;
  data: Blob; // as it is sent
  thumb: string; // a small one, as a data: address
  note: string; // what was done to it, or ""
}

export type Attachment = TextFile | ImageFile;

export type NodeState = "streaming" | "done" | "stopped" | "failed";

export interface MessageNode {
  id: string;
  parent: string; // "" for the first
  role: "user" | "assistant" | "tool";
  content: string;
  reasoning?: string;
  calls?: ToolCall[];
  callId?: string; // of the call that a tool's message answers
  attachments?: Attachment[]; // the files that go with a message
  children: string[];
  chosen: number; // which child is shown
  at: number;
  state: NodeState;
  error?: string;
  // Of an answer:
  path?: "/v1/chat/completions" | "/v1/completions";
  body?: RequestBody; // as it was sent, with ids in place of the data of images
  settings?: Settings;
  tokens?: Token[];
  timings?: Timings;
  usage?: Usage;
  finish?: string;
  warnings?: string[];
  tookMs?: number;
  origin?: { node: string; at: number; token: number }; // where it left another answer, and with which token
}

export interface Conversation {
  id: string;
  title: string;
  at: number;
  settings: Settings;
  nodes: Record<string, MessageNode>;
  roots: string[];
  chosen: number;
  isPinned?: boolean; // it stands above the others
}

export interface Explained {
  state: "asking" | "done" | "failed";
  tokens: Explanation[];
  note: string;
}
