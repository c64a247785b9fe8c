// What drafts gain, by who makes them.
import { live } from "../store/live";
import type { Drafts } from "../api/types";

const titles: Record<string, [title: string, help: string]> = {
  ngram: ["n-grams", "what followed the same tokens before"],
  model: ["draft model", "a smaller model"],
  mtp: ["head", "for multi-token prediction"],
  eagle: ["EAGLE-3", "a head of the model"],
  prediction: ["predictions", "what callers expect"],
};
const count = (n: number) => n.toLocaleString("en");
const ratio = (above: number, below: number, digits: number) => (below > 0 ? (above / below).toFixed(digits) : "–");

function Row({ of }: { of: Drafts }) {
  const [title, help] = titles[of.drafter] ?? [of.drafter, ""];
  return (
    <tr>
      <th scope="row">{title}<small>{help}</small></th>
      <td>{count(of.steps)}</td>
      <td>{count(of.drafted)}</td>
      <td>{of.drafted > 0 ? `${((of.accepted / of.drafted) * 100).toFixed(0)} %` : "–"}</td>
      <td>{ratio(of.accepted, of.steps, 1)}</td>
      <td>{of.plain_ms > 0 ? `${ratio(of.added_ms, of.drafted, 2)} ms` : "–"}</td>
      <td>{of.plain_ms > 0 ? `${ratio(of.plain_ms + of.saved_ms, of.plain_ms + of.added_ms, 2)} x` : "–"}</td>
    </tr>
  );
}

export function Drafters() {
  const rows = live.value?.drafts ?? [];
  if (rows.length === 0) return null;
  return (
    <div class="percentiles" tabIndex={0} role="region" aria-label="Drafts">
      <table>
        <caption>Drafts</caption>
        <thead>
          <tr>
            <td />
            <th scope="col" title="in which it drafted, counted for each answer">steps</th>
            <th scope="col">drafts</th>
            <th scope="col">accepted</th>
            <th scope="col" title="accepted drafts of a step">length</th>
            <th scope="col" title="of a draft: to make it and to verify it, by the costs measured">cost</th>
            <th scope="col" title="tokens for the time, as against these steps without drafts">gain</th>
          </tr>
        </thead>
        <tbody>{rows.map((one) => <Row key={one.drafter} of={one} />)}</tbody>
      </table>
    </div>
  );
}
