// The tree of a conversation: plain functions over it.
import type { Conversation, MessageNode, Settings } from "./types";

export const newId = () => crypto.getRandomValues(new Uint32Array(2)).reduce((text, n) => text + n.toString(36), "");

export function newConversation(settings: Settings): Conversation {
  return { id: newId(), title: "New conversation", at: Date.now(), settings: structuredClone(settings), nodes: {}, roots: [], chosen: 0 };
}

export function siblingsOf(conversation: Conversation, node: MessageNode): string[] {
  return node.parent === "" ? conversation.roots : conversation.nodes[node.parent].children;
}

export function addNode(conversation: Conversation, parent: string, part: Partial<MessageNode>): MessageNode {
  const node: MessageNode = {
    id: newId(), parent, role: "user", content: "", children: [], chosen: 0, at: Date.now(), state: "done", ...part,
  };
  conversation.nodes[node.id] = node;
  const siblings = siblingsOf(conversation, node);
  siblings.push(node.id);
  choose(conversation, node);
  return node;
}

export function choose(conversation: Conversation, node: MessageNode) {
  const place = siblingsOf(conversation, node).indexOf(node.id);
  if (node.parent === "") conversation.chosen = place;
  else conversation.nodes[node.parent].chosen = place;
}

// From the first message to the last, along the branches that are chosen.
export function shownPath(conversation: Conversation): MessageNode[] {
  const path: MessageNode[] = [];
  let id: string | undefined = conversation.roots[conversation.chosen];
  while (id !== undefined && conversation.nodes[id]) {
    const node: MessageNode = conversation.nodes[id];
    path.push(node);
    id = node.children[node.chosen];
  }
  return path;
}

export function pathTo(conversation: Conversation, id: string): MessageNode[] {
  const path: MessageNode[] = [];
  for (let node = conversation.nodes[id]; node; node = conversation.nodes[node.parent]) path.unshift(node);
  return path;
}

export function titleOf(text: string): string {
  const line = text.trim().split("\n")[0] ?? "";
  return line.length > 48 ? `${line.slice(0, 47)}…` : line || "New conversation";
}
