// What stays in the browser: conversations in IndexedDB, small things in localStorage. Nothing leaves it.
import type { Conversation } from "./types";

const name = "candor";
const folder = "conversations";

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(folder, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function run<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
      const request = act(database.transaction(folder, mode).objectStore(folder));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } finally {
    database.close();
  }
}

export const loadAll = () => run<Conversation[]>("readonly", (store) => store.getAll());
export const save = (conversation: Conversation) => run("readwrite", (store) => store.put(conversation));
export const forget = (id: string) => run("readwrite", (store) => store.delete(id));

// Small things; a browser that keeps nothing is no fault.
export function recall<T>(key: string, fallback: T): T {
  try {
    const text = localStorage.getItem(`candor.${key}`);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function remember(key: string, value: unknown) {
  try {
    if (value === null) localStorage.removeItem(`candor.${key}`);
    else localStorage.setItem(`candor.${key}`, JSON.stringify(value));
  } catch {
    // full, or forbidden: the tab goes on
  }
}

// The key lives in the tab; beyond it only where that was asked for.
export function recallKey(): { key: string; isKept: boolean } {
  const kept = recall("key", "");
  if (kept) return { key: kept, isKept: true };
  try {
    return { key: sessionStorage.getItem("candor.key") ?? "", isKept: false };
  } catch {
    return { key: "", isKept: false };
  }
}

export function rememberKey(key: string, isKept: boolean) {
  remember("key", isKept && key ? key : null);
  try {
    if (key && !isKept) sessionStorage.setItem("candor.key", key);
    else sessionStorage.removeItem("candor.key");
  } catch {
    // as above
  }
}
