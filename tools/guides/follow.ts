import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../source.ts';
import { isPrinted, readSteps, type Step } from './steps.ts';

/** Where a guide is followed: a shell on some machine. */
export interface Place {
  /** Runs commands as a person types them; what they print on both streams. */
  run(script: string): Promise<{ readonly code: number | null; readonly printed: string }>;
  /** The names and addresses of the guides' examples, and what has their place here. */
  readonly standIns: Readonly<Record<string, string>>;
  /** Whether it has the packages and systemd. */
  readonly isServer: boolean;
}

/** @param page below `docs/`: `guides/compute-node.md` @param section one heading's steps alone */
export function readGuide(page: string, section?: string): Step[] {
  const steps = readSteps(page, readFileSync(join(ROOT, 'docs', page), 'utf8'));
  const wanted = section === undefined ? steps : steps.filter((step) => step.section === section);
  if (wanted.length === 0)
    throw new Error(`docs/${page} has no steps${section ? ` below "${section}"` : ''}`);
  return wanted;
}

/** One text in the place of another, the longest first: an address may be a part of a URL. */
export function replaceAll(text: string, pairs: readonly (readonly [string, string])[]): string {
  const ordered = pairs.toSorted(([one], [other]) => other.length - one.length);
  return ordered.reduce((given, [from, to]) => given.replaceAll(from, to), text);
}

/**
 * Does what a guide says, and compares what it says is printed. Steps that need a server are left out elsewhere.
 * @returns the steps that were done
 * @throws Error naming page and line, with what was printed
 */
export async function follow(steps: readonly Step[], place: Place): Promise<Step[]> {
  const pairs = Object.entries(place.standIns);
  const back = pairs.map(([example, here]) => [here, example] as const);
  const done = steps.filter(({ needsServer }) => place.isServer || !needsServer);
  for (const { page, line, script, prints } of done) {
    const { code, printed } = await place.run(replaceAll(script, pairs));
    const shown = replaceAll(printed, back);
    const fail = (why: string) =>
      new Error(`docs/${page}:${line} ${why}\n--- the guide:\n${script}\n--- printed here:\n${shown}`);
    if (code !== 0) throw fail(`ended with ${code}`);
    if (prints !== undefined && !isPrinted(prints, shown))
      throw fail(`does not print what the guide says:\n${prints}`);
  }
  return done;
}
