import type { Figure } from '../measure/figure.ts';
import { formatNumber, formatRange, formatValue, goalText, reaches } from '../measure/text.ts';
import { BUSY_MAX } from '../quiet.ts';
import type { Run, Runs } from './record.ts';

/** `<!-- figures: NAME ARGUMENTS -->`, what is generated, `<!-- /figures -->`. */
const BLOCK = /<!-- figures: ([^\n]+?) -->\n.*?<!-- \/figures -->/gs;

/** Between these stand all goals. */
const GOALS = /<!-- goals -->\n.*?<!-- \/goals -->/s;

const cell = (text: string) => text.replaceAll('|', '\\|');
const inBrackets = (text: string) => (text === '' ? '' : ` (${text})`);

function tableOf(title: string, figures: readonly Figure[]): string {
  const peers = [...new Set(figures.flatMap(({ ratio }) => ratio?.to ?? []))];
  const hasQuantiles = figures.some(({ p95 }) => p95 !== undefined);
  const hasGoals = figures.some(({ goal }) => goal !== undefined);
  const ratioText = ({ ratio }: Figure) =>
    ratio
      ? `${formatNumber(ratio.median)}${inBrackets(formatRange(ratio))}${peers.length > 1 ? ` of ${ratio.to}` : ''}`
      : '';
  const heads = [
    title,
    'figure',
    ...(hasQuantiles ? ['p95', 'p99'] : []),
    ...(peers.length > 0 ? [peers.length > 1 ? 'ratio' : `ratio to ${peers[0]}`] : []),
    ...(hasGoals ? ['goal'] : []),
  ];
  const quantileText = (value: number | undefined, unit: string) =>
    value === undefined ? '' : formatValue(value, unit);
  const goalCell = (figure: Figure) =>
    figure.goal ? `${goalText(figure.goal, figure.unit)}: ${reaches(figure) ? 'reached' : 'missed'}` : '';
  const rows = figures.map((figure) => [
    figure.what,
    `${formatValue(figure.median, figure.unit)}${inBrackets(formatRange(figure))}`,
    ...(hasQuantiles ? [quantileText(figure.p95, figure.unit), quantileText(figure.p99, figure.unit)] : []),
    ...(peers.length > 0 ? [ratioText(figure)] : []),
    ...(hasGoals ? [goalCell(figure)] : []),
  ]);
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')).replaceAll(' ', ''), ...rows.map(line)].join('\n');
}

/** The number of a figure that its goal is of, with its spread where it has one. */
function reachedText({ goal, ratio, unit, ...figure }: Figure): string {
  if (goal?.of === 'ratio' && ratio) return `${formatNumber(ratio.median)}${inBrackets(formatRange(ratio))}`;
  if (goal?.of === 'p95' || goal?.of === 'p99') return formatValue(figure[goal.of] ?? Number.NaN, unit);
  return `${formatValue(figure.median, unit)}${inBrackets(formatRange(figure))}`;
}

/** Every figure that should be something, with the run that it is of. */
function goalsOf(runs: Runs): string {
  const rows = Object.entries(runs).flatMap(([key, { date, commit, busy, figures }]) =>
    figures.flatMap((figure) => {
      const { goal, what, group, unit } = figure;
      if (!goal) return [];
      const verdict = reaches(figure) ? 'reached' : 'missed';
      const when = `${date.slice(0, 10)}, \`${commit}\`${busy <= BUSY_MAX ? '' : ', busy'}`;
      return [[key, `${group}: ${what}`, goalText(goal, unit), reachedText(figure), verdict, when]];
    }),
  );
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  const head = ['bench', 'figure', 'goal', 'measured', '', 'of'];
  return [line(head), '|---|---|---|---|---|---|', ...rows.map(line)].join('\n');
}

/** When, of what, where, and whether others disturbed it. */
export function captionOf({ date, commit, isClean, machine, load, busy, seconds }: Run): string {
  const state =
    busy <= BUSY_MAX
      ? 'otherwise idle'
      : `**busy**: others used ${Math.round(busy * 100)} % of the processors (load ${load})`;
  return `${date.slice(0, 10)}, commit \`${commit}\`${isClean ? '' : ' with changes'}, in ${Math.ceil(seconds / 60)} min; ${machine}; ${state}.`;
}

function blockOf(run: Run): string {
  const groups = [...Map.groupBy(run.figures, ({ group }) => group)];
  const tables = groups.map(([title, figures]) => tableOf(title, figures));
  return `Measured ${captionOf(run)} Medians, with the lowest and the highest round.\n\n${tables.join('\n\n')}`;
}

/**
 * The page of figures with its tables as runs have them. What is not between marks stays, and what was written between marks
 * before there was a run.
 */
export function fillTables(page: string, runs: Runs): string {
  const withGoals = page.replace(GOALS, () => `<!-- goals -->\n\n${goalsOf(runs)}\n\n<!-- /goals -->`);
  return withGoals.replace(BLOCK, (block, key: string) => {
    const run = runs[key];
    if (!run) return block;
    return `<!-- figures: ${key} -->\n\n${blockOf(run)}\n\n<!-- /figures -->`;
  });
}
