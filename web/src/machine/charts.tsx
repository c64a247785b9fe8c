// What the machine does over time.
import { live, points, steps } from "../store/live";
import { Chart, type Series } from "./chart";
import { Operations } from "./operations";

export function Charts() {
  const p = points.value;
  const s = steps.value;
  const x = p.map((point) => point.t);
  const limit = live.value?.limit?.steps_per_s;
  const speed: Series[] = [
    { name: "decode", color: "--series-1", values: p.map((point) => point.decode) },
    { name: "prefill", color: "--series-2", values: p.map((point) => point.prefill) },
  ];
  if (limit) speed.push({ name: "limit of one stream", color: "--series-4", values: p.map(() => limit), isDashed: true });
  const of = (i: 0 | 1 | 2 | 4 | 5 | 6) => s.map((row) => row[i]);
  return (
    <div class="charts">
      <Chart title="Speed" unit="tokens a second" x={x} series={speed} />
      <Chart title="Rows of each step" unit="rows; newest step on the right" isStacked isTime={false} x={s.map((_, i) => i - s.length + 1)}
             series={[{ name: "prefill", color: "--series-2", values: of(0) }, { name: "decode", color: "--series-1", values: of(1) }, { name: "drafts", color: "--series-3", values: of(2) }]} />
      <Chart title="Time of each step" unit="ms; newest step on the right" isStacked isTime={false} x={s.map((_, i) => i - s.length + 1)}
             series={[{ name: "compute", color: "--series-1", values: of(5) }, { name: "choose", color: "--series-3", values: of(6) }, { name: "plan", color: "--series-2", values: of(4) }]} />
      <Operations />
      <Chart title="K/V blocks" unit="blocks" isStacked x={x}
             series={[{ name: "used", color: "--series-1", values: p.map((point) => point.used) }, { name: "cached", color: "--series-2", values: p.map((point) => point.cached) }, { name: "free", color: "--series-0", values: p.map((point) => point.free) }]} />
      <Chart title="Requests" unit="requests" x={x}
             series={[{ name: "running", color: "--series-1", values: p.map((point) => point.running) }, { name: "waiting", color: "--series-4", values: p.map((point) => point.waiting) }]} />
      {live.value?.energy_uj && <Chart title="Power" unit="watts, of the processors" x={x} series={[{ name: "power", color: "--series-3", values: p.map((point) => point.watts ?? 0) }]} />}
    </div>
  );
}
