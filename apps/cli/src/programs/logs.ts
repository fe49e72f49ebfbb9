import { MachineClient, nodeOfRunner, type ProgramLog, readProgramLogs } from '@skerry/client';
import type { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { textOfLine } from '../instances/machine.ts';
import { followLogs } from '../instances/machine-waits.ts';
import { parseProgramHash } from './program-hash.ts';

/** More than a node keeps of a program. */
const LOG_LINES = 10_000;

const viewOf = ({ runner, lines, failure }: ProgramLog) => ({
  ...runner,
  lines: lines ?? null,
  error: failure ? { code: failure.code, message: failure.message } : null,
});

/** Shows what a program wrote, node after node, where more than one has something. */
export async function showProgramLogs(
  context: Context,
  text: string,
  { follow = false }: { readonly follow?: boolean },
): Promise<void> {
  const { reader, output } = context;
  const hash = parseProgramHash(text);
  const signer = await context.loadSigner();
  const logs = await readProgramLogs(reader, hash, signer, LOG_LINES);
  const kept = logs.filter(({ lines }) => lines !== undefined);
  const failed = logs.flatMap(({ failure, runner }) => (failure ? [{ failure, runner }] : []));
  // Of nodes that answer, one word says why; of several, the parts that there are count.
  if (kept.length === 0 && failed[0]) throw failed[0].failure satisfies AppError;
  if (!output.json)
    for (const { failure, runner } of failed) output.note(`${runner.url}: ${failure.message}`);
  if (follow && kept.length > 0) {
    const isMarked = kept.length > 1;
    const ends = await Promise.all(
      kept.map(async ({ runner }) => {
        const { url } = runner;
        try {
          const node = await MachineClient.open(nodeOfRunner(runner), hash, signer);
          return await followLogs(node, (line) =>
            output.next({ url, ...line }, `${isMarked ? `${url}: ` : ''}${textOfLine(line)}`, 'console'),
          );
        } catch (error) {
          // The others are followed all the same.
          if (isMarked) output.note(`${url}: ${(error as Error).message}`);
          return error;
        }
      }),
    );
    throw ends[0];
  }
  const parts = kept.map(({ runner, lines = [] }) => {
    const shown = lines.map(textOfLine);
    return (kept.length > 1 ? [`==> ${runner.url} <==`, ...shown] : shown).join('\n');
  });
  output.result(logs.map(viewOf), parts.join('\n\n'), 'console');
  if (output.json) return;
  if (kept.length === 0)
    output.note('no node has run the program since the node started: call it, then look again');
  else if (kept.every(({ lines = [] }) => lines.length === 0)) output.note('the program printed nothing');
}
