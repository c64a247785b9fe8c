// What a beam search weighed in one step: from each text that it kept, the ways to go on.
import type { BeamOption, Explanation } from "../api/types";
import { visible } from "../ui/parts";

const fates = { kept: "goes on", complete: "is complete", dropped: "dropped" };

export function Beams({ explanation }: { explanation: Explanation }) {
  const options = explanation.beam_options!.map((option, place) => ({ ...option, place }));
  const parents = [...new Set(options.map((option) => option.parent))].sort((a, b) => a - b);
  const best = Math.max(...options.map((option) => option.score));
  const leaf = (option: BeamOption & { place: number }) => (
    <li key={option.place} class={`is-${option.fate}${option.place === explanation.beam_option ? " is-chosen" : ""}`}>
      {option.fate === "dropped" ? <del><code>{visible(option.text)}</code></del> : <code>{visible(option.text)}</code>}
      <span>{option.score.toFixed(4)}</span>
      <small>{option.score === best ? "the best" : ""} {fates[option.fate]}</small>
    </li>
  );
  return (
    <section class="beams">
      <p class="draw-words">Nothing was drawn: the best ways on are kept, over all texts. Scores are sums of logprobs.</p>
      <ul>
        {parents.map((parent) => (
          <li key={parent}>
            <b>text {parent + 1}</b>
            <ul>{options.filter((option) => option.parent === parent).map(leaf)}</ul>
          </li>
        ))}
      </ul>
    </section>
  );
}
