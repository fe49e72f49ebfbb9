import type { Node } from './view.ts';

/** Every node serves it, with the node's own id (deployed nodes: `node_hash`). */
const PROBE_PATH = '/status/config';
const PROBE_TIMEOUT_MS = 2_000;
/** Real answers are about 2 KiB. */
const PROBE_BODY_BYTES_MAX = 64 * 1024;

async function readBody(response: Response): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let bytes = 0;
  let text = '';
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > PROBE_BODY_BYTES_MAX) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

/** The id that whoever answers calls itself by; undefined where it says none. */
function readNodeHash(body: string): string | undefined {
  try {
    const { node_hash: hash } = JSON.parse(body) as { node_hash?: unknown };
    return typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) ? hash : undefined;
  } catch {
    return undefined;
  }
}

function causeOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: { code?: string } };
  return cause?.code ?? message;
}

/**
 * Asks a node for a sign of life. The url is a stranger's word: redirects are not followed, the time and the size of the
 * answer are limited, and nothing of the answer is passed on.
 *
 * @returns why the node counts as unreachable, or undefined where it answered
 */
export async function probeNode(
  node: Pick<Node, 'nodeId' | 'url'>,
  signal: AbortSignal,
  timeoutMs = PROBE_TIMEOUT_MS,
): Promise<string | undefined> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(`${node.url}${PROBE_PATH}`, {
      redirect: 'manual',
      signal: AbortSignal.any([signal, timeout]),
      headers: { accept: 'application/json' },
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      return `the node answered ${response.status} to ${PROBE_PATH}`;
    }
    const body = await readBody(response);
    if (body === undefined)
      return `the node answered ${PROBE_PATH} with more than ${PROBE_BODY_BYTES_MAX} bytes`;
    const answers = readNodeHash(body);
    if (answers !== undefined && answers !== node.nodeId) return `another node answers at ${node.url}`;
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return timeout.aborted
      ? `the node did not answer in ${timeoutMs} ms`
      : `the node does not answer (${causeOf(error)})`;
  }
}
