// An answer as its tokens, coloured by confidence. One tab stop: arrows move, Enter opens.
import { useSignal } from "@preact/signals";
import { store, tickOf } from "../store/store";
import { openWhy } from "../store/why";
import type { MessageNode, Token } from "../store/types";
import { confidence, percent, visible } from "../ui/parts";

const mostShown = 3000; // tokens in the page at once

function label(token: Token, fixed: boolean): string {
  return `${visible(token.s)}, ${percent(Math.exp(token.p))}${token.d ? ", a draft that was right" : ""}${fixed ? ", chosen by you" : ""}`;
}

export function Tokens({ node }: { node: MessageNode }) {
  tickOf(node.id).value;
  const focused = useSignal(0);
  const tokens = node.tokens ?? [];
  const first = Math.max(0, tokens.length - mostShown);
  const panel = store.panel.value;
  const opened = panel.kind === "why" && panel.node === node.id ? panel.at : -1;
  const placeOf = (event: Event) => Number((event.target as HTMLElement).closest<HTMLElement>("[data-at]")?.dataset.at ?? -1);
  const onClick = (event: Event) => {
    const at = placeOf(event);
    if (at < 0) return;
    focused.value = at;
    openWhy(node, at);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return onClick(event);
    }
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const box = event.currentTarget as HTMLElement;
    focused.value = Math.min(tokens.length - 1, Math.max(first, focused.value + step));
    box.querySelector<HTMLElement>(`[data-at="${focused.value}"]`)?.focus();
    if (opened >= 0) openWhy(node, focused.value);
  };
  return (
    <div class="tokens" role="group" aria-label="Tokens" onClick={onClick} onKeyDown={onKeyDown}>
      {first > 0 && <p class="quiet">The first {first} tokens are left out here.</p>}
      {tokens.slice(first).map((token, i) => {
        const at = first + i;
        const isFixed = node.origin?.at === at;
        const names = ["token", `confidence-${confidence(token.p)}`, token.k === "r" ? "is-reasoning" : "", token.k === "x" ? "is-hidden" : "",
          token.d ? "is-draft" : "", isFixed ? "is-fixed" : "", at === opened ? "is-open" : ""];
        return (
          <span role="button" key={at} data-at={at} class={names.filter(Boolean).join(" ")} title={label(token, isFixed)}
                  tabIndex={at === Math.max(first, focused.value) ? 0 : -1}>
            {token.k === "x" || token.t === "" ? visible(token.s) : token.t.replaceAll("\n", "↵\n")}
          </span>
        );
      })}
      <p class="legend" aria-hidden="true">
        {["≥ 90 %", "≥ 60 %", "≥ 30 %", "≥ 10 %", "≥ 1 %", "less"].map((text, i) => <span key={text} class={`confidence-${i + 1}`}>{text}</span>)}
      </p>
    </div>
  );
}
