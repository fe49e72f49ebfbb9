import type { Output } from '../output/output.ts';
import { plainText } from '../output/text.ts';
import { type Check, GROUPS, type Outcome } from './check.ts';

const MARKS: Readonly<Record<Outcome, readonly [string, 'green' | 'yellow' | 'red']>> = {
  ok: ['✓', 'green'],
  warn: ['!', 'yellow'],
  fail: ['✗', 'red'],
};
const INDENT = '      ';

function renderCheck({ outcome, text, mend, docs }: Check, paint: Output['paint']): string[] {
  const [mark, colour] = MARKS[outcome];
  return [
    `  ${paint(colour, mark)} ${plainText(text)}`,
    ...(mend === undefined ? [] : [`${INDENT}${plainText(mend)}`]),
    ...(outcome === 'ok' || docs === undefined ? [] : [`${INDENT}${docs}`]),
  ];
}

/** Groups with a line for each check, and beneath it what mends what is not in order. */
export function renderChecks(checks: readonly Check[], paint: Output['paint']): string {
  return GROUPS.flatMap((group) => {
    const own = checks.filter((one) => one.group === group);
    return own.length === 0 ? [] : [group, ...own.flatMap((one) => renderCheck(one, paint))];
  }).join('\n');
}

export function renderSummary(role: string, checks: readonly Check[]): string {
  const count = (outcome: Outcome) => checks.filter((one) => one.outcome === outcome).length;
  const [failed, warned] = [count('fail'), count('warn')];
  const worse = warned === 0 ? '' : `; ${warned} could be better`;
  return failed === 0
    ? `This server has what a ${role} node needs${worse}.`
    : `This server lacks ${failed} of what a ${role} node needs${worse}.`;
}
