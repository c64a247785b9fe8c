// Conversations and views.
import { useRef } from "preact/hooks";
import { Views } from "../app";
import { exportAll, importFrom, startNew } from "../store/library";
import { show, store, type Theme } from "../store/store";
import { Icon, type IconName } from "../ui/icons";
import { IconButton } from "../ui/parts";
import { ConversationList } from "./conversation_list";

const themes: { name: Theme; icon: IconName; title: string }[] = [
  { name: "auto", icon: "half", title: "As the system" },
  { name: "light", icon: "sun", title: "Light" },
  { name: "dark", icon: "moon", title: "Dark" },
];

function ThemeChoice() {
  return (
    <div class="themes" role="group" aria-label="Colours">
      {themes.map((theme) => (
        <IconButton key={theme.name} icon={theme.icon} label={theme.title} pressed={store.theme.value === theme.name}
                    onClick={() => (store.theme.value = theme.name)} />
      ))}
    </div>
  );
}

export function Sidebar() {
  const input = useRef<HTMLInputElement>(null);
  const begin = () => {
    show("chat");
    startNew();
    document.getElementById("composer")?.focus();
  };
  const take = (event: Event) => {
    const field = event.currentTarget as HTMLInputElement;
    if (field.files?.[0]) void importFrom(field.files[0]);
    field.value = "";
  };
  const all = store.conversations.value;
  return (
    <>
      {store.isMenuOpen.value && <div class="shade" onClick={() => (store.isMenuOpen.value = false)} />}
      <aside class={`sidebar${store.isMenuOpen.value ? " is-open" : ""}`} aria-label="Conversations and views">
        <div class="brand">
          <svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="9" /><path d="M22 11a8 8 0 1 0 0 10" /><circle cx="16" cy="16" r="2.600" /></svg>
          <strong>Candor</strong>
          <IconButton icon="close" label="Close the menu" class="only-narrow" onClick={() => (store.isMenuOpen.value = false)} />
        </div>
        <Views class="views" />
        {store.parameters.value?.model.writes !== false && <button type="button" class="new-chat" onClick={begin}><Icon name="plus" /> New conversation <kbd>Ctrl K</kbd></button>}
        <ConversationList />
        <div class="side-foot">
          <IconButton icon="upload" label="Import" text="Import" onClick={() => input.current?.click()} />
          <IconButton icon="download" label="Export all conversations" text="Export" disabled={all.length === 0} onClick={() => void exportAll(all.map((one) => one.id))} />
          <input ref={input} type="file" accept="application/json,.json" hidden onChange={take} />
          <IconButton icon="key" label="API key" onClick={() => (store.dialog.value = { kind: "keys" })} />
          <IconButton icon="keyboard" label="Keyboard shortcuts" onClick={() => (store.dialog.value = { kind: "shortcuts" })} />
          <ThemeChoice />
        </div>
      </aside>
    </>
  );
}
