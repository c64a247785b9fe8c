// The conversations that the browser keeps: loaded, saved, brought in and out.
import { client } from "../api/client";
import { blobOfUrl, dataUrlOf } from "./images";
import { forget, loadAll, recallKey, rememberKey, save } from "./persist";
import { withPreset } from "./settings";
import { active, store } from "./store";
import { choose, newId, pathTo } from "./tree";
import type { Attachment, Conversation, MessageNode, Settings } from "./types";

let keeping = new Map<string, number>();

export function keep(conversation: Conversation) {
  conversation.at = Date.now();
  write(conversation);
}

function write(conversation: Conversation) {
  clearTimeout(keeping.get(conversation.id));
  const run = () => save(conversation).catch(() => (store.notice.value = "This browser keeps nothing: export what you want to keep."));
  keeping.set(conversation.id, window.setTimeout(run, 300));
}

export async function loadLibrary() {
  try {
    const all = await loadAll();
    for (const one of all) {
      for (const node of Object.values(one.nodes)) if (node.state === "streaming") node.state = "stopped";
    }
    store.conversations.value = [...store.conversations.value, ...all.sort((a, b) => b.at - a.at)];
  } catch (failure) {
    const isLater = failure instanceof DOMException && failure.name === "VersionError";
    store.notice.value = isLater
      ? "This browser's conversations are of a later Candor: they are left alone. Export what you want to keep."
      : "This browser keeps nothing: export what you want to keep.";
  }
}

export async function connect() {
  try {
    const [parameters, models] = await Promise.all([client.parameters(), client.models()]);
    store.parameters.value = parameters;
    store.models.value = models.data.map((model) => model.id);
    if (!store.settings.value.preset && Object.keys(store.settings.value.numbers).length === 0) {
      store.settings.value = withPreset(store.settings.value, "chat", parameters);
    }
    store.connection.value = "ready";
    store.connectionFault.value = "";
  } catch (failure) {
    const status = (failure as { status?: number }).status;
    store.connection.value = status === 401 ? "key" : "away";
    store.connectionFault.value = (failure as Error).message;
  }
}

export function useKey(key: string, isKept: boolean) {
  client.key = key.trim();
  rememberKey(client.key, isKept);
  store.connection.value = "asking";
  return connect();
}

export function begin() {
  client.key = recallKey().key;
  void loadLibrary();
  void connect();
}

export function startNew() {
  store.activeId.value = "";
  store.panel.value = { kind: "none" };
  store.isMenuOpen.value = false;
}

export function open(id: string) {
  store.activeId.value = id;
  store.panel.value = { kind: "none" };
  store.isMenuOpen.value = false;
}

// On the branch that is shown, and in sight.
export function showMessage(conversation: Conversation, id: string) {
  for (const node of pathTo(conversation, id)) choose(conversation, node);
  store.revision.value++;
  store.target.value = id;
}

export function remove(id: string) {
  store.conversations.value = store.conversations.value.filter((one) => one.id !== id);
  if (store.activeId.value === id) store.activeId.value = "";
  void forget(id).catch(() => {});
}

// Of the conversation that is open, and of those that will begin.
export function change(part: Partial<Settings>) {
  const conversation = active.value;
  if (conversation) {
    conversation.settings = { ...conversation.settings, ...part };
    keep(conversation);
  }
  store.settings.value = { ...store.settings.value, ...(conversation ? { numbers: conversation.settings.numbers, preset: conversation.settings.preset } : part) };
  store.revision.value++;
}

export function pin(conversation: Conversation) {
  conversation.isPinned = !conversation.isPinned;
  store.revision.value++;
  write(conversation);
}

async function mapFiles(conversation: Conversation, change: (one: Attachment) => Promise<Attachment | null>): Promise<Conversation> {
  const changed = async ([id, node]: [string, MessageNode]): Promise<[string, MessageNode]> => {
    if (!node.attachments) return [id, node];
    const files = await Promise.all(node.attachments.map(change));
    return [id, { ...node, attachments: files.filter((one) => one !== null) }];
  };
  return { ...conversation, nodes: Object.fromEntries(await Promise.all(Object.entries(conversation.nodes).map(changed))) };
}

// In a file of JSON, an image is its data: address.
const asJson = async (one: Attachment) => (one.kind === "image" ? ({ ...one, data: await dataUrlOf(one.data) } as unknown as Attachment) : one);

async function ofJson(one: Attachment): Promise<Attachment | null> {
  if (one?.kind === "text") return typeof one.text === "string" && typeof one.name === "string" ? one : null;
  const data = one?.kind === "image" ? blobOfUrl(String(one.data)) : null;
  return data && /^data:image\/(png|jpeg|webp);base64,/.test(one.kind === "image" ? one.thumb : "") ? ({ ...one, data } as Attachment) : null;
}

export async function exportAll(ids: string[]) {
  const chosen = store.conversations.value.filter((one) => ids.includes(one.id));
  const text = JSON.stringify({ candor: 1, conversations: await Promise.all(chosen.map((one) => mapFiles(one, asJson))) }, null, 1);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = chosen.length === 1 ? `${chosen[0].title.replace(/[^\w ]/g, "").trim() || "conversation"}.json` : "candor-conversations.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const isConversation = (value: unknown): value is Conversation => {
  const one = value as Conversation;
  return typeof one?.title === "string" && typeof one.nodes === "object" && Array.isArray(one.roots) && typeof one.settings === "object"
    && Object.values(one.nodes).every((node) => typeof node.content === "string" && Array.isArray(node.children)
      && (node.attachments === undefined || Array.isArray(node.attachments)));
};

export async function importFrom(file: File) {
  try {
    const list = JSON.parse(await file.text()).conversations;
    if (!Array.isArray(list) || !list.every(isConversation)) throw new Error("it holds no conversations of this page");
    const fresh = await Promise.all(list.map((one) => mapFiles({ ...one, id: newId() }, ofJson)));
    store.conversations.value = [...fresh, ...store.conversations.value];
    fresh.forEach(keep);
    open(fresh[0]?.id ?? "");
    store.notice.value = "";
  } catch (error) {
    store.notice.value = `${file.name} cannot be read: ${(error as Error).message}`;
  }
}
