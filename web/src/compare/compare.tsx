// Side by side: one prompt, one seed, two to four settings.
import { anotherSeed, compare, partsAt, runAll, stopAll } from "../store/compare";
import { IconButton } from "../ui/parts";
import { ColumnCard } from "./column";

function Ask() {
  const submit = (event: Event) => {
    event.preventDefault();
    void runAll();
  };
  return (
    <form class="compare-ask" onSubmit={submit}>
      <label class="field wide">Prompt
        <textarea rows={2} value={compare.prompt.value} placeholder="One prompt for all" onInput={(e) => (compare.prompt.value = e.currentTarget.value)}
                  onKeyDown={(e) => e.key === "Enter" && !e.shiftKey && submit(e)} />
      </label>
      <label class="field">Seed
        <span class="with-button">
          <input type="number" min={0} value={compare.seed.value} onInput={(e) => (compare.seed.value = Math.max(0, Math.round(Number(e.currentTarget.value) || 0)))} />
          <IconButton icon="again" label="Another seed" onClick={anotherSeed} />
        </span>
      </label>
      <label class="field">Most tokens
        <input type="number" min={1} value={compare.most.value} onInput={(e) => (compare.most.value = Math.max(1, Math.round(Number(e.currentTarget.value) || 1)))} />
      </label>
      {compare.isBusy.value
        ? <button type="button" class="primary" onClick={stopAll}>Stop</button>
        : <button type="submit" class="primary" disabled={compare.prompt.value.trim() === ""}>Compare</button>}
    </form>
  );
}

export function Compare() {
  compare.tick.value;
  const columns = compare.columns.value;
  const at = partsAt(columns);
  const isShown = columns.some((column) => column.answer);
  const add = () => (compare.columns.value = [...columns, { name: "own", numbers: { temperature: 1 }, answer: null }]);
  return (
    <div class="view compare" tabIndex={0} role="region" aria-label="Side by side">
      <Ask />
      {isShown && at !== Infinity && <p class="parting" data-parts-at={at}>They part at token {at + 1}; what is grey is the same in all.</p>}
      {isShown && at === Infinity && !compare.isBusy.value && <p class="parting">They never part: all tokens are the same.</p>}
      <div class="columns" style={{ "--n": columns.length } as never}>
        {columns.map((column, i) => <ColumnCard key={i} column={column} at={i} parts={at} />)}
      </div>
      {columns.length < 4 && <button type="button" class="add-column" onClick={add}>Add a column</button>}
    </div>
  );
}
