import { createLogger, formatLogLine, type Logger } from '@skerry/kit';
import type { Output } from './output.ts';

/** The log of parts of daemons that a command uses: its lines are notes to people, as standard output has the result alone. */
export const createNoteLog = (name: string, level: string, { note }: Pick<Output, 'note'>): Logger =>
  createLogger(name, level, {
    write: (line) => note(formatLogLine(name, line.trimEnd(), Date.now(), false)),
  });
