// The files that go with a message: thumbnails of images, names and sizes of texts.
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { sizeOf } from "../store/files";
import { dataUrlOf } from "../store/images";
import { store } from "../store/store";
import type { Attachment, ImageFile } from "../store/types";
import { Icon } from "../ui/icons";
import { attentionOn } from "../store/why";
import { Dialog, IconButton } from "../ui/parts";
import { Heat } from "../why/looked";

const measures = (image: ImageFile) => `${image.width} × ${image.height}, ${sizeOf(image.size)}${image.note ? `, ${image.note}` : ""}`;

function Shown({ one }: { one: Attachment }) {
  const open = () => (store.dialog.value = { kind: "file", file: one });
  if (one.kind === "text") {
    return (
      <button type="button" class="file" title={`Show ${one.name}`} onClick={open}>
        <Icon name="file" /><span><b>{one.name}</b><small>{sizeOf(one.size)}</small></span>
      </button>
    );
  }
  const looked = attentionOn(one.id);
  return (
    <button type="button" class="thumb" aria-label={`Show ${one.name}`} title={`${one.name}: ${measures(one)}`} onClick={open}>
      <img src={one.thumb} alt={one.name} />
      {looked && <Heat looked={looked} />}
    </button>
  );
}

export function Attachments({ files, onRemove }: { files: Attachment[]; onRemove?: (id: string) => void }) {
  if (files.length === 0) return null;
  return (
    <ul class="attachments" aria-label="Attached files">
      {files.map((one) => (
        <li key={one.id} class={`is-${one.kind}`}>
          <span class="place">
            <Shown one={one} />
            {onRemove && <IconButton icon="close" label={`Remove ${one.name}`} onClick={() => onRemove(one.id)} />}
          </span>
          {onRemove && one.kind === "image" && one.note && <small class="scaled">{one.note}</small>}
        </li>
      ))}
    </ul>
  );
}

const mostShown = 100_000; // characters

export function FileDialog({ file }: { file: Attachment }) {
  if (file.kind === "image") return <ImageDialog image={file} />;
  const isCut = file.text.length > mostShown;
  return (
    <Dialog title={file.name} onClose={() => (store.dialog.value = null)}>
      <pre class="whole-text" tabIndex={0}>{file.text.slice(0, mostShown)}{isCut && "…"}</pre>
      <p class="quiet">{sizeOf(file.size)}{isCut ? `, of which the first ${sizeOf(mostShown)} of text are shown; all of it is sent` : ""}</p>
    </Dialog>
  );
}

function ImageDialog({ image }: { image: ImageFile }) {
  const url = useSignal(image.thumb);
  useEffect(() => {
    void dataUrlOf(image.data).then((whole) => (url.value = whole), () => {});
  }, []);
  return (
    <Dialog title={image.name} onClose={() => (store.dialog.value = null)}>
      <img class="whole-image" src={url.value} alt={image.name} />
      <p class="quiet">{measures(image)}</p>
    </Dialog>
  );
}
