import type { Figure, Goal, Spread } from './figure.ts';

const WHAT_CHARS = 60;

/** A number with as many digits as say something: 12,345; 123; 12.3; 1.23; 0.12. Whole ones stay whole. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString('en');
  if (size >= 10) return value.toFixed(1);
  if (size >= 0.1) return value.toFixed(2);
  return String(Number(value.toPrecision(2)));
}

const withUnit = (text: string, unit: string) => (/^(|\/.*)$/.test(unit) ? text + unit : `${text} ${unit}`);
export const formatValue = (value: number, unit: string): string => withUnit(formatNumber(value), unit);

const isOne = ({ lowest, highest }: Spread) => lowest === highest;
/** `0.59 to 0.66`; empty where nothing was repeated. */
export const formatRange = (spread: Spread): string =>
  isOne(spread) ? '' : `${formatNumber(spread.lowest)} to ${formatNumber(spread.highest)}`;

const inBrackets = (text: string) => (text === '' ? '' : ` (${text})`);

export const goalText = ({ of, least, most }: Goal, unit: string): string => {
  const number = (value: number) => (of === 'ratio' ? formatNumber(value) : formatValue(value, unit));
  const bound = least === undefined ? `at most ${number(most ?? 0)}` : `at least ${number(least)}`;
  return of === 'median' ? bound : `${of} ${bound}`;
};

/** Whether a figure is what it should be; undefined where it has no goal. */
export function reaches({ goal, ratio, ...figure }: Figure): boolean | undefined {
  if (!goal) return undefined;
  const value = goal.of === 'ratio' ? ratio?.median : figure[goal.of];
  if (value === undefined) return undefined;
  return value >= (goal.least ?? -Infinity) && value <= (goal.most ?? Infinity);
}

/** A figure in one line, for people. */
export function describeFigure(figure: Figure): string {
  const { what, unit, median, p95, p99, ratio, goal } = figure;
  const quantiles = Object.entries({ p95, p99 }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} ${formatValue(value, unit)}`],
  );
  const parts = [
    `${formatValue(median, unit)}${inBrackets(formatRange(figure))}`,
    ...quantiles,
    ...(ratio ? [`${formatNumber(ratio.median)}${inBrackets(formatRange(ratio))} of "${ratio.to}"`] : []),
    ...(goal ? [`goal: ${goalText(goal, unit)}: ${reaches(figure) ? 'reached' : 'missed'}`] : []),
  ];
  return `  ${what.padEnd(WHAT_CHARS)} ${parts.join('; ')}`;
}
