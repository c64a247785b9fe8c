// The frame: what is chosen on the left, what is shown in the middle, what explains it on the right.
import { useEffect } from "preact/hooks";
import { FileDialog } from "./chat/attachments";
import { Composer } from "./chat/composer";
import { KeyDialog } from "./chat/key_dialog";
import { Reproduce } from "./chat/reproduce";
import { SettingsPanel } from "./chat/settings_panel";
import { Shortcuts } from "./chat/shortcuts";
import { Sidebar } from "./chat/sidebar";
import { Thread } from "./chat/thread";
import { Compare } from "./compare/compare";
import { Machine } from "./machine/machine";
import { Reading } from "./reading/reading";
import { stop } from "./store/actions";
import { connect, startNew } from "./store/library";
import { active, show, store, type View } from "./store/store";
import { Icon, type IconName } from "./ui/icons";
import { IconButton } from "./ui/parts";
import { WhyPanel } from "./why/why_panel";

const views: { name: View; title: string; icon: IconName }[] = [
  { name: "chat", title: "Chat", icon: "chat" },
  { name: "compare", title: "Side by side", icon: "compare" },
  { name: "reading", title: "Read texts", icon: "tokens" },
  { name: "machine", title: "Machine", icon: "machine" },
];

function onKey(event: KeyboardEvent) {
  const typed = event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "Escape" && !store.dialog.value) {
    if (store.panel.value.kind !== "none") store.panel.value = { kind: "none" };
    else if (store.isMenuOpen.value) store.isMenuOpen.value = false;
    else stop();
  } else if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    show("chat");
    startNew();
    document.getElementById("composer")?.focus();
  } else if (event.key.toLowerCase() === "f" && event.shiftKey && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    store.isMenuOpen.value = matchMedia("(max-width: 760px)").matches;
    setTimeout(() => document.getElementById("search")?.focus());
  } else if (event.key === "?" && !typed && !store.dialog.value) {
    store.dialog.value = { kind: "shortcuts" };
  } else if (event.key === "/" && !typed) {
    event.preventDefault();
    document.getElementById("composer")?.focus();
  }
}

// A model that writes is talked to; one that reads, or has a head, is given texts.
function isOffered(view: View) {
  const model = store.parameters.value?.model;
  if (!model || view === "machine") return view !== "reading";
  return view === "reading" ? !model.writes || model.labels.length > 0 : model.writes;
}

export function Views({ class: name }: { class: string }) {
  return (
    <nav class={name} aria-label="Views">
      {views.filter((view) => isOffered(view.name)).map((view) => (
        <button type="button" key={view.name} aria-current={store.view.value === view.name ? "page" : undefined} onClick={() => show(view.name)}>
          <Icon name={view.icon} />
          <span>{view.title}</span>
        </button>
      ))}
    </nav>
  );
}

function TopBar() {
  const parameters = store.parameters.value;
  const title = store.view.value === "chat" ? (active.value?.title ?? "New conversation") : views.find((one) => one.name === store.view.value)!.title;
  const toggle = () => (store.panel.value = store.panel.value.kind === "settings" ? { kind: "none" } : { kind: "settings" });
  return (
    <header class="top-bar">
      <IconButton icon="menu" label="Conversations" class="only-narrow" onClick={() => (store.isMenuOpen.value = true)} />
      <h1>{title}</h1>
      <span class="model-name" title={parameters?.model.backend}>{parameters?.model.id}</span>
      {store.view.value === "chat" && (
        <>
          <IconButton icon="tokens" label="Show tokens" pressed={store.showsTokens.value}
                      onClick={() => (store.showsTokens.value = !store.showsTokens.value)} />
          <IconButton icon="sliders" label="Settings" pressed={store.panel.value.kind === "settings"} onClick={toggle} />
        </>
      )}
    </header>
  );
}

function Away() {
  if (store.connection.value !== "away") return null;
  return (
    <p class="notice" role="alert">
      {store.connectionFault.value} <button type="button" class="plain" onClick={() => void connect()}>Try again</button>
    </p>
  );
}

export function App() {
  useEffect(() => {
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const view = store.view.value;
  const panel = store.panel.value;
  return (
    <div class={`frame${panel.kind !== "none" ? " has-panel" : ""}`}>
      <Sidebar />
      <main>
        <TopBar />
        <Away />
        {view === "chat" && <Thread />}
        {view === "chat" && <Composer />}
        {view === "compare" && <Compare />}
        {view === "reading" && <Reading />}
        {view === "machine" && <Machine />}
      </main>
      {panel.kind === "settings" && <SettingsPanel />}
      {panel.kind === "why" && <WhyPanel node={panel.node} at={panel.at} />}
      <Views class="bottom-bar" />
      {(store.connection.value === "key" || store.dialog.value?.kind === "keys") && <KeyDialog />}
      {store.dialog.value?.kind === "shortcuts" && <Shortcuts />}
      {store.dialog.value?.kind === "file" && <FileDialog file={store.dialog.value.file} />}
      {store.dialog.value?.kind === "reproduce" && <Reproduce node={store.dialog.value.node} />}
      <p class="spoken" role="status">{store.spoken.value}</p>
    </div>
  );
}
