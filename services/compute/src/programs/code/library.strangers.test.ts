import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildNetworkMessage, type CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { AppError, sha256Hex } from '@skerry/protocol';
import { inDirectory } from '../../testing/directory.ts';
import { Library } from './library.ts';

const RUNTIME = 'b'.repeat(64);
const signer = createSigner(generatePrivateKey());

/** A core node with programs whose code has so many bytes. */
function coreWith(sizes: readonly number[]) {
  const files = new Map<string, string>();
  const messages = new Map<string, object>();
  const hashes = sizes.map((size, index) => {
    const code = `${index}`.padEnd(size);
    const ref = sha256Hex(code);
    files.set(ref, code);
    const content = {
      ...{ type: 'vm-function', allow_amend: false, on: { http: true, persistent: false } },
      environment: { reproducible: false, internet: true, aleph_api: true, shared_cache: false },
      resources: { vcpus: 1, memory: 128, seconds: 30 },
      code: { ref, encoding: 'plain', entrypoint: 'main', use_latest: false },
      runtime: { ref: RUNTIME, use_latest: false, comment: '' },
    };
    const { body, itemHash } = buildNetworkMessage({ type: 'PROGRAM', content }, signer);
    messages.set(itemHash, (JSON.parse(body) as { message: object }).message);
    return itemHash;
  });
  const core = {
    async getMessage(hash: string) {
      const message = messages.get(hash);
      if (!message) throw new AppError('MESSAGE_NOT_FOUND', 'none');
      return { ...message, type: 'PROGRAM', status: 'processed', signed_text: null, message };
    },
    async getFile(ref: string) {
      const code = files.get(ref);
      if (code === undefined) throw new AppError('FILE_NOT_FOUND', 'none');
      return new Response(code);
    },
  };
  return { core: core as unknown as CoreClient, hashes };
}

test('the code of programs that are called has a limit in memory; what is large goes first and is read again', () =>
  inDirectory(async (directory) => {
    const { core, hashes } = coreWith([10, 400, 500, 300]);
    const runtimes = { [RUNTIME]: 'python3' } as const;
    const library = new Library({ core, directory, runtimes, onGone() {}, codeBytesMax: 1_000 });
    const held = async () => {
      const found = await Promise.all(hashes.map((hash) => library.find(hash)));
      return found.map((program) => program?.code.bytes.length ?? null);
    };
    for (const hash of hashes.slice(0, 3)) await library.get(hash);
    assert.deepEqual(await held(), [10, 400, 500, null]);
    await library.get(hashes[3]!);
    assert.deepEqual(await held(), [10, 400, null, 300]);
    assert.equal((await library.get(hashes[2]!)).code.bytes.length, 500);
    assert.deepEqual(await held(), [10, null, 500, 300]);
  }));
