import { useSignal } from "@preact/signals";

export function EditForm({ text, onSave, onCancel }: { text: string; onSave: (text: string) => void; onCancel: () => void }) {
  const value = useSignal(text);
  const submit = (event: Event) => {
    event.preventDefault();
    onSave(value.value);
  };
  return (
    <form class="edit-form" onSubmit={submit}>
      <textarea aria-label="Edit the message" rows={Math.min(14, value.value.split("\n", 14).length + 1)} value={value.value}
                onInput={(e) => (value.value = e.currentTarget.value)} />
      <div>
        <button type="submit" class="primary">Save as a branch</button>
        <button type="button" onClick={onCancel}>Cancel</button>
      </div>
    </form>
  );
}
