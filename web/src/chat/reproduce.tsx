// The lines that give the same answer again.
import { commandOf, curlOf } from "../store/reproduce";
import { hasImages } from "../store/images";
import { active, store } from "../store/store";
import { CopyButton, Dialog } from "../ui/parts";

function Line({ title, text, note }: { title: string; text: string; note?: string }) {
  return (
    <section class="line">
      <header><h3>{title}</h3>{text && <CopyButton text={() => text} shows />}</header>
      {text && <pre tabIndex={0}><code>{text}</code></pre>}
      {note && <p class="quiet">{note}</p>}
    </section>
  );
}

export function Reproduce({ node: id }: { node: string }) {
  const node = active.value?.nodes[id];
  const close = () => (store.dialog.value = null);
  if (!node?.body) {
    return <Dialog title="Reproduce" onClose={close}><p>This text was written or edited by hand: no request gave it.</p></Dialog>;
  }
  const hasFiles = hasImages(node.body);
  const command = commandOf(node, store.parameters.value);
  return (
    <Dialog title="Reproduce this answer" onClose={close}>
      <Line title="candor run" text={command.text} note={command.note} />
      <Line title="curl" text={curlOf(node)} note={`${store.connection.value === "ready" ? "Where the server asks for a key, put it into KEY." : ""}${hasFiles ? " In place of attachment:… put data:image/png;base64, and the image in base64." : ""}`} />
      <p class="quiet">The same model file, prompt, numbers and seed give the same tokens, bit for bit, on any machine and beside any load.</p>
    </Dialog>
  );
}
