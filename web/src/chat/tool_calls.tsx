// What the model wants to call. Nothing is called here: whoever reads it says what the tool gave back.
import { useSignal } from "@preact/signals";
import type { ToolCall } from "../api/types";
import { giveResult } from "../store/actions";
import { active, store, tickOf } from "../store/store";
import type { MessageNode } from "../store/types";

function Call({ call, node, isOpen }: { call: ToolCall; node: MessageNode; isOpen: boolean }) {
  const result = useSignal("");
  return (
    <div class="call">
      <p><strong>{call.name}</strong> <code>{call.arguments}</code></p>
      {isOpen && (
        <form onSubmit={(e) => (e.preventDefault(), giveResult(node, call.id, result.value))}>
          <input aria-label={`Result of ${call.name}`} placeholder="What the tool gave back" value={result.value}
                 onInput={(e) => (result.value = e.currentTarget.value)} />
          <button type="submit" disabled={result.value === ""}>Give</button>
        </form>
      )}
    </div>
  );
}

export function Calls({ node }: { node: MessageNode }) {
  tickOf(node.id).value;
  store.revision.value;
  const nodes = Object.values(active.value?.nodes ?? {});
  const isGiven = (id: string) => nodes.some((one) => one.role === "tool" && one.callId === id);
  return <div class="calls">{node.calls!.map((call) => <Call key={call.id} call={call} node={node} isOpen={node.state === "done" && !isGiven(call.id)} />)}</div>;
}
