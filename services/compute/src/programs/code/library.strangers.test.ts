import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildNetworkMessage,
  type CoreClient,
  createSigner,
  generatePrivateKey,
  type Signer,
} from '@skerry/client';
import { until } from '@skerry/kit/testing/until';
import { AppError, sha256Hex } from '@skerry/protocol';
import { checkCaughtUp } from '../../caught-up.ts';
import { inDirectory } from '../../testing/directory.ts';
import { Library } from './library.ts';

const RUNTIME = 'b'.repeat(64);
const signer = createSigner(generatePrivateKey());
const other = createSigner(generatePrivateKey());
const runtimes = { [RUNTIME]: 'python3' } as const;
const UNHEARD = { checkLag: async () => {}, onGone() {}, onForgotten() {} };

const contentOf = (ref: string, useLatest: boolean) => ({
  ...{ type: 'vm-function', allow_amend: false, on: { http: true, persistent: false } },
  environment: { reproducible: false, internet: true, aleph_api: true, shared_cache: false },
  resources: { vcpus: 1, memory: 128, seconds: 30 },
  code: { ref, encoding: 'plain', entrypoint: 'main', use_latest: useLatest },
  runtime: { ref: RUNTIME, use_latest: false, comment: '' },
});

function messageOf(
  type: 'PROGRAM' | 'STORE',
  content: Readonly<Record<string, unknown>>,
  by: Signer,
): [hash: string, message: object] {
  const { body, itemHash } = buildNetworkMessage({ type, content }, by);
  return [itemHash, (JSON.parse(body) as { message: object }).message];
}

/** A core node with programs whose code has so many bytes. @param signers whose they are, where they are not one signer's */
function coreWith(sizes: readonly number[], signers: readonly Signer[] = []) {
  const files = new Map<string, string>();
  const messages = new Map<string, object>();
  const hashes = sizes.map((size, index) => {
    const code = `${index}`.padEnd(size);
    const ref = sha256Hex(code);
    files.set(ref, code);
    const [hash, message] = messageOf('PROGRAM', contentOf(ref, false), signers[index] ?? signer);
    messages.set(hash, message);
    return hash;
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
    const library = new Library({ core, directory, runtimes, ...UNHEARD, codeBytesMax: 1_000 });
    const held = () => hashes.map((hash) => library.find(hash)?.code.bytes.length ?? null);
    for (const hash of hashes.slice(0, 3)) await library.get(hash);
    assert.deepEqual(held(), [10, 400, 500, null]);
    await library.get(hashes[3]!);
    assert.deepEqual(held(), [10, 400, null, 300]);
    assert.equal((await library.get(hashes[2]!)).code.bytes.length, 500);
    assert.deepEqual(held(), [10, null, 500, 300]);
  }));

test('who asks for programs that do not exist takes the place of none that does', () =>
  inDirectory(async (directory) => {
    const { core, hashes } = coreWith([10]);
    const library = new Library({ core, directory, runtimes, ...UNHEARD });
    const loaded = await library.get(hashes[0]!);
    const invented = Array.from({ length: 300 }, (_, index) => library.get(sha256Hex(`none ${index}`)));
    assert.equal(library.find(hashes[0]!), loaded);
    for (const { status } of await Promise.allSettled(invented)) assert.equal(status, 'rejected');
    assert.equal(library.find(hashes[0]!), loaded);
  }));

test('M7: who calls many programs whose code is large, or never comes, takes the memory and the turns of nobody else', () =>
  inDirectory(async (directory) => {
    const sizes = [40, 41, 42, 43];
    const { core, hashes } = coreWith(sizes, [signer, signer, signer, other]);
    const { promise: never, reject: end } = Promise.withResolvers<Response>();
    const ours = sha256Hex('3'.padEnd(sizes[3]!));
    const asked = new Set<string>();
    let isOver = false;
    const getFile = (ref: string) => {
      if (ref !== ours) asked.add(ref);
      return ref === ours || isOver ? core.getFile(ref) : never;
    };
    const codeInUse = { total: 130, reserve: 0, perClient: 85 };
    const open = (from: CoreClient) =>
      new Library({ core: from, directory, runtimes, ...UNHEARD, codeInUse });
    const stalled = open({ ...core, getFile } as unknown as CoreClient);
    const waiting = hashes.slice(0, 3).map((hash) => stalled.get(hash));
    assert.equal((await stalled.get(hashes[3]!)).code.bytes.length, 43);
    await until('two are fetched', () => asked.size >= 2);
    assert.equal(asked.size, 2, 'of one owner two are fetched at a time');
    isOver = true;
    end(new AppError('FILE_NOT_FOUND', 'none'));
    const settled = await Promise.allSettled(waiting);
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['rejected', 'rejected', 'fulfilled'],
    );

    const library = open(core);
    const used = [
      await library.use(hashes[0]!),
      await library.use(hashes[1]!),
      await library.use(hashes[0]!),
    ];
    await assert.rejects(library.use(hashes[2]!), { code: 'OVERLOADED', message: /of one owner/ });
    const theirs = await library.use(hashes[3]!);
    used[0]![Symbol.dispose]();
    await assert.rejects(library.use(hashes[2]!), { code: 'OVERLOADED' });
    used[2]![Symbol.dispose]();
    (await library.use(hashes[2]!))[Symbol.dispose]();
    for (const one of [used[1]!, theirs]) one[Symbol.dispose]();
  }));

test('a core node that does not know a program any more, but not as forgotten, ends nothing of it', (t) =>
  inDirectory(async (directory) => {
    const { core, hashes } = coreWith([10]);
    const [hash] = hashes as [string];
    let [isLost, asked] = [false, 0];
    const getMessage = async (of: string) => {
      if (!isLost) return core.getMessage(of);
      asked++;
      throw new AppError('MESSAGE_NOT_FOUND', 'none');
    };
    const gone: string[] = [];
    const heard = {
      ...UNHEARD,
      onGone: (key: string) => gone.push(key),
      onForgotten: (of: string) => gone.push(of),
    };
    const from = { ...core, getMessage } as unknown as CoreClient;
    const library = new Library({ core: from, directory, runtimes, ...heard });
    const loaded = await library.get(hash);
    isLost = true;
    const laterMs = performance.now() + 60_000;
    t.mock.method(performance, 'now', () => laterMs);
    await library.get(hash);
    await new Promise(setImmediate);
    assert.equal(asked, 1);
    assert.deepEqual([gone, library.find(hash)], [[], loaded]);
  }));

test('a program whose code was forgotten, and not the program, keeps its log', () =>
  inDirectory(async (directory) => {
    const { core, hashes } = coreWith([10]);
    const [hash] = hashes as [string];
    const getMessage = (asked: string) => {
      if (asked !== hash) throw new AppError('MESSAGE_FORGOTTEN', 'forgotten');
      return core.getMessage(asked);
    };
    const from = { ...core, getMessage } as unknown as CoreClient;
    const gone: string[] = [];
    const heard = { ...UNHEARD, onForgotten: (of: string) => gone.push(of) };
    const library = new Library({ core: from, directory, runtimes, ...heard });
    await assert.rejects(library.get(hash), { code: 'MESSAGE_FORGOTTEN' });
    assert.deepEqual(gone, []);
  }));

test('a program that was forgotten is let go of soon, however the clock was set meanwhile', (t) =>
  inDirectory(async (directory) => {
    const { core, hashes } = coreWith([10]);
    const [hash] = hashes as [string];
    const gone: string[] = [];
    let isForgotten = false;
    const getMessage = (asked: string) => {
      if (isForgotten) throw new AppError('MESSAGE_FORGOTTEN', 'forgotten');
      return core.getMessage(asked);
    };
    const from = { ...core, getMessage } as unknown as CoreClient;
    const heard = {
      ...UNHEARD,
      onGone: () => gone.push('code'),
      onForgotten: (of: string) => gone.push(of),
    };
    const library = new Library({ core: from, directory, runtimes, ...heard });
    t.mock.timers.enable({ apis: ['Date'], now: 1_000_000_000 });
    await library.get(hash);
    isForgotten = true;
    t.mock.timers.setTime(0);
    const laterMs = performance.now() + 60_000;
    t.mock.method(performance, 'now', () => laterMs);
    await library.get(hash);
    await new Promise(setImmediate);
    assert.deepEqual(gone, [hash, 'code']);
    await assert.rejects(library.get(hash), { code: 'MESSAGE_FORGOTTEN' });
    assert.deepEqual(gone, [hash, 'code', hash]);
  }));

test('while the core node lacks what its peers have, its older code takes the place of no newer one, and nothing is gone', (t) =>
  inDirectory(async (directory) => {
    const files = new Map(['old', 'new'].map((code) => [sha256Hex(code), code]));
    const [first, second] = [...files.keys()] as [string, string];
    const store = (more: Readonly<Record<string, string>>) =>
      messageOf('STORE', { item_type: 'storage', ...more }, signer);
    const begun = store({ item_hash: first });
    const newer = store({ item_hash: second, ref: begun[0] });
    const program = messageOf('PROGRAM', contentOf(begun[0], true), signer);
    const messages = new Map([begun, newer, program]);
    const typeOf = (hash: string) => (hash === program[0] ? 'PROGRAM' : 'STORE');
    let [newest, status]: [string | undefined, string] = [newer[0], 'processed'];
    const core = {
      async getMessage(hash: string) {
        if (status === 'forgotten') throw new AppError('MESSAGE_FORGOTTEN', 'forgotten');
        const message = messages.get(hash)!;
        return { ...message, type: typeOf(hash), status, signed_text: null, message };
      },
      findNewestVersion: async () => newest,
      getFile: async (ref: string) => new Response(files.get(ref)),
    } as unknown as CoreClient;
    let lag: string | null = null;
    let nowMs = performance.now();
    t.mock.method(performance, 'now', () => nowMs);
    const gone: string[] = [];
    const library = new Library({
      ...{ core, directory, runtimes },
      checkLag: () => checkCaughtUp({ isInStep: lag === null, check: async () => lag }),
      onGone: () => gone.push('code'),
      onForgotten: (hash) => gone.push(hash),
    });
    const [hash] = program;
    const held = () => library.find(hash)?.code.bytes.toString();
    /** Has it look again. */
    const call = async () => {
      nowMs += 60_000;
      await library.get(hash);
      await new Promise(setImmediate);
    };
    await library.get(hash);
    assert.equal(held(), 'new');
    lag = 'it is still fetching';
    for (const [as, said] of [
      ['processed', undefined],
      ['pending', newest],
      ['forgotten', newest],
    ] as const) {
      [status, newest] = [as, said];
      await call();
      assert.deepEqual([held(), gone], ['new', []], as);
    }
    lag = null;
    await call();
    assert.deepEqual([held(), gone], [undefined, [hash, 'code']]);
  }));
