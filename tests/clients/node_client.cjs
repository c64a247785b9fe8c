// OpenAI's package for Node, unmodified, against a server of ours. Exit code 77: skipped.
// usage: node node_client.cjs URL CLIENTS_FOLDER PACKAGE [IMAGE]; with an image: a model that takes images, and this alone
const assert = require("node:assert/strict");
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { createRequire } = require("node:module");

const [url, folder, name, picture] = process.argv.slice(2);
const fromFolder = createRequire(path.resolve(folder, "package.json"));
const OpenAI = fromFolder(name).default ?? fromFolder(name);
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const asked = {
  model: "pocket",
  messages: [{ role: "user", content: "Tell me a story about a cat" }],
  max_tokens: 24,
  temperature: 1,
  seed: 5,
};
const parameters = {
  type: "object",
  properties: { place: { type: "string", enum: ["Rome", "Oslo"] } },
  required: ["place"],
  additionalProperties: false,
};
const tool = { type: "function", function: { name: "weather", parameters } };

// A small model may fill a constraint's free places with spaces for ever: one seed after the other.
async function untilStopped(more) {
  for (let seed = 0; seed < 30; ++seed) {
    const answer = await client.chat.completions.create({ ...asked, max_tokens: 80, ...more, seed });
    if (answer.choices[0].finish_reason !== "length") return answer;
  }
  throw new Error("30 seeds, and no answer ended by itself");
}

async function chat() {
  const plain = await client.chat.completions.create(asked);
  let streamed = "";
  for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
    streamed += chunk.choices[0].delta.content ?? "";
  }
  assert.equal(streamed, plain.choices[0].message.content);
  const scored = await client.chat.completions.create({ ...asked, logprobs: true, top_logprobs: 2 });
  assert.equal(scored.choices[0].logprobs.content.length, plain.usage.completion_tokens);
  const models = await client.models.list();
  assert.deepEqual(models.data.map((model) => model.id), ["pocket"]);
}

async function structure() {
  const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"], additionalProperties: false };
  const format = { type: "json_schema", json_schema: { name: "x", schema, strict: true } };
  const formed = await untilStopped({ response_format: format });
  assert.equal(typeof JSON.parse(formed.choices[0].message.content).ok, "boolean");
  const choice = { type: "function", function: { name: "weather" } };
  const called = await untilStopped({ tools: [tool], tool_choice: choice });
  const call = called.choices[0].message.tool_calls[0];
  assert.equal(called.choices[0].finish_reason, "tool_calls");
  assert.ok(["Rome", "Oslo"].includes(JSON.parse(call.function.arguments).place));
  let args = "";
  const seed = 0;
  for await (const chunk of await client.chat.completions.create({
    ...asked, max_tokens: 200, seed, tools: [tool], tool_choice: "required", stream: true,
  })) {
    args += chunk.choices[0].delta.tool_calls?.[0].function.arguments ?? "";
  }
  if (args !== "") assert.ok(["Rome", "Oslo"].includes(JSON.parse(args).place));
}

async function scoringAndEmbeddings() {
  const prompt = "Once upon a time";
  const scored = await client.completions.create({ model: "pocket", prompt, max_tokens: 0, echo: true, logprobs: 1 });
  const { token_logprobs: logprobs } = scored.choices[0].logprobs;
  assert.equal(scored.choices[0].text, prompt);
  assert.equal(logprobs[0], null);
  assert.equal(logprobs.length, scored.usage.prompt_tokens);
  const input = ["a cat", "a dog"];
  const coded = await client.embeddings.create({ model: "pocket", input });
  const floats = await client.embeddings.create({ model: "pocket", input, encoding_format: "float" });
  assert.deepEqual(Array.from(coded.data[1].embedding), floats.data[1].embedding);
}

async function errorsAndAbort() {
  const status = async (change) => {
    const error = await client.chat.completions.create({ ...asked, ...change }).catch((caught) => caught);
    assert.ok(error.error?.message, `${JSON.stringify(change)} was accepted`);
    return error.status;
  };
  assert.equal(await status({ temperature: 7 }), 400);
  assert.equal(await status({ model: "other" }), 404);
  const abandoned = await client.chat.completions.create({ ...asked, max_tokens: 400, stream: true });
  for await (const _ of abandoned) break;
}

async function image() {
  const data = `data:image/png;base64,${fs.readFileSync(picture, "base64")}`;
  const content = [{ type: "text", text: "What is this?" }, { type: "image_url", image_url: { url: data } }];
  const shown = { ...asked, messages: [{ role: "user", content }], max_tokens: 8, temperature: 0 };
  const plain = await client.chat.completions.create(shown);
  assert.ok(plain.usage.prompt_tokens_details.image_tokens > 0);
  let streamed = "";
  for await (const chunk of await client.chat.completions.create({ ...shown, stream: true })) {
    streamed += chunk.choices[0].delta.content ?? "";
  }
  assert.equal(streamed, plain.choices[0].message.content);
}

// node-fetch, by which openai 4 asks, takes the end of every chunked reply for a loss beside some Nodes (Debian's patched
// 18.20.4), whichever the server: this one is Node's own.
async function endsChunkedReplies() {
  const server = http.createServer((_, reply) => {
    reply.write("one");
    setTimeout(() => reply.end("two"), 20);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const agent = new http.Agent({ keepAlive: true });
  try {
    const reply = await fromFolder("node-fetch")(`http://127.0.0.1:${server.address().port}`, { agent });
    for await (const _ of reply.body);
    return true;
  } catch (error) {
    if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    return false;
  } finally {
    agent.destroy();
    server.close();
  }
}

(async () => {
  if (name === "openai-4" && !(await endsChunkedReplies())) {
    console.log(`skipped: node-fetch does not read chunked replies to their end with Node ${process.version}`);
    process.exit(77);
  }
  if (picture) return image();
  await chat();
  await structure();
  await scoringAndEmbeddings();
  await errorsAndAbort();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
