import type { Context } from '../context.ts';
import { followFile, readTail } from './file-tail.ts';
import { readJournal } from './journal.ts';
import { createRenderer, type LogLine, mergeLines, viewOf, type Wanted } from './line.ts';
import { chooseSources, listSources, type Source } from './sources.ts';

export interface LogsOptions {
  readonly follow?: boolean;
  /** Unix milliseconds. */
  readonly since?: number;
  readonly lines?: number;
  readonly dataDir?: string;
}

/** Without --since and --lines. */
const LINES = 100;
/** Of what came since a time, the last. */
export const LINES_MAX = 100_000;

const NEVER = new AbortController().signal;

const isColoured = ({ stdout }: Context['output']) => stdout.isTTY === true && stdout.hasColors();

const filesOf = (sources: readonly Source[]) => sources.filter((one) => one.kind === 'file');
const unitsOf = (sources: readonly Source[]) =>
  sources.flatMap((one) => (one.kind === 'journal' ? [one.unit] : []));

/** Shows what daemons of this computer logged, and with `follow` what they log, until the command is ended. */
export async function showLogs(
  context: Context,
  names: readonly string[],
  { follow = false, since, lines, dataDir }: LogsOptions,
): Promise<void> {
  const { output } = context;
  const sources = chooseSources(await listSources(context, dataDir), names);
  const wanted: Wanted = { sinceMs: since, linesMax: lines ?? (since === undefined ? LINES : LINES_MAX) };
  const render = createRenderer(isColoured(output), Date.now());
  const print = (line: LogLine) => output.next(viewOf(line), render(line), 'console');
  const units = unitsOf(sources);
  const journal = { units, wanted, output };
  const tails = await Promise.all(
    filesOf(sources).map(async (one) => ({ ...one, ...(await readTail(one.daemon, one.path, wanted)) })),
  );
  const logs: (readonly LogLine[])[] = tails.map((tail) => tail.lines);
  if (units.length > 0 && !follow) {
    const told: LogLine[] = [];
    await readJournal({ ...journal, isFollowed: false }, (line) => void told.push(line));
    logs.push(told);
  }
  const merged = mergeLines(logs, wanted);
  if (!follow) {
    output.result(merged.map(viewOf), merged.map(render).join('\n'), 'console');
    if (merged.length === 0) output.note('nothing was logged');
    return;
  }
  for (const line of merged) print(line);
  await Promise.all([
    ...tails.map((tail) => followFile(tail, print, NEVER)),
    ...(units.length === 0 ? [] : [readJournal({ ...journal, isFollowed: true }, print)]),
  ]);
}
