import type { Seen } from './seen/seen.ts';
import { SOAKS } from './soaks.ts';

const SUFFIX = '.soak.test.ts';
/** A word that stands for every soak. */
export const ALL = 'all';

/** Of `services/gateway/src/http3.soak.test.ts`: `http3`. */
const nameOf = (name: string) => name.slice(name.lastIndexOf('/') + 1).replace(/\..*/, '');

/** The closest kind of match that there is: the name or path, then the file's name, then a part of either. */
function matches(word: string, all: readonly string[]): readonly string[] {
  if (word === ALL) return all;
  if (all.includes(word)) return [word];
  const exact = all.filter((one) => nameOf(one) === word);
  return exact.length > 0 ? exact : all.filter((one) => one.includes(word));
}

/** What the words of a command choose, in the order of `all`, and the words that choose nothing. */
export function chooseSoaks(
  words: readonly string[],
  all: readonly string[] = Object.keys(SOAKS),
): { readonly chosen: readonly string[]; readonly unknown: readonly string[] } {
  const found = words.map((word) => ({ word, names: matches(word, all) }));
  const names = new Set(found.flatMap((one) => one.names));
  return {
    chosen: all.filter((one) => names.has(one)),
    unknown: found.filter((one) => one.names.length === 0).map(({ word }) => word),
  };
}

/** The shortest end of its path that chooses it alone. */
export function wordOf(name: string, all: readonly string[] = Object.keys(SOAKS)): string {
  const steps = name.replace(SUFFIX, '').split('/');
  const ends = steps.map((_, index) => steps.slice(-1 - index).join('/'));
  return ends.find((end) => chooseSoaks([end], all).chosen.join() === name) ?? name;
}

/** Every soak, for programs. `file`: of one that is not told how long it runs; `passed`: the last time that was kept. */
export const describeSoaks = (seen: Seen) =>
  Object.entries(SOAKS).map(([name, { shows, minutes, load }]) => ({
    name: wordOf(name),
    file: load === undefined ? name : null,
    shows,
    minutes,
    passed: seen[name] ?? null,
  }));

/** Every soak with what it shows, about how long it takes and when it was last seen passing. */
export function listSoaks(seen: Seen): string {
  const soaks = describeSoaks(seen);
  const lines = (own: typeof soaks) =>
    own
      .map(({ name, shows, minutes, passed }) => {
        const last = passed ? `passed ${passed.date} of ${passed.commit}` : 'no pass is kept';
        return `  ${name}: ${shows} (${minutes} min; ${last})`;
      })
      .join('\n');
  const { told = [], file = [] } = Object.groupBy(soaks, (one) => (one.file === null ? 'told' : 'file'));
  const hours = Math.round(soaks.reduce((sum, { minutes }) => sum + minutes, 0) / 60);
  return `As long as you say with --seconds:\n${lines(told)}\n\nUntil done:\n${lines(file)}\n\nTimes are about those of two cores that nobody else works on; all of them take ${hours} hours.`;
}
