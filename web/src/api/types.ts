// What the server says and is told: the members that the page uses, as src/serve writes them.
import type { SamplingName } from "./sampling_names";

export interface NumberInfo {
  name: SamplingName;
  least: number;
  most: number;
  default: number;
  whole: boolean;
  note: string;
  help: string;
}

export interface Preset {
  name: string;
  temperature: number;
  top_p: number;
}

export interface ModelFacts {
  id: string;
  path: string;
  family: string;
  format: string;
  backend: string;
  device_note: string; // why the model is not on the device, or not all of it; empty: nothing to say
  n_parameters: number;
  n_layers: number;
  dim: number;
  n_vocab: number;
  n_ctx: number;
  n_ctx_train: number;
  kv_type: string;
  n_threads: number;
  has_chat_template: boolean;
  chat_template_error: string;
  draft: string;
  writes: boolean; // false: it reads texts, and nothing else
  labels: string[];
  labels_tokens: boolean;
  ranks_pairs: boolean;
  images?: boolean; // true: messages may hold images
  attention?: boolean; // true: it can tell where a token looked in them
}

// GET /v1/ui/parameters
export interface Parameters {
  version: string;
  numbers: NumberInfo[];
  presets: Preset[];
  stages: string[];
  limits: { top_logprobs: number; choices: number; beams: number; stops: number };
  model: ModelFacts;
}

export interface Distribution {
  count: number;
  p50: number;
  p90: number;
  p99: number;
  max: number;
  buckets: [upper: number, count: number][];
}

export type StepRow = [
  prefill: number, decode: number, draft: number, sequences: number, plan: number, compute: number, pick: number,
  operations: number[], // microseconds; empty where they were not measured
];

// Who drafted, in requests that ended; milliseconds by the costs measured.
export interface Drafts {
  drafter: string;
  steps: number; // in which it drafted, counted for each sequence
  drafted: number;
  accepted: number;
  plain_ms: number; // these steps without drafts; 0: not counted
  added_ms: number;
  saved_ms: number;
}

// GET /v1/ui/live
export interface Live {
  sampled_tokens: number;
  computed_tokens: number;
  cached_tokens: number;
  preemptions: number;
  waiting: number;
  running: number;
  kv_blocks: { used: number; cached: number; total: number; tokens: number };
  ttft_ms: Distribution;
  itl_ms: Distribution;
  tpot_ms: Distribution;
  queue_ms: Distribution;
  step_ms: Distribution;
  refused: number;
  generations: number;
  inflight_bytes: { used: number; limit: number };
  memory: { device: string | null; weights: number; kv: number; available: number; machine: number }; // of the device, else the machine's
  energy_uj: [name: string, used: number, range: number][] | null; // counters that begin anew behind their range
  limit: { read_bytes_per_s: number; steps_per_s: number } | null;
  drafts: Drafts[]; // empty: nobody drafts
  steps: {
    n: number;
    prefill_rows: number;
    decode_rows: number;
    draft_rows: number;
    busy_ms: number;
    operations: string[]; // names of what a step's last member counts
    newest: StepRow[];
  } | null;
}

export interface Candidate {
  token: number;
  text: string;
  logit: number;
  probability: number;
}

// What a stage did to the logit of a token.
export interface Change {
  token: number;
  text: string;
  before: number;
  after: number;
  n_in_text: number;
  n_in_output: number;
}

export interface Stage {
  name: string;
  n_left: number;
  best: Candidate[];
  cut: Candidate[];
  lowered: Candidate[];
  cut_probability: number; // of all that were cut together
  changed: Change[];
  n_changed: number;
}

export interface BeamOption {
  parent: number;
  token: number;
  text: string;
  score: number;
  fate: "kept" | "complete" | "dropped";
}

// Where a token looked in one image of the prompt: shares of its attention, patch by patch, tile by tile.
export interface ImageAttention {
  width: number;
  height: number;
  share: number;
  tiles: { rows: number; cols: number; box: [left: number, top: number, width: number, height: number]; is_whole: boolean; shares: number[] }[];
}

// How one token came about: a member of `explain`.
export interface Explanation {
  token: number;
  text: string;
  stages: Stage[];
  draw: number | null;
  draft: number | null;
  beam_option?: number;
  beam_options?: BeamOption[];
  images?: ImageAttention[]; // in the order of the prompt
}

export interface Timings {
  cache_n: number;
  prompt_n: number;
  prompt_ms: number;
  prompt_per_token_ms: number;
  prompt_per_second: number;
  predicted_n: number;
  predicted_ms: number;
  predicted_per_token_ms: number;
  predicted_per_second: number;
  images_ms?: number;
  template_ms: number;
  tokenize_ms: number;
  queue_ms: number;
  ttft_ms: number;
  seed: number;
  prompt_chunks?: [begin_ms: number, ms: number, tokens: number][];
  draft_n?: number;
  draft_n_accepted?: number;
  drafts?: Record<string, { n: number; n_accepted: number }>; // by who drafted
  limit_share?: number;
}

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: string;
}

export type ContentPart = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };

export interface ChatMessage {
  role: string;
  content: string | ContentPart[] | null;
  tool_calls?: { id: string; type: "function"; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

interface ToolCallDelta {
  index: number;
  id?: string;
  function: { name?: string; arguments: string };
}

// A chunk of /v1/chat/completions or /v1/completions.
export interface Chunk {
  choices: {
    index: number;
    delta?: { content?: string; reasoning_content?: string; tool_calls?: ToolCallDelta[] };
    text?: string;
    logprobs?: { content?: { token: string; logprob: number }[]; tokens?: string[]; token_logprobs?: number[] } | null;
    explain?: Explanation[];
    finish_reason?: string | null;
    stop_reason?: string | number | null;
  }[];
  usage?: Usage | null;
  timings?: Timings;
  warnings?: string[];
  error?: { message: string };
}

export type RequestBody = Record<string, unknown>;
