import { AppError } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { listKeys } from '../keys/key-store.ts';
import { LOCAL, loadNetworks } from '../networks/store.ts';

/** A shell waits for this while somebody types. */
const TIMEOUT_MS = 3_000;

/** Names that stand as one word: of others nobody could type what the shell would insert. */
const isWord = (text: string) => /^[A-Za-z0-9._-]+$/.test(text);

const LISTED: Readonly<Record<string, (context: Context) => Promise<string[]>>> = {
  keys: async ({ paths }) => (await listKeys(paths.config)).keys.map(({ name }) => name),
  networks: async ({ paths }) => [LOCAL, ...Object.keys((await loadNetworks(paths)).networks)],
  async instances({ loadSigner, reader }) {
    const { address } = await loadSigner();
    const stop = AbortSignal.timeout(TIMEOUT_MS);
    const late = new Promise<never>((_resolve, reject) =>
      stop.addEventListener('abort', () => reject(stop.reason), { once: true }),
    );
    const { instances } = await Promise.race([reader.readAllInstances({ address }), late]);
    return instances.map(({ name }) => name);
  },
};

/** Prints names for a shell, a line each. What cannot be known now is nothing: an error would end up in what somebody types. */
export async function showValues(context: Context, kind: string): Promise<number> {
  const list = LISTED[kind];
  if (list === undefined)
    throw new AppError(
      'INVALID_PARAMETERS',
      `there are names of ${Object.keys(LISTED).join(', ')}, not of ${JSON.stringify(kind)}`,
    );
  const names = await list(context).catch((): string[] => []);
  const words = [...new Set(names)].filter(isWord).sort();
  context.output.result(words, words.join('\n'));
  // A request that is still open holds nobody up.
  setImmediate(() => process.exit(0));
  return 0;
}
