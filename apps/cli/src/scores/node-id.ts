import { type PublishedScores, readAnnouncedNodes } from '@skerry/client';
import { AppError, parseItemHash } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';

const FULL = /^[0-9a-f]{64}$/i;
/** Tables of people's width show the first twelve digits of an id. */
const START = /^[0-9a-f]{4,63}$/i;
const READ_TIMEOUT_MS = 30_000;
const MATCHES_TOLD = 5;

/** The one of these ids that starts so. Throws NODE_NOT_FOUND, AMBIGUOUS_NAME. */
export function matchNodeId(ids: readonly string[], start: string): string {
  const matches = [...new Set(ids)].filter((id) => id.startsWith(start.toLowerCase()));
  if (matches.length === 1) return matches[0]!;
  if (matches.length === 0)
    throw new AppError('NODE_NOT_FOUND', `no node has an id that starts with ${start}`, {
      details: { hint: '"skerry score latest" and "skerry scheduler nodes" list nodes' },
    });
  throw new AppError('AMBIGUOUS_NAME', `${matches.length} nodes have an id that starts with ${start}`, {
    details: { hint: `use more digits: ${matches.slice(0, MATCHES_TOLD).join(', ')}`, matches },
  });
}

/**
 * A full id as it is; the start of one among the nodes that were scored or announced themselves. Throws INVALID_HASH.
 * @param last what publishers published last
 */
export async function findNodeId(
  { reader }: Pick<Context, 'reader'>,
  last: readonly PublishedScores[],
  text: string,
): Promise<string> {
  if (FULL.test(text)) return parseItemHash(text);
  if (!START.test(text))
    throw new AppError(
      'INVALID_HASH',
      `${JSON.stringify(text)} is no id of a node: 64 hexadecimal digits, or the first four or more`,
    );
  const announced = await readAnnouncedNodes(reader, AbortSignal.timeout(READ_TIMEOUT_MS));
  const scored = last.flatMap(({ content }) => [...content.scores.ccn, ...content.scores.crn]);
  return matchNodeId([...scored.map((one) => one.node_id), ...announced.map((one) => one.nodeId)], text);
}
