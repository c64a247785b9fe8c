// Where a token looked in an image: a translucent grid over it.
import type { ImageAttention } from "../api/types";
import { active } from "../store/store";
import { attentionAt } from "../store/why";
import type { ImageFile, MessageNode } from "../store/types";
import { percent } from "../ui/parts";

interface Patch {
  tile: number; // from 1, as row and col
  row: number;
  col: number;
  x: number;
  y: number;
  width: number;
  height: number;
  share: number;
}

export const patchesOf = (looked: ImageAttention): Patch[] =>
  looked.tiles.flatMap(({ rows, cols, box: [left, top, width, height], shares }, tile) =>
    shares.map((share, i) => ({
      tile: tile + 1,
      row: Math.floor(i / cols) + 1,
      col: (i % cols) + 1,
      x: left + ((i % cols) * width) / cols,
      y: top + (Math.floor(i / cols) * height) / rows,
      width: width / cols,
      height: height / rows,
      share,
    })),
  );

const placeOf = (patch: Patch, looked: ImageAttention) => `${looked.tiles.length > 1 ? `tile ${patch.tile}, ` : ""}row ${patch.row}, column ${patch.col}`;

const strongest = (patches: Patch[]) => [...patches].sort((a, b) => b.share - a.share);

// The strongest patch is the least transparent, the weakest is not drawn.
export function Heat({ looked }: { looked: ImageAttention }) {
  const patches = patchesOf(looked);
  const shares = patches.map((patch) => patch.share);
  const least = Math.min(...shares);
  const range = Math.max(...shares) - least || 1;
  return (
    <svg class="heat" viewBox={`0 0 ${looked.width} ${looked.height}`} preserveAspectRatio="none" aria-hidden="true">
      {patches.map(({ x, y, width, height, share }) => {
        const part = (share - least) / range;
        return part > 0.02 && <rect x={x} y={y} width={width} height={height} fill-opacity={(0.75 * part).toFixed(3)} />;
      })}
    </svg>
  );
}

export function Looked({ node, at }: { node: MessageNode; at: number }) {
  const files = new Map(Object.values(active.value?.nodes ?? {}).flatMap((one) => one.attachments ?? []).map((one) => [one.id, one]));
  const shown = attentionAt(node, at).flatMap(({ id, looked }) => (files.get(id)?.kind === "image" ? [{ image: files.get(id) as ImageFile, looked }] : []));
  if (shown.length === 0) return null;
  return (
    <section class="looked" aria-label="Where it looked">
      <h3>Where it looked</h3>
      {shown.map(({ image, looked }) => {
        const best = strongest(patchesOf(looked)).slice(0, 3);
        return (
          <figure key={image.id} data-share={looked.share}>
            <span class="under-heat"><img src={image.thumb} alt={image.name} /><Heat looked={looked} /></span>
            <figcaption>
              {percent(looked.share)} of its attention, the mean of all heads and layers; most at{" "}
              {best.map((patch, i) => <span key={i}>{i > 0 && "; "}{placeOf(patch, looked)} ({percent(patch.share)})</span>)}
            </figcaption>
          </figure>
        );
      })}
    </section>
  );
}
