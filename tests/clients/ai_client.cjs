// Vercel's AI SDK, unmodified, against a server of ours.
// usage: node ai_client.cjs URL CLIENTS_FOLDER
const assert = require("node:assert/strict");
const path = require("node:path");
const { createRequire } = require("node:module");

const [url, folder] = process.argv.slice(2);
const fromFolder = createRequire(path.resolve(folder, "package.json"));
const { createOpenAICompatible } = fromFolder("@ai-sdk/openai-compatible");
const { APICallError, generateObject, generateText, jsonSchema, streamText, tool } = fromFolder("ai");
const provider = createOpenAICompatible({ name: "candor", baseURL: url + "/v1", supportsStructuredOutputs: true });
const asked = { model: provider("pocket"), prompt: "Tell me a story about a cat", maxRetries: 0, temperature: 1, seed: 5 };
const weather = {
  type: "object",
  properties: { place: { type: "string", enum: ["Rome", "Oslo"] } },
  required: ["place"],
  additionalProperties: false,
};

// A small model may fill a constraint's free places with spaces for ever: one seed after the other.
async function untilWhole(ask) {
  let last;
  for (let seed = 0; seed < 30; ++seed) {
    try {
      return await ask(seed);
    } catch (error) {
      last = error;
    }
  }
  throw last;
}

async function chat() {
  const plain = await generateText({ ...asked, maxOutputTokens: 24 });
  let streamed = "";
  for await (const piece of streamText({ ...asked, maxOutputTokens: 24 }).textStream) streamed += piece;
  assert.equal(streamed, plain.text);
  assert.ok(plain.usage.outputTokens <= 24 && plain.usage.inputTokens > 0);
}

async function structure() {
  const schema = jsonSchema({ ...weather, properties: { ok: { type: "boolean" } }, required: ["ok"] });
  const formed = await untilWhole((seed) => generateObject({ ...asked, schema, seed, maxOutputTokens: 80 }));
  assert.equal(typeof formed.object.ok, "boolean");
  const tools = { weather: tool({ description: "the weather", inputSchema: jsonSchema(weather) }) };
  const call = await untilWhole(async (seed) => {
    const answer = await generateText({ ...asked, tools, toolChoice: "required", seed, maxOutputTokens: 80 });
    assert.equal(answer.toolCalls.length, 1);
    return answer.toolCalls[0];
  });
  assert.equal(call.toolName, "weather");
  assert.ok(["Rome", "Oslo"].includes(call.input.place));
}

async function errorsAndAbort() {
  const error = await generateText({ ...asked, temperature: 7 }).catch((caught) => caught);
  assert.ok(APICallError.isInstance(error), String(error));
  assert.equal(error.statusCode, 400);
  const controller = new AbortController();
  const stream = streamText({ ...asked, maxOutputTokens: 400, abortSignal: controller.signal });
  for await (const _ of stream.textStream) controller.abort();
}

(async () => {
  await chat();
  await structure();
  await errorsAndAbort();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
