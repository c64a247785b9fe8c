// The random number, and where it fell among the candidates that were left, laid end to end.
import type { Explanation } from "../api/types";
import { percent, visible } from "../ui/parts";

export function Draw({ explanation }: { explanation: Explanation }) {
  const last = explanation.stages[explanation.stages.length - 1];
  if (explanation.draw === null || !last) return <p class="draw-words">Nothing was drawn: the best of what is left is taken.</p>;
  const { draw } = explanation;
  let before = 0;
  const parts = last.best.map((candidate) => {
    const part = { ...candidate, x: before };
    before += candidate.probability;
    return part;
  });
  const found = parts.find((part) => part.token === explanation.token);
  const words = found
    ? `it fell between ${found.x.toFixed(4)} and ${(found.x + found.probability).toFixed(4)}, on ${visible(explanation.text)}`
    : `it fell behind the ${parts.length} best, on ${visible(explanation.text)}`;
  return (
    <figure class="draw">
      <svg viewBox="0 0 1000 70" preserveAspectRatio="none" role="img" aria-label={`The number ${draw.toFixed(6)} was drawn; ${words}`}>
        {parts.map((part, i) => (
          <rect key={part.token} class={`share-${i % 2}${part.token === explanation.token ? " is-chosen" : ""}`} x={part.x * 1000} y="20"
                width={Math.max(0.5, part.probability * 1000 - 1)} height="34">
            <title>{`${visible(part.text)} ${percent(part.probability)}`}</title>
          </rect>
        ))}
        {before < 0.9995 && <rect class="share-rest" x={before * 1000} y="20" width={(1 - before) * 1000} height="34" />}
        <rect class="pin" x={draw * 1000 - 2} y="6" width="4" height="60" />
      </svg>
      <figcaption>The number <b data-draw={draw}>{draw.toFixed(6)}</b> was drawn: {words}.</figcaption>
    </figure>
  );
}
