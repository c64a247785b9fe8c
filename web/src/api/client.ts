// The server's routes. Every failure becomes a Failure with one plain line; nothing else is thrown.
import type { Chunk, Live, Parameters, RequestBody } from "./types";

export class Failure extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
  get needsKey() {
    return this.status === 401;
  }
}

const away = "The server does not answer: it was stopped, or the network is gone.";

// The server's own words, with what the page knows to do about them.
function failureOf(status: number, text: string): Failure {
  let words = "";
  try {
    const error = JSON.parse(text).error;
    words = typeof error === "string" ? error : (error?.message ?? "");
  } catch {
    words = text.slice(0, 200);
  }
  if (status === 429) words = `The server is full (${words}). What you wrote is kept: try again in a moment.`;
  if (status === 503) words = `The server cannot take more now (${words}). What you wrote is kept: try again in a moment.`;
  return new Failure(words || `The server answered with status ${status}.`, status);
}

export class Client {
  key = "";

  private headers(): Record<string, string> {
    return this.key ? { authorization: `Bearer ${this.key}` } : {};
  }

  private async ask(path: string, init: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(path, { ...init, headers: { ...this.headers(), ...init.headers } });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new Failure(away, 0);
    }
    if (!response.ok) throw failureOf(response.status, await response.text().catch(() => ""));
    return response;
  }

  private async get<T>(path: string): Promise<T> {
    return (await this.ask(path, {})).json();
  }

  private post(path: string, body: RequestBody, signal?: AbortSignal): Promise<Response> {
    const init = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
    return this.ask(path, { ...init, signal });
  }

  parameters = () => this.get<Parameters>("/v1/ui/parameters");
  models = () => this.get<{ data: { id: string }[] }>("/v1/models");
  live = (steps: number) => this.get<Live>(`/v1/ui/live?steps=${steps}`);

  async read<T>(path: string, body: RequestBody): Promise<T> {
    return (await this.post(path, body)).json();
  }

  // The prompt's tokens that a chat with this body would read.
  async promptTokens(body: RequestBody): Promise<number[]> {
    return (await (await this.post("/tokenize", body)).json()).tokens;
  }

  // Chunks as they come. What breaks off without an end is a Failure, too.
  async *stream(path: string, body: RequestBody, signal: AbortSignal): AsyncGenerator<Chunk> {
    const response = await this.post(path, body, signal);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      let part: ReadableStreamReadResult<string>;
      try {
        part = await reader.read();
      } catch (error) {
        if (error instanceof DOMException && error.name === "AbortError") throw error;
        throw new Failure("The server went away in the middle of the answer.", 0);
      }
      if (part.done) throw new Failure("The answer broke off: the server ended it without its last words.", 0);
      const lines = (rest + part.value).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (!line.startsWith("data: ")) continue;
        if (line === "data: [DONE]") return;
        const chunk = JSON.parse(line.slice(6)) as Chunk;
        if (chunk.error) throw new Failure(chunk.error.message, 200);
        yield chunk;
      }
    }
  }
}

export const client = new Client();
