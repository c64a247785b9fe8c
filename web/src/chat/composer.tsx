// Where a message is written. What is typed stays until it was sent.
import { useEffect, useRef } from "preact/hooks";
import { isBusy, send, stop } from "../store/actions";
import { settings, store } from "../store/store";
import { Icon } from "../ui/icons";
import { bytes } from "../ui/parts";

const mostShown = 20_000; // a text area with more is slow

function fit(area: HTMLTextAreaElement) {
  if (area.value.length > mostShown) return void (area.style.height = "220px");
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
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
      {store.notice.value && <p class="notice" role="alert">{store.notice.value}</p>}
      <div class="composer-box">
        <label class="spoken" for="composer">Message</label>
        <textarea id="composer" ref={area} rows={1} placeholder="Write a message" value={text} onKeyDown={onKeyDown}
                  onInput={(e) => (store.draft.value = e.currentTarget.value)} />
        {busy ? (
          <button type="button" class="send is-stop" onClick={stop} aria-label="Stop" title="Stop (Esc)"><Icon name="stop" /></button>
        ) : (
          <button type="submit" class="send" aria-label="Send" title="Send (Enter)" disabled={text.trim() === ""}><Icon name="send" /></button>
        )}
      </div>
      <p class="composer-foot">
        <button type="button" class="plain" onClick={() => (store.panel.value = { kind: "settings" })}>
          {preset || "own numbers"} · temperature {temperature}{seed === null ? "" : ` · seed ${seed}`}
        </button>
        <span>{text.length > mostShown ? bytes(new Blob([text]).size) : "Enter sends, Shift Enter breaks the line"}</span>
      </p>
    </form>
  );
}
