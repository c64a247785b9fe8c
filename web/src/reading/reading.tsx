// What a model that reads can be asked: a query and texts, and what came of them.
import { readAll, reading, readsOf, type Reads } from "../store/reading";
import { store } from "../store/store";

const words: Record<Reads, { about: string; column: string }> = {
  likeness: { about: "This model makes vectors of texts. Here is how alike they are.", column: "Cosine" },
  ranks: { about: "This model says how well a text answers a query.", column: "Score" },
  labels: { about: "This model labels texts.", column: "Share" },
  "token labels": { about: "This model labels the tokens of texts.", column: "Share" },
};

function Ask({ reads }: { reads: Reads }) {
  const submit = (event: Event) => {
    event.preventDefault();
    void readAll(reads);
  };
  return (
    <form class="reading-ask" onSubmit={submit}>
      {(reads === "likeness" || reads === "ranks") && (
        <label class="field wide">{reads === "ranks" ? "Query" : "Text"}
          <input value={reading.query.value} onInput={(e) => (reading.query.value = e.currentTarget.value)} />
        </label>
      )}
      <label class="field wide">Texts, one a line
        <textarea rows={6} value={reading.texts.value} onInput={(e) => (reading.texts.value = e.currentTarget.value)} />
      </label>
      <button type="submit" class="primary" disabled={reading.isBusy.value || reading.texts.value.trim() === ""}>Read</button>
    </form>
  );
}

function Rows({ reads }: { reads: Reads }) {
  const rows = reading.rows.value;
  const hasWords = reads === "labels" || reads === "token labels";
  return (
    <table class="reading-rows">
      <thead><tr><th scope="col">{reads === "token labels" ? "Token" : "Text"}</th>{hasWords && <th scope="col">Label</th>}<th scope="col" class="n">{words[reads].column}</th></tr></thead>
      <tbody>
        {rows.map((row, i) => (
          <tr key={i}><td>{row.text}</td>{hasWords && <td>{row.words}</td>}<td class="n">{row.score.toFixed(4)}</td></tr>
        ))}
      </tbody>
    </table>
  );
}

export function Reading() {
  const model = store.parameters.value?.model;
  if (!model) return null;
  const reads = readsOf(model);
  return (
    <div class="view reading" tabIndex={0} role="region" aria-label="Read texts">
      <p>{words[reads].about} {!model.writes && "It writes no text."}</p>
      <Ask reads={reads} />
      {reading.fault.value && <p class="notice" role="alert">{reading.fault.value}</p>}
      {reading.rows.value.length > 0 && <Rows reads={reads} />}
    </div>
  );
}
