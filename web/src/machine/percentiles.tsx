// How long things take: of the last minute, and since the server began.
import { lately, live, points, sinceStart, type Timed } from "../store/live";
import { duration } from "../ui/parts";

const rows: { name: Timed; title: string; help: string }[] = [
  { name: "ttft_ms", title: "TTFT", help: "from arrival to the first text" },
  { name: "itl_ms", title: "ITL", help: "between two tokens" },
  { name: "tpot_ms", title: "TPOT", help: "a request's mean between its tokens" },
  { name: "queue_ms", title: "Queue", help: "from arrival to the first computed row" },
  { name: "step_ms", title: "Step", help: "one pass of the step loop" },
];
const quantiles = [50, 90, 99] as const;
const cell = (ms: number | null) => (ms === null ? "–" : duration(ms));

export function Percentiles() {
  points.value;
  const now = live.value;
  if (!now) return null;
  return (
    <div class="percentiles" tabIndex={0} role="region" aria-label="Percentiles">
    <table>
      <caption>Percentiles</caption>
      <thead>
        <tr><td /><th colSpan={3} scope="colgroup">last minute</th><th colSpan={3} scope="colgroup">since the start</th></tr>
        <tr><td />{[0, 1].flatMap((group) => quantiles.map((q) => <th key={`${group}-${q}`} scope="col">p{q}</th>))}</tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row" title={row.help}>{row.title}<small>{row.help}</small></th>
            {quantiles.map((q) => <td key={q}>{cell(lately(row.name, q / 100))}</td>)}
            {quantiles.map((q) => <td key={`all-${q}`}>{cell(sinceStart(now[row.name], q))}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
    </div>
  );
}
