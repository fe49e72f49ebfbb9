import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** What all parts write; kept when the soak fails. */
export const logsOf = (directory: string): string => join(directory, 'logs');

/** The file of one part. */
export function logOf(directory: string, part: string): string {
  mkdirSync(logsOf(directory), { recursive: true });
  return join(logsOf(directory), `${part}.log`);
}
