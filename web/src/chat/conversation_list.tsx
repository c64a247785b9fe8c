// The conversations: those that are pinned first, or those that a search found.
import { computed } from "@preact/signals";
import { exportAll, open, pin, remove, showMessage } from "../store/library";
import { inOrder, search, wordsOf, type Found } from "../store/search";
import { show, store } from "../store/store";
import { IconButton } from "../ui/parts";

const isSearched = computed(() => wordsOf(store.query.value).length > 0);
const found = computed<Found[]>(() => {
  store.revision.value;
  if (isSearched.value) return search(store.conversations.value, store.query.value);
  return inOrder(store.conversations.value).map((conversation) => ({ conversation, node: "", words: null }));
});

function Entry({ conversation: one, node, words }: Found) {
  const isOpen = one.id === store.activeId.value;
  const openIt = () => {
    show("chat");
    open(one.id);
    if (node) showMessage(one, node);
  };
  return (
    <li class={isOpen ? "is-open" : ""}>
      <button type="button" class="conversation" aria-current={isOpen ? "true" : undefined} onClick={openIt}>
        {one.title}
        {words && <small>{words[0]}<mark>{words[1]}</mark>{words[2]}</small>}
      </button>
      <IconButton icon="pin" label={`${one.isPinned ? "Unpin" : "Pin"} ${one.title}`} pressed={one.isPinned ?? false} onClick={() => pin(one)} />
      <IconButton icon="download" label={`Export ${one.title}`} onClick={() => void exportAll([one.id])} />
      <IconButton icon="trash" label={`Delete ${one.title}`}
                  onClick={() => confirm(`Delete "${one.title}"? It is kept nowhere else.`) && remove(one.id)} />
    </li>
  );
}

function Entries({ title, list }: { title?: string; list: Found[] }) {
  if (list.length === 0) return null;
  return (
    <>
      {title && <h2>{title}</h2>}
      <ul>{list.map((one) => <Entry key={one.conversation.id} {...one} />)}</ul>
    </>
  );
}

function Lists() {
  const list = found.value;
  const pinned = isSearched.value ? [] : list.filter((one) => one.conversation.isPinned);
  return (
    <div class="conversations" tabIndex={-1}>
      <Entries title="Pinned" list={pinned} />
      <Entries title={pinned.length > 0 ? "Others" : undefined} list={list.slice(pinned.length)} />
    </div>
  );
}

export function ConversationList() {
  store.revision.value;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    store.query.value = "";
    document.getElementById("composer")?.focus();
  };
  if (store.conversations.value.length === 0) return <div class="conversations" />;
  return (
    <>
      <input id="search" type="search" aria-label="Search the conversations" placeholder="Search" value={store.query.value} onKeyDown={onKeyDown}
             onInput={(e) => (store.query.value = e.currentTarget.value)} />
      <p class={isSearched.value ? "quiet" : "spoken"} role="status">{isSearched.value ? `${found.value.length || "None"} found` : ""}</p>
      <Lists />
    </>
  );
}

