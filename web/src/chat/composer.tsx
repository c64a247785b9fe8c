// Where a message is written. What is typed stays until it was sent.
import { useEffect, useRef } from "preact/hooks";
import { isBusy, send, stop } from "../store/actions";
import { attached, bodyWarning, detach, isReading } from "../store/attach";
import { counted, fitWords } from "../store/count";
import { settings, store } from "../store/store";
import { Icon } from "../ui/icons";
import { bytes } from "../ui/parts";
import { AttachButtons, DropPlace, onPaste } from "./attach_buttons";
import { Attachments } from "./attachments";

const mostShown = 20_000; // a text area with more is slow

function fit(area: HTMLTextAreaElement) {
  if (area.value.length > mostShown) return void (area.style.height = "220px");
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
}

// What is known of the message before it is sent.
function Foot({ text }: { text: string }) {
  if (isReading.value) return <span role="status">Reading {isReading.value}…</span>;
  if (bodyWarning.value) return <span role="status" class="is-over">{bodyWarning.value}</span>;
  const count = counted.value;
  if (count) return <span role="status" class={count.tokens >= count.context ? "is-over" : ""}>{fitWords(count.tokens, count.context)}</span>;
  return <span class="hint">{text.length > mostShown ? bytes(new Blob([text]).size) : "Enter sends, Shift Enter breaks the line"}</span>;
}

export function Composer() {
  const area = useRef<HTMLTextAreaElement>(null);
  store.revision.value;
  const busy = isBusy();
  const text = store.draft.value;
  useEffect(() => fit(area.current!), [text]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (isBusy() || !send(store.draft.value)) return; // as typed, be it shown yet or not
    store.draft.value = "";
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  const { preset, numbers, seed } = settings.value;
  const temperature = numbers.temperature ?? 1;
  return (
    <form class="composer" onSubmit={submit}>
      <DropPlace />
      {store.notice.value && <p class="notice" role="alert">{store.notice.value}</p>}
      <Attachments files={attached.value} onRemove={detach} />
      <div class="composer-box">
        <AttachButtons />
        <label class="spoken" for="composer">Message</label>
        <textarea id="composer" ref={area} rows={1} placeholder="Write a message" value={text} onKeyDown={onKeyDown} onPaste={onPaste}
                  onInput={(e) => (store.draft.value = e.currentTarget.value)} />
        {busy ? (
          <button type="button" class="send is-stop" onClick={stop} aria-label="Stop" title="Stop (Esc)"><Icon name="stop" /></button>
        ) : (
          <button type="submit" class="send" aria-label="Send" title="Send (Enter)" disabled={text.trim() === "" && attached.value.length === 0}><Icon name="send" /></button>
        )}
      </div>
      <p class="composer-foot">
        <button type="button" class="plain" onClick={() => (store.panel.value = { kind: "settings" })}>
          {preset || "own numbers"} · temperature {temperature}{seed === null ? "" : ` · seed ${seed}`}
        </button>
        <Foot text={text} />
      </p>
    </form>
  );
}
