// Strokes of 24 x 24.
const paths = {
  chat: "M4 5h16v11H9l-5 4z",
  compare: "M4 4h6v16H4zM14 4h6v16h-6z",
  machine: "M3 17l5-6 4 4 5-8 4 5",
  plus: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12l5 5L20 7",
  again: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  edit: "M4 20h4L19 9l-4-4L4 16z",
  sliders: "M4 7h10M18 7h2M4 17h2M10 17h10M16 4v6M8 14v6",
  tokens: "M3 8h5v8H3zM10 8h4v8h-4zM16 8h5v8h-5z",
  code: "M8 7l-5 5 5 5M16 7l5 5-5 5",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  download: "M12 4v11M7 11l5 5 5-5M4 20h16",
  upload: "M12 16V5M7 9l5-5 5 5M4 20h16",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.500 17.500L19 19M5 19l1.500-1.500M17.500 6.500L19 5",
  moon: "M20 14A8 8 0 1 1 10 4a7 7 0 0 0 10 10",
  half: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18v18",
  branch: "M7 4v16M7 14c0-4 10-2 10-8M17 6V4",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v5l3 3",
  image: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  clip: "M20 11l-8 8a5 5 0 0 1-7-7l8-8a3.300 3.300 0 0 1 5 5l-8 8a1.700 1.700 0 0 1-2.500-2.500l7-7",
  file: "M6 3h8l5 5v13H6zM14 3v5h5",
  pin: "M9 4h6l-1 6 4 4H6l4-4zM12 14v6",
  keyboard: "M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M18 10h.01M8 14h8",
  key: "M14 10a4 4 0 1 0-3 4l2 2h3v3h4v-3z",
};
export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
