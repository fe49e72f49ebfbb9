import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildNetworkMessage,
  buildStoredMessage,
  diffNodes,
  type MessageDraft,
  type Signer,
  signMessage,
} from '@skerry/client';
import { createLogger } from '@skerry/kit';
import { parseItemHash, sha256Hex } from '@skerry/protocol';
import { ERASE_AFTER_MS, eraseForgotten } from '../../intake/erase.ts';
import { erasedText } from '../../intake/erased.ts';
import { digestState } from '../../state/digest.ts';
import { FileFetcher } from '../../store/files/fetcher.ts';
import type { FileSource } from '../../store/files/fetching/source.ts';
import { MissedFiles } from '../../store/files/missed.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import { linkTo } from './testing/setup.ts';

const { alice, bob } = signers;
const signal = new AbortController().signal;
const log = createLogger('test', 'silent');
const HOUR_MS = 3_600_000;
/** Of messages that say what they say themselves, not in a file. */
const FORMS = ['envelope', 'network'] as const;
type Form = (typeof FORMS)[number];

interface Sent {
  readonly body: string;
  readonly itemHash: string;
  /** Where it is a file. */
  readonly content?: string;
}

/** Two nodes that know of each other, and the clock that both have. */
async function createPair(stack: AsyncDisposableStack) {
  const clock = { nowMs: Date.now() };
  const cores: TestCore[] = [];
  for (const peer of [1, 0]) {
    // Files come by what each test fetches.
    const { openFile: _, ...link } = linkTo(`node-${peer}`, () => cores[peer]!);
    const peers = [link];
    cores.push(stack.use(await createTestCore({ peers, now: () => clock.nowMs })));
  }
  type Said = Readonly<Record<string, unknown>>;
  const sign = (signer: Signer, type: string, content: Said, form: Form | 'file' = 'envelope'): Sent => {
    const time = Math.floor(clock.nowMs / 1000);
    if (form === 'envelope') return signMessage({ type, content, timestamp: time } as MessageDraft, signer);
    const build = form === 'file' ? buildStoredMessage : buildNetworkMessage;
    return build({ type, content, time }, signer);
  };
  const meet = async () => {
    for (const core of [...cores, ...cores]) {
      assert.ok(await core.rooms.sync.syncer.round(signal));
      await core.rooms.pipeline.idle();
    }
  };
  return { clock, first: cores[0]!, second: cores[1]!, sign, meet };
}

async function upload(core: TestCore, { content }: Sent): Promise<void> {
  if (content === undefined) return;
  const headers = { 'content-type': 'application/octet-stream' };
  assert.equal((await core.post('/storage/add_file', Buffer.from(content), headers)).status, 200);
}

const put = async (core: TestCore, { body, itemHash }: Sent) => {
  const { status } = await core.post('/messages', body);
  assert.equal(status, 200);
  await core.rooms.pipeline.idle();
  return itemHash;
};
const statusOf = async (core: TestCore, hash: string) =>
  (await core.get(`/messages/${hash}/status`)).body.status as string;
/** Nothing that a session would find: also not once all keys are read again. */
async function haveSameSet(cores: readonly TestCore[]) {
  const fingerprint = ({ rooms: { sync } }: TestCore) => sync.set.index.fingerprint(0, sync.set.index.size);
  const followed = cores.map(fingerprint);
  for (const one of followed) assert.deepEqual(one, followed[0]);
  await Promise.all(cores.map(({ rooms }) => rooms.sync.load()));
  assert.deepEqual(cores.map(fingerprint), followed);
}
const digestOf = async ({ rooms: { db } }: TestCore) =>
  (({ cursor: _, ...digest }) => digest)(await digestState(db));
const permit = (...authorizations: object[]) => ({ key: 'security', content: { authorizations } });

/** As the sweep does once nothing keeps it. */
async function loseFile({ rooms, blobs }: TestCore, hash: string): Promise<void> {
  await rooms.db.deleteFrom('files').where('hash', '=', hash).execute();
  await blobs.remove(parseItemHash(hash));
}

/** Fetches what one node lacks from another one; `look` has each file asked for once that is due. */
function createFetching({ rooms }: TestCore, from: TestCore) {
  const { db, now } = rooms;
  const missed = new MissedFiles({ db, namedBy: 'hash', now, random: () => 0 });
  const open: FileSource['open'] = async (name) => {
    const blob = await from.blobs.find(parseItemHash(name));
    const contentType = 'application/octet-stream';
    return blob && { stream: await from.blobs.read(parseItemHash(name)), contentType };
  };
  const source = { name: 'other', handles: () => true, open };
  const fetcher = new FileFetcher({ ...rooms, sources: [source], missed, log });
  const look = async () => {
    await missed.round();
    await fetcher.look(signal);
    await fetcher.idle();
    await rooms.pipeline.idle();
  };
  return { missed, look };
}

type Pair = Awaited<ReturnType<typeof createPair>>;

/** While the nodes are apart, one takes the permission back, and the other forgets a message of alice by it. */
async function forgetApartIn(
  { clock, first, second, sign, meet }: Pair,
  apartMs: number,
  target: Sent | Form | 'file',
  onErased: () => Promise<void> = async () => {},
): Promise<Sent> {
  const form = typeof target === 'string' ? target : undefined;
  await put(first, sign(alice, 'AGGREGATE', permit({ address: bob.address })));
  const sent =
    typeof target === 'string' ? sign(alice, 'POST', { type: 'note', content: 'of alice' }, target) : target;
  for (const core of [first, second]) await upload(core, sent);
  await put(first, sent);
  await meet();
  clock.nowMs += HOUR_MS;
  await put(second, sign(alice, 'AGGREGATE', permit()));
  clock.nowMs += HOUR_MS;
  const forget = await put(first, sign(bob, 'FORGET', { hashes: [sent.itemHash] }));
  assert.equal(await statusOf(first, sent.itemHash), 'forgotten');
  clock.nowMs += apartMs;
  await eraseForgotten(first.rooms.db, clock.nowMs);
  if (form === 'file') await loseFile(first, sent.itemHash);
  await onErased();
  await meet();
  for (const core of [first, second]) assert.equal(await statusOf(core, forget), 'rejected');
  return sent;
}

async function forgetApart(stack: AsyncDisposableStack, apartMs: number, form?: Form | 'file') {
  const pair = await createPair(stack);
  const post = await forgetApartIn(pair, apartMs, form ?? 'envelope');
  return { ...pair, post };
}

test('a FORGET that a revocation defeats within a day is undone on every node', async () => {
  await using stack = new AsyncDisposableStack();
  const { first, second, post } = await forgetApart(stack, ERASE_AFTER_MS - 1);
  assert.equal(await statusOf(first, post.itemHash), 'processed');
  assert.deepEqual(await digestOf(first), await digestOf(second));
});

for (const form of FORMS)
  test(`later, a node that erased the text gets it again of one that has it (${form})`, async () => {
    await using stack = new AsyncDisposableStack();
    const { first, second, post } = await forgetApart(stack, ERASE_AFTER_MS, form);
    for (const core of [first, second]) {
      assert.equal(await statusOf(core, post.itemHash), 'processed');
      assert.equal((await core.get(`/messages/${post.itemHash}`)).body.content.content, 'of alice');
    }
    assert.deepEqual(await digestOf(first), await digestOf(second));
    await haveSameSet([first, second]);
  });

test('a text that is wanted comes back also where its sender turns out not to have been permitted to say it', async () => {
  await using stack = new AsyncDisposableStack();
  const { clock, first, second, sign, meet } = await createPair(stack);
  await put(first, sign(alice, 'AGGREGATE', permit({ address: bob.address })));
  const content = { type: 'note', address: alice.address, content: 'in the name of alice' };
  const post = await put(first, sign(bob, 'POST', content));
  await meet();
  clock.nowMs += 60_000;
  await put(second, sign(alice, 'AGGREGATE', permit()));
  const forget = await put(first, sign(bob, 'FORGET', { hashes: [post] }));
  clock.nowMs += ERASE_AFTER_MS;
  await eraseForgotten(first.rooms.db, clock.nowMs);
  await meet();
  for (const core of [first, second]) {
    assert.deepEqual([await statusOf(core, post), await statusOf(core, forget)], ['rejected', 'rejected']);
    assert.equal((await core.get(`/messages/${post}`)).body.content.content, content.content);
  }
  await haveSameSet([first, second]);
});

test('a content that is a file is fetched from a node that has it, also where nothing was missed for long', async () => {
  await using stack = new AsyncDisposableStack();
  const { clock, first, second, sign, meet } = await createPair(stack);
  const { missed, look } = createFetching(first, second);
  for (let pass = 0; pass < 8; pass++) {
    await look();
    clock.nowMs += 4 * HOUR_MS;
  }
  const post = await forgetApartIn({ clock, first, second, sign, meet }, ERASE_AFTER_MS, 'file');
  assert.equal(await statusOf(first, post.itemHash), 'forgotten');
  await look();
  assert.deepEqual(missed.names, []);
  for (const core of [first, second]) {
    assert.equal(await statusOf(core, post.itemHash), 'processed');
    assert.equal((await core.get(`/messages/${post.itemHash}`)).body.content.content, 'of alice');
  }
  assert.deepEqual(await digestOf(first), await digestOf(second));
  await haveSameSet([first, second]);
});

test('the file of a STORE that comes back is waited for anew, also where it went before the text did', async () => {
  for (const apartMs of [HOUR_MS, ERASE_AFTER_MS]) {
    await using stack = new AsyncDisposableStack();
    const pair = await createPair(stack);
    const { clock, first, second, sign, meet } = pair;
    const file = sha256Hex('kept');
    for (const core of [first, second]) await upload(core, { body: '', itemHash: file, content: 'kept' });
    const store = sign(alice, 'STORE', { item_type: 'storage', item_hash: file });
    await forgetApartIn(pair, apartMs, store, () => loseFile(first, file));
    assert.equal(await statusOf(second, store.itemHash), 'processed');
    assert.equal(await statusOf(first, store.itemHash), 'pending');
    clock.nowMs += HOUR_MS - 1;
    await first.rooms.pipeline.expire();
    await first.rooms.pipeline.idle();
    assert.equal(await statusOf(first, store.itemHash), 'pending');
    await createFetching(first, second).look();
    assert.equal(await statusOf(first, store.itemHash), 'processed');
    await meet();
    assert.deepEqual(await digestOf(first), await digestOf(second));
  }
});

test('of a content that is a file the message is taken again once the file is here', async () => {
  await using stack = new AsyncDisposableStack();
  const { first, second, post } = await forgetApart(stack, ERASE_AFTER_MS, 'file');
  assert.equal(await statusOf(first, post.itemHash), 'forgotten');
  const { onlyFirst, onlySecond } = await diffNodes(await first.listen(), await second.listen());
  assert.deepEqual(
    [onlyFirst, onlySecond].map((found) => found.map(({ hash }) => hash)),
    [[post.itemHash], [post.itemHash]],
  );
  await upload(first, post);
  await first.rooms.pipeline.idle();
  assert.equal(await statusOf(first, post.itemHash), 'processed');
  assert.deepEqual(await digestOf(first), await digestOf(second));
  await haveSameSet([first, second]);
});

test('what nobody has any more is forgotten everywhere, until somebody sends it again to one node', async () => {
  await using stack = new AsyncDisposableStack();
  const { clock, first, second, sign, meet } = await createPair(stack);
  await put(first, sign(alice, 'AGGREGATE', permit({ address: bob.address })));
  const post = sign(alice, 'POST', { type: 'note', content: 'of alice' });
  await put(first, post);
  clock.nowMs += HOUR_MS;
  const revocation = sign(alice, 'AGGREGATE', permit());
  clock.nowMs += HOUR_MS;
  const forget = await put(first, sign(bob, 'FORGET', { hashes: [post.itemHash] }));
  await meet();
  clock.nowMs += ERASE_AFTER_MS;
  for (const { rooms } of [first, second]) await eraseForgotten(rooms.db, clock.nowMs);
  for (const { rooms } of [first, second]) {
    const { peer } = rooms.intake;
    await peer.keep(await peer.read([Buffer.from(revocation.body)]));
    await rooms.pipeline.idle();
  }
  const third = stack.use(
    await createTestCore({ peers: [linkTo('first', () => first)], now: () => clock.nowMs }),
  );
  const cores = [first, second, third];
  const agree = async (status: string) => {
    await meet();
    assert.ok(await third.rooms.sync.syncer.round(signal));
    await third.rooms.pipeline.idle();
    for (const core of cores) {
      assert.equal(await statusOf(core, post.itemHash), status);
      assert.deepEqual(await digestOf(core), await digestOf(first));
    }
    await haveSameSet(cores);
  };
  await agree('forgotten');
  assert.equal(await statusOf(first, forget), 'rejected');
  await put(second, post);
  const { onlyFirst, onlySecond } = await diffNodes(await first.listen(), await second.listen());
  assert.deepEqual(
    [onlyFirst, onlySecond].map((found) => found.map(({ hash }) => hash)),
    [[post.itemHash], [post.itemHash]],
  );
  await agree('processed');
});

test('a peer that says of a message that it was forgotten keeps it from nobody', async () => {
  await using stack = new AsyncDisposableStack();
  const { clock, first, sign } = await createPair(stack);
  const post = await put(first, sign(alice, 'POST', { type: 'note', content: 'of alice' }));
  const row = await first.rooms.db.selectFrom('messages').selectAll().executeTakeFirstOrThrow();
  const third = stack.use(
    await createTestCore({ peers: [linkTo('first', () => first)], now: () => clock.nowMs }),
  );
  const { peer } = third.rooms.intake;
  await peer.keep(await peer.read([Buffer.from(erasedText(row))]));
  assert.equal(await statusOf(third, post), 'forgotten');
  assert.ok(await third.rooms.sync.syncer.round(signal));
  assert.equal(await statusOf(third, post), 'processed');
  assert.deepEqual(await digestOf(third), await digestOf(first));
});

for (const form of FORMS)
  test(`what was erased and turns out not to have been permitted is passed on, and forgotten again with the permission (${form})`, async () => {
    await using stack = new AsyncDisposableStack();
    const { clock, first, second, sign, meet } = await createPair(stack);
    await put(first, sign(alice, 'AGGREGATE', permit({ address: bob.address })));
    const content = { type: 'note', address: alice.address, content: 'in the name of alice' };
    const post = await put(first, sign(bob, 'POST', content, form));
    await meet();
    clock.nowMs += 60_000;
    const revocation = await put(second, sign(alice, 'AGGREGATE', permit()));
    const forget = await put(first, sign(alice, 'FORGET', { hashes: [post] }));
    clock.nowMs += ERASE_AFTER_MS;
    await eraseForgotten(first.rooms.db, clock.nowMs);
    await meet();

    const link = linkTo('erased', () => first);
    const third = stack.use(await createTestCore({ peers: [link], now: () => clock.nowMs }));
    assert.ok(await third.rooms.sync.syncer.round(signal), JSON.stringify(third.rooms.sync.syncer.view()));
    await third.rooms.pipeline.idle();
    const cores = [first, second, third];
    for (const core of cores) {
      assert.deepEqual([await statusOf(core, post), await statusOf(core, forget)], ['rejected', 'processed']);
      assert.deepEqual(await digestOf(core), await digestOf(second));
      const { body } = await core.get(`/messages.json?hashes=${post}&msgStatuses=rejected&bodies=shared`);
      assert.equal(body.messages.length, 1);
      assert.equal(body.messages[0].shared, null);
    }

    await put(second, sign(alice, 'FORGET', { hashes: [revocation] }));
    await meet();
    assert.ok(await third.rooms.sync.syncer.round(signal));
    await third.rooms.pipeline.idle();
    for (const core of cores) {
      assert.equal(await statusOf(core, post), 'forgotten');
      assert.deepEqual(await digestOf(core), await digestOf(second));
    }
  });
