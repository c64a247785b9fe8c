// One chart over time, by uPlot. Series of one chart are lines, or areas on top of one another.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { store } from "../store/store";

export interface Series {
  name: string;
  color: string; // a custom property of the style sheet
  values: number[];
  isDashed?: boolean;
}

interface Props {
  title: string;
  x: number[];
  series: Series[];
  isStacked?: boolean;
  isTime?: boolean;
  unit: string;
}

const colorOf = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Areas are drawn from the top of the stack down.
function dataOf({ x, series, isStacked }: Props): uPlot.AlignedData {
  if (!isStacked) return [x, ...series.map((one) => one.values)];
  const sums = x.map(() => 0);
  const stacked = series.map((one) => one.values.map((value, i) => (sums[i] += value)));
  return [x, ...stacked.reverse()];
}

const clock = (t: number) => new Date(t * 1000).toLocaleTimeString("en-GB");

function optionsOf(props: Props, width: number): uPlot.Options {
  const isTime = props.isTime ?? true;
  const grid = { stroke: colorOf("--line"), width: 1 };
  const axis = { stroke: colorOf("--quiet"), grid, ticks: { show: false }, font: "11px system-ui", size: 44 };
  const series = props.isStacked ? [...props.series].reverse() : props.series;
  return {
    width, height: 190, padding: [8, isTime ? 30 : 14, 0, 0], cursor: { show: false }, legend: { show: false },
    scales: { x: { time: isTime }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [{ ...axis, size: 26, space: 90, values: isTime ? (_, ticks) => ticks.map(clock) : undefined }, axis],
    series: [{}, ...series.map((one) => ({
      label: one.name, stroke: colorOf(one.color), width: 1.75, dash: one.isDashed ? [6, 5] : undefined, points: { show: false },
      fill: props.isStacked ? colorOf(one.color) : one.isDashed ? undefined : `${colorOf(one.color)}22`,
    }))],
  };
}

export function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = store.theme.value;
  const shape = `${theme} ${props.series.map((one) => one.name).join()}`;
  useEffect(() => {
    const element = box.current!;
    plot.current = new uPlot(optionsOf(props, element.clientWidth || 300), dataOf(props), element);
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: 190 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(dataOf(props)), [props.x, props.series]);
  const words = props.series.map((one) => `${one.name} ${(one.values.at(-1) ?? 0).toFixed(1)}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <h2>{props.title}</h2>
        {props.series.map((one) => (
          <span key={one.name}><i style={{ background: `var(${one.color})` }} />{one.name} <b>{(one.values.at(-1) ?? 0).toLocaleString("en", { maximumFractionDigits: 1 })}</b></span>
        ))}
        <span class="unit">{props.unit}</span>
      </figcaption>
      <div ref={box} role="img" aria-label={`${props.title}, ${props.unit}: ${words}`} />
    </figure>
  );
}
