import { appendFileSync } from 'node:fs';
import { logOf } from './logs.ts';

const startMs = performance.now();
const [directory = ''] = process.argv.slice(2);

/** A line, with the seconds since the scenario began. Kept beside the logs, with the time of day that those have. */
export function say(text: string): void {
  console.log(`${((performance.now() - startMs) / 1_000).toFixed(1).padStart(6)} s  ${text}`);
  appendFileSync(logOf(directory, 'scenario'), `${new Date().toISOString()} ${text}\n`);
}
