// The one store. Components read its signals; only store/ writes them.
import { computed, effect, signal, type Signal } from "@preact/signals";
import type { Parameters } from "../api/types";
import { recall, remember } from "./persist";
import { plainSettings } from "./settings";
import { shownPath } from "./tree";
import type { Attachment, Conversation, Explained, MessageNode, Settings } from "./types";

export type View = "chat" | "compare" | "reading" | "machine";
export type Theme = "auto" | "light" | "dark";
export type Panel = { kind: "none" } | { kind: "settings" } | { kind: "why"; node: string; at: number };

const views: View[] = ["chat", "compare", "reading", "machine"];
const viewInAddress = () => views.find((view) => `#${view}` === location.hash) ?? "chat";

export const store = {
  view: signal<View>(viewInAddress()),
  theme: signal<Theme>(recall<Theme>("theme", "auto")),
  parameters: signal<Parameters | null>(null),
  models: signal<string[]>([]),
  connection: signal<"asking" | "ready" | "key" | "away">("asking"),
  connectionFault: signal(""),
  panel: signal<Panel>({ kind: "none" }),
  dialog: signal<{ kind: "reproduce"; node: string } | { kind: "keys" } | { kind: "shortcuts" } | { kind: "file"; file: Attachment } | null>(null),
  isMenuOpen: signal(false),
  showsTokens: signal(recall("showsTokens", false)),
  conversations: signal<Conversation[]>([]),
  activeId: signal(recall("active", "")),
  query: signal(""), // what is looked for in conversations
  target: signal(""), // the message to be shown, once
  settings: signal<Settings>({ ...plainSettings, ...recall("settings", plainSettings) }), // of the next conversation
  draft: signal(recall("draft", "")),
  notice: signal(""), // one line, for whoever looks
  spoken: signal(""), // one line, for whoever listens
  explained: signal<Record<string, Explained>>({}),
  revision: signal(0), // of the trees
};

// Of one message that grows.
const ticks = new Map<string, Signal<number>>();
export function tickOf(node: string): Signal<number> {
  let tick = ticks.get(node);
  if (!tick) ticks.set(node, (tick = signal(0)));
  return tick;
}

export const active = computed<Conversation | null>(() => {
  store.revision.value;
  return store.conversations.value.find((one) => one.id === store.activeId.value) ?? null;
});

export const shown = computed<MessageNode[]>(() => {
  store.revision.value;
  return active.value ? shownPath(active.value) : [];
});

export const settings = computed<Settings>(() => {
  store.revision.value;
  return active.value?.settings ?? store.settings.value;
});

effect(() => remember("theme", store.theme.value));
effect(() => remember("active", store.activeId.value));
effect(() => remember("settings", store.settings.value));
effect(() => remember("showsTokens", store.showsTokens.value));
effect(() => {
  if (store.draft.value.length < 2_000_000) remember("draft", store.draft.value);
});
effect(() => {
  const dark = store.theme.value === "dark" || (store.theme.value === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  const theme = store.theme.value;
  store.theme.value = "light";
  store.theme.value = theme;
});
// A model that writes nothing is not asked to.
effect(() => {
  const model = store.parameters.value?.model;
  if (model && !model.writes && (store.view.value === "chat" || store.view.value === "compare")) store.view.value = "reading";
});
addEventListener("hashchange", () => (store.view.value = viewInAddress()));

export function show(view: View) {
  store.isMenuOpen.value = false;
  if (view !== "chat") store.panel.value = { kind: "none" };
  history.replaceState(null, "", `#${view}`);
  store.view.value = view;
}
