// What the keyboard does.
import { store } from "../store/store";
import { Dialog } from "../ui/parts";

const shortcuts: [keys: string[], what: string][] = [
  [["?"], "This list"],
  [["Ctrl", "K"], "A new conversation"],
  [["Ctrl", "Shift", "F"], "Search the conversations"],
  [["/"], "Go to the message field"],
  [["Enter"], "Send the message"],
  [["Shift", "Enter"], "Break the line"],
  [["Ctrl", "V"], "Attach an image or a file from the clipboard, in the message field"],
  [["Esc"], "Close what is open; stop the answer"],
  [["←", "→"], "The token before, the next one, where tokens are shown"],
];

export function Shortcuts() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (store.dialog.value = null)}>
      <table class="shortcuts">
        <thead class="spoken"><tr><th scope="col">Keys</th><th scope="col">What they do</th></tr></thead>
        <tbody>
          {shortcuts.map(([keys, what]) => (
            <tr key={what}><td>{keys.map((key) => <kbd key={key}>{key}</kbd>)}</td><td>{what}</td></tr>
          ))}
        </tbody>
      </table>
      <p class="quiet">On a Mac, Cmd does what Ctrl does.</p>
    </Dialog>
  );
}
