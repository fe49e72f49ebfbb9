import { useState } from 'preact/hooks';
import { zone } from '../data/settings.ts';
import { type Frame, frameOf, type Point, pathOf, placeX, placeY } from '../pure/chart.ts';
import { clock } from '../pure/format.ts';
import type { Tone } from './basic.tsx';

export interface Series {
  readonly name: string;
  readonly tone: Tone | 'second' | 'third';
  readonly points: readonly Point[];
}

const WIDTH = 1_000;
const HEIGHT = 240;

/** A line without axes, for a number beside it. */
export function Spark({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const points = values.map((y, x) => ({ x, y }));
  const frame = frameOf(points, WIDTH, 100);
  const line = pathOf(points, frame);
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} 104`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="area" d={`${line}L${WIDTH} 104L0 104Z`} />
      <path class="line accent" d={line} />
    </svg>
  );
}

function nearest(points: readonly Point[], x: number): Point | undefined {
  let best: Point | undefined;
  for (const point of points)
    if (point.y !== null && (!best || Math.abs(point.x - x) < Math.abs(best.x - x))) best = point;
  return best;
}

function Lines({
  series,
  frame,
  at,
}: {
  readonly series: readonly Series[];
  readonly frame: Frame;
  readonly at: number | null;
}) {
  const x = at === null ? null : placeX(frame, at);
  return (
    <svg viewBox={`0 -4 ${WIDTH} ${HEIGHT + 8}`} preserveAspectRatio="none" aria-hidden="true">
      {[0, 0.5, 1].map((part) => (
        <path key={part} class="grid" d={`M0 ${part * HEIGHT}H${WIDTH}`} />
      ))}
      {series.map(({ name, tone, points }) => (
        <path key={name} class={`line ${tone}`} d={pathOf(points, frame)} />
      ))}
      {series.map(({ name, tone, points }) =>
        // A point between two gaps has no line.
        points.length > 60
          ? null
          : points.map(({ x: px, y }) =>
              y === null ? null : (
                <path
                  key={`${name}${px}`}
                  class={`dot ${tone}`}
                  d={`M${placeX(frame, px)} ${placeY(frame, y)}h0`}
                />
              ),
            ),
      )}
      {x === null ? null : <path class="cursor" d={`M${x} 0V${HEIGHT}`} />}
    </svg>
  );
}

interface ChartProps {
  readonly label: string;
  readonly series: readonly Series[];
  /** The top of the scale; a round number above the highest where it is left out. */
  readonly high?: number;
  readonly format: (value: number) => string;
}

const Legend = ({
  series,
  at,
  format,
}: {
  readonly series: readonly Series[];
  readonly at: number | null;
  readonly format: ChartProps['format'];
}) => (
  <p class="legend">
    {series.map(({ name, tone, points }) => {
      const shown = at === null ? points.findLast(({ y }) => y !== null) : nearest(points, at);
      return (
        <span key={name}>
          <i class={tone} /> {name} <b>{shown?.y == null ? '–' : format(shown.y)}</b>
        </span>
      );
    })}
    <span class="muted when">{at === null ? '' : clock(at, zone.value)}</span>
  </p>
);

/** The same numbers to read. */
function Numbers({ series, format }: ChartProps) {
  const times = [...new Set(series.flatMap(({ points }) => points.map(({ x }) => x)))].sort((a, b) => b - a);
  const valueAt = (one: Series, x: number) => one.points.find((point) => point.x === x)?.y;
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th>time</th>
            {series.map(({ name }) => (
              <th key={name} class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.slice(0, 500).map((x) => (
            <tr key={x}>
              <td>{clock(x, zone.value)}</td>
              {series.map((one) => {
                const value = valueAt(one, x);
                return (
                  <td key={one.name} class="number">
                    {value === null || value === undefined ? '–' : format(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Numbers over time: lines to look at, a table to read. Times are Unix milliseconds. */
export function Chart(props: ChartProps) {
  const { label, series, high, format } = props;
  const [at, setAt] = useState<number | null>(null);
  const all = series.flatMap(({ points }) => points);
  const frame = frameOf(all, WIDTH, HEIGHT, high);
  const follow = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    const x = frame.from + part * (frame.to - frame.from);
    setAt(nearest(all, x)?.x ?? null);
  };
  return (
    <figure class="chart">
      <figcaption class="unseen">{label}</figcaption>
      <Legend series={series} at={at} format={format} />
      <div class="plot">
        <div class="scale" aria-hidden="true">
          <span>{format(frame.high)}</span>
          <span>{format((frame.high + frame.low) / 2)}</span>
          <span>{format(frame.low)}</span>
        </div>
        <div class="lines" onPointerMove={follow} onPointerLeave={() => setAt(null)}>
          <Lines series={series} frame={frame} at={at} />
        </div>
      </div>
      <p class="ends muted" aria-hidden="true">
        <span>{clock(frame.from, zone.value)}</span>
        <span>{clock(frame.to, zone.value)}</span>
      </p>
      <details>
        <summary>as a table</summary>
        <Numbers {...props} />
      </details>
    </figure>
  );
}
