import { createHash, randomBytes } from 'node:crypto';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';

const FILLERS = 50;
const MESSAGES = 3_000;
const FILES = 8;
const FILE_BYTES = 8 * 1024 * 1024;
const WRITERS = 8;
const TEXT_CHARS = 500;

const signer = createSigner(generatePrivateKey());

/** A message that the node acknowledged: when its sending began and when the answer came, in milliseconds. */
interface Acknowledged {
  readonly hash: string;
  readonly begunMs: number;
  readonly endedMs: number;
}

/** People who post one message after another, and what was acknowledged to them. */
export class Writers implements AsyncDisposable {
  readonly acknowledged: Acknowledged[] = [];
  readonly #done: Promise<unknown>;
  #begun = 0;
  #isOver = false;

  constructor(url: string, writers = WRITERS, most = Number.POSITIVE_INFINITY) {
    const write = async () => {
      const client = new CoreClient({ url, signer });
      while (!this.#isOver && this.#begun++ < most) {
        const text = randomBytes(TEXT_CHARS / 2).toString('hex');
        const begunMs = performance.now();
        const { item_hash: hash } = await client.postMessage({
          type: 'POST',
          content: { type: 'note', content: { text } },
        });
        this.acknowledged.push({ hash, begunMs, endedMs: performance.now() });
      }
    };
    this.#done = Promise.all(Array.from({ length: writers }, write));
  }

  /** Resolves when all that was begun is acknowledged. Rejects where something was refused. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  /** Resolves when as many were sent as were asked for. */
  get done(): Promise<unknown> {
    return this.#done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#done.catch(() => undefined);
  }
}

/** Stores files that do not compress, and messages. Gives the hashes of the files. */
export async function fill(url: string): Promise<{ files: string[]; messages: number }> {
  const client = new CoreClient({ url, signer });
  const files: string[] = [];
  for (let n = 0; n < FILES; n++) {
    const bytes = randomBytes(FILE_BYTES);
    const hash = createHash('sha256').update(bytes).digest('hex');
    await client.storeFile(new Blob([bytes]), `file-${n}`, hash);
    files.push(hash);
  }
  await using writers = new Writers(url, FILLERS, MESSAGES);
  await writers.done;
  return { files, messages: writers.acknowledged.length };
}
