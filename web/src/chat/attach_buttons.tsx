// The ways to attach files: two buttons, paste, drag and drop.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { attach, imageFault } from "../store/attach";
import { store } from "../store/store";
import { Icon, type IconName } from "../ui/icons";

const focusComposer = () => document.getElementById("composer")?.focus();

interface ChoiceProps {
  icon: IconName;
  label: string;
  accept?: string;
  fault?: string; // why it is not offered
}

// One that is not offered can still be reached, and says why.
function Choice({ icon, label, accept, fault = "" }: ChoiceProps) {
  const input = useRef<HTMLInputElement>(null);
  const take = (event: Event) => {
    const field = event.currentTarget as HTMLInputElement;
    void attach([...(field.files ?? [])]).then(focusComposer);
    field.value = "";
  };
  const onClick = () => {
    if (fault) store.notice.value = fault;
    else input.current?.click();
  };
  return (
    <>
      <button type="button" class="icon-button" aria-label={fault ? `${label}: ${fault}` : label} title={fault || label} aria-disabled={fault ? "true" : undefined} onClick={onClick}>
        <Icon name={icon} />
      </button>
      <input ref={input} type="file" multiple accept={accept} hidden onChange={take} />
    </>
  );
}

export function AttachButtons() {
  return (
    <span class="attach-buttons">
      <Choice icon="image" label="Attach images" accept="image/png,image/jpeg,image/webp,image/gif,image/bmp" fault={imageFault.value} />
      <Choice icon="clip" label="Attach texts or PDFs" />
    </span>
  );
}

// Where the clipboard holds a text with its form, and a picture of it (as spreadsheets copy cells), the text is pasted.
export function onPaste(event: ClipboardEvent) {
  const data = event.clipboardData;
  if (!data || data.files.length === 0 || (data.types.includes("text/html") && data.getData("text/plain") !== "")) return;
  event.preventDefault();
  void attach([...data.files]);
}

const holdsFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;

// Files may be dropped anywhere on the page.
export function DropPlace() {
  const isOver = useSignal(false);
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      event.dataTransfer!.dropEffect = "copy";
      isOver.value = true;
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) isOver.value = false;
    };
    const drop = (event: DragEvent) => {
      isOver.value = false;
      if (!holdsFiles(event)) return;
      event.preventDefault();
      void attach([...event.dataTransfer!.files]).then(focusComposer);
    };
    const all = { dragenter: over, dragover: over, dragleave: leave, drop } as Record<string, (event: DragEvent) => void>;
    for (const [name, act] of Object.entries(all)) addEventListener(name, act as EventListener);
    return () => Object.entries(all).forEach(([name, act]) => removeEventListener(name, act as EventListener));
  }, []);
  return isOver.value ? <div class="drop-place"><p>Drop files to attach them</p></div> : null;
}
