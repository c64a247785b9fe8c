// Asks for the server's key, and where to keep it.
import { useSignal } from "@preact/signals";
import { useKey } from "../store/library";
import { recallKey } from "../store/persist";
import { store } from "../store/store";
import { Dialog } from "../ui/parts";

export function KeyDialog() {
  const known = recallKey();
  const key = useSignal(known.key);
  const isKept = useSignal(known.isKept);
  const fault = store.connection.value === "key" ? store.connectionFault.value : "";
  const close = () => {
    store.dialog.value = null;
    if (store.connection.value === "key") store.connection.value = "away"; // with the server's words, and a way back
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    await useKey(key.value, isKept.value);
    if (store.connection.value === "ready") close();
  };
  return (
    <Dialog title="API key" onClose={close}>
      <form onSubmit={submit} class="key-form">
        <p>This server may ask for a key: a line of the file that it was started with (<code>--api-key-file</code>).</p>
        <label>
          Key
          <input type="password" autocomplete="off" value={key.value} onInput={(e) => (key.value = e.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={isKept.value} onChange={(e) => (isKept.value = e.currentTarget.checked)} />
          Remember it in this browser (otherwise it is gone with this tab)
        </label>
        {fault && <p class="fault" role="alert">{fault}</p>}
        <button type="submit" class="primary">Use this key</button>
      </form>
    </Dialog>
  );
}
