// Small parts that all views use.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icons";

interface IconButtonProps {
  icon: IconName;
  label: string;
  onClick: () => void;
  text?: string;
  pressed?: boolean;
  disabled?: boolean;
  class?: string;
}

export function IconButton({ icon, label, onClick, text, pressed, disabled, class: more = "" }: IconButtonProps) {
  return (
    <button type="button" class={`icon-button ${more}`} aria-label={text ? undefined : label} title={label}
            aria-pressed={pressed} disabled={disabled} onClick={onClick}>
      <Icon name={icon} />
      {text && <span>{text}</span>}
    </button>
  );
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea"); // where the address is not https, there is no clipboard API
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function CopyButton({ text, label = "Copy", shows = false }: { text: () => string; label?: string; shows?: boolean }) {
  const isDone = useSignal(false);
  const copy = async () => {
    isDone.value = await copyText(text());
    setTimeout(() => (isDone.value = false), 1500);
  };
  return <IconButton icon={isDone.value ? "check" : "copy"} label={isDone.value ? "Copied" : label} onClick={copy}
                     text={shows ? (isDone.value ? "Copied" : label) : undefined} />;
}

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-label={title} onClose={onClose} onClick={(e) => e.target === element.current && onClose()}>
      <header>
        <h2>{title}</h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}

// What a token's text looks like where spaces and line ends count.
export const visible = (text: string) => text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/ /g, "·") || "∅";
export const percent = (p: number) => (p === 1 ? "100 %" : p >= 0.9995 ? "> 99.9 %" : p >= 0.1 ? `${(p * 100).toFixed(1)} %` : p >= 0.0001 ? `${(p * 100).toFixed(2)} %` : p > 0 ? "< 0.01 %" : "0");
export const duration = (ms: number) => (ms >= 10_000 ? `${(ms / 1000).toFixed(1)} s` : ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : ms >= 10 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(2)} ms`);
export const bytes = (n: number) => (n >= 2 ** 30 ? `${(n / 2 ** 30).toFixed(2)} GiB` : n >= 2 ** 20 ? `${(n / 2 ** 20).toFixed(1)} MiB` : `${(n / 1024).toFixed(0)} KiB`);
// From 0, sure, to 5, a wild guess.
export const confidence = (logprob: number) => [-0.105, -0.51, -1.2, -2.3, -4.6].findIndex((least) => logprob >= least) + 1 || 6;
