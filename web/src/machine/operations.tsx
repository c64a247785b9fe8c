// Where the time of a step goes, by operation. While this is looked at, every fourth step is measured.
import { live, steps } from "../store/live";
import { Chart, type Series } from "./chart";

const groups: { name: string; of: string[]; color: string }[] = [
  { name: "products of matrices", of: ["linear"], color: "--series-1" },
  { name: "attention", of: ["attend"], color: "--series-2" },
  { name: "experts", of: ["moe"], color: "--series-3" },
  { name: "recurrent states", of: ["conv", "delta"], color: "--series-4" },
];

export function Operations() {
  const names = live.value?.steps?.operations ?? [];
  const rows = steps.value.filter((row) => row[7].some((us) => us > 0));
  if (names.length === 0 || rows.length < 2) return null;
  const sum = (row: number[], wanted: (name: string) => boolean) => row.reduce((ms, us, i) => ms + (wanted(names[i]) ? us / 1000 : 0), 0);
  const series: Series[] = groups
    .map(({ name, of, color }) => ({ name, color, values: rows.map((row) => sum(row[7], (one) => of.includes(one))) }))
    .filter((one) => one.values.some((ms) => ms > 0));
  const named = groups.flatMap((group) => group.of);
  series.push({ name: "norms, rotation and the rest", color: "--series-0", values: rows.map((row) => sum(row[7], (one) => !named.includes(one))) });
  return <Chart title="Step by operation" unit="ms; one step of four, newest on the right" isStacked isTime={false} x={rows.map((_, i) => i - rows.length + 1)} series={series} />;
}
