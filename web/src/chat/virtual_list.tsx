// A long list of which only what can be seen is in the page. Heights are measured once a row was shown; until then they
// are guessed. It stays at its end while it grows, unless somebody scrolled away.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const guess = 140;
const margin = 900; // beyond what is seen

interface Props {
  keys: string[];
  row: (index: number) => ComponentChildren;
  label: string;
  foot?: ComponentChildren;
  target?: string; // the key of the row to be brought into sight
  onTarget?: () => void; // it is
}

export function VirtualList({ keys, row, label, foot, target = "", onTarget }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const isAtEnd = useRef(true);
  const [, redraw] = useState(0);
  const observer = useRef<ResizeObserver | null>(null);

  const toEnd = () => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useEffect(() => {
    let frame = 0;
    const again = () => (frame ||= requestAnimationFrame(() => ((frame = 0), redraw((n) => n + 1))));
    observer.current = new ResizeObserver((entries) => {
      let changed = false;
      for (const entry of entries) {
        const key = (entry.target as HTMLElement).dataset.key;
        if (!key) continue;
        const height = (entry.target as HTMLElement).offsetHeight;
        changed ||= heights.current.get(key) !== height;
        if (height > 0) heights.current.set(key, height);
      }
      toEnd();
      if (changed) again();
    });
    box.current!.querySelectorAll("[data-key]").forEach((element) => observer.current!.observe(element));
    observer.current.observe(box.current!);
    return () => observer.current!.disconnect();
  }, []);
  useLayoutEffect(toEnd);
  // Rows above it that were guessed are measured on the way: a few tries, a frame each.
  useEffect(() => {
    const at = target ? keys.indexOf(target) : -1;
    if (at < 0) return;
    isAtEnd.current = false;
    const go = (tries: number) => {
      const list = box.current;
      if (!list) return;
      const shown = list.querySelector(`[data-key="${CSS.escape(target)}"]`);
      if (shown) shown.scrollIntoView({ block: "start" });
      else list.scrollTop = keys.slice(0, at).reduce((sum, key) => sum + (heights.current.get(key) ?? guess), 0);
      redraw((n) => n + 1);
      if (tries > 0) requestAnimationFrame(() => go(tries - 1));
      else onTarget?.();
    };
    go(4);
  }, [target]);

  const offsets = [0];
  for (const key of keys) offsets.push(offsets[offsets.length - 1] + (heights.current.get(key) ?? guess));
  const total = offsets[keys.length];
  const range = () => {
    const height = box.current?.clientHeight ?? 800;
    const top = isAtEnd.current ? Infinity : (box.current?.scrollTop ?? 0);
    const from = Math.min(top, Math.max(0, total - height));
    let first = 0;
    while (first < keys.length && offsets[first + 1] < from - margin) first++;
    let last = first;
    while (last < keys.length && offsets[last] < from + height + margin) last++;
    return { first, last, isCovered: (a: number, b: number) => offsets[a] <= Math.max(0, from - margin / 3) && offsets[b] >= Math.min(total, from + height + margin / 3) };
  };
  const { first, last } = range();
  // Nothing is drawn anew while what is in the page reaches far enough.
  const onScroll = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current!;
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
    if (!range().isCovered(first, last)) redraw((n) => n + 1);
  };

  return (
    <div class="list" ref={box} onScroll={onScroll} role="log" aria-live="off" aria-label={label} tabIndex={0}>
      <div style={{ height: `${offsets[first]}px` }} />
      {keys.slice(first, last).map((key, i) => (
        <Row key={key} name={key} observer={observer.current}>{row(first + i)}</Row>
      ))}
      <div style={{ height: `${total - offsets[last]}px` }} />
      {foot}
    </div>
  );
}

function Row({ name, observer, children }: { name: string; observer: ResizeObserver | null; children: ComponentChildren }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const self = element.current!;
    observer?.observe(self);
    return () => observer?.unobserve(self);
  }, [observer]);
  return <div ref={element} data-key={name} class="list-row">{children}</div>;
}
