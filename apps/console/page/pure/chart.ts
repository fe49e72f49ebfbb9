/** Where the points of a chart are. */

export interface Point {
  readonly x: number;
  /** Null: nothing was measured; the line has a gap. */
  readonly y: number | null;
}

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly from: number;
  readonly to: number;
  readonly low: number;
  readonly high: number;
}

const round = (value: number) => Math.round(value * 10) / 10;

export const placeX = ({ width, from, to }: Frame, x: number) =>
  to === from ? width / 2 : round(((x - from) / (to - from)) * width);
export const placeY = ({ height, low, high }: Frame, y: number) =>
  round(height - ((Math.min(Math.max(y, low), high) - low) / (high - low || 1)) * height);

/** The path of an SVG: a line for each run of points without a gap. */
export function pathOf(points: readonly Point[], frame: Frame): string {
  let path = '';
  let isDrawing = false;
  for (const { x, y } of points) {
    if (y === null) {
      isDrawing = false;
      continue;
    }
    path += `${isDrawing ? 'L' : 'M'}${placeX(frame, x)} ${placeY(frame, y)}`;
    isDrawing = true;
  }
  return path;
}

/** A round number at or above: 1, 2 or 5 times a power of ten. */
export function niceCeiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((one) => one * power >= value * (1 - 1e-9)) ?? 10;
  return step * power;
}

/** The frame of some points, from zero up, or from what is below it. */
export function frameOf(points: readonly Point[], width: number, height: number, high?: number): Frame {
  const xs = points.map(({ x }) => x);
  const ys = points.flatMap(({ y }) => y ?? []);
  const lowest = Math.min(0, ...ys);
  return {
    width,
    height,
    from: Math.min(...xs),
    to: Math.max(...xs),
    low: lowest < 0 ? -niceCeiling(-lowest) : 0,
    // Where all is below zero, zero is the ceiling.
    high: high ?? (lowest < 0 && Math.max(...ys) <= 0 ? 0 : niceCeiling(Math.max(0, ...ys))),
  };
}
