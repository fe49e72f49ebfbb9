import { BENCHES } from '../benches.ts';
import type { Figure } from '../measure/figure.ts';
import { describeFigure } from '../measure/text.ts';
import { captionOf } from './page.ts';
import type { Run, Runs } from './record.ts';

/** Figures that are shown of a run that has no goals. */
const SHOWN = 2;

/** Those that should be something; where none should, the first ones. */
function headlines(figures: readonly Figure[]): readonly Figure[] {
  const withGoals = figures.filter(({ goal }) => goal !== undefined);
  return withGoals.length > 0 ? withGoals : figures.slice(0, SHOWN);
}

const runsOf = (name: string, runs: Runs): [string, Run][] =>
  Object.entries(runs).filter(([key]) => key === name || key.startsWith(`${name} `));

/** Every bench with what it measures, about how long it takes, and what it found last. */
export function listBenches(runs: Runs): string {
  return Object.entries(BENCHES)
    .map(([name, { measures, minutes }]) => {
      const found = runsOf(name, runs).flatMap(([key, run]) => [
        `  last of ${key}: ${captionOf(run).replaceAll(/[*`]/g, '')}`,
        ...headlines(run.figures).map((figure) => `  ${describeFigure(figure)}`),
      ]);
      const head = `${name}: ${measures} (${minutes} min)`;
      return [head, ...(found.length > 0 ? found : ['  no figures are kept'])].join('\n');
    })
    .join('\n\n');
}

/** The same for programs. */
export const describeBenches = (runs: Runs) =>
  Object.entries(BENCHES).map(([name, { measures, minutes, limitMinutes }]) => ({
    name,
    measures,
    minutes,
    limitMinutes,
    last: Object.fromEntries(runsOf(name, runs)),
  }));
