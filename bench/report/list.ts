import { BENCHES, listRuns } from '../benches.ts';
import type { Figure } from '../measure/figure.ts';
import { describeFigure } from '../measure/text.ts';
import { captionOf } from './page.ts';
import { keyOf, type Run, type Runs } from './record.ts';

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
  return [...Map.groupBy(listRuns(), ({ name }) => name)]
    .map(([name, own]) => {
      const heads = own.map(
        ({ args, measures, minutes }) => `${keyOf(name, args)}: ${measures} (${minutes} min)`,
      );
      const found = runsOf(name, runs).flatMap(([key, run]) => [
        `  last of ${key}: ${captionOf(run).replaceAll(/[*`]/g, '')}`,
        ...headlines(run.figures).map((figure) => `  ${describeFigure(figure)}`),
      ]);
      return [...heads, ...(found.length > 0 ? found : ['  no figures are kept'])].join('\n');
    })
    .join('\n\n');
}

/** The same for programs. */
export const describeBenches = (runs: Runs) =>
  Object.entries(BENCHES).map(([name, { measures, minutes, limitMinutes, also = [] }]) => ({
    ...{ name, measures, minutes, limitMinutes, also },
    last: Object.fromEntries(runsOf(name, runs)),
  }));
