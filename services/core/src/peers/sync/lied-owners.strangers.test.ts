import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import {
  buildNetworkMessage,
  buildStoredMessage,
  diffNodes,
  type MessageDraft,
  signMessage,
} from '@skerry/client';
import { AppError } from '@skerry/protocol';
import { erasedText } from '../../intake/erased.ts';
import type { StoredMessage } from '../../intake/stored.ts';
import { digestState } from '../../state/digest.ts';
import { createTestCore, signers, type TestCore } from '../../testing/core.ts';
import type { PeerLink } from './link.ts';
import { linkTo } from './testing/setup.ts';

/** Bob has a core node among the peers of whoever joins, and lies. */
const { alice, bob } = signers;
const signal = new AbortController().signal;
const FORMS = ['envelope', 'network', 'file'] as const;

interface Signed {
  readonly body: string;
  readonly itemHash: string;
  /** Where it is a file. */
  readonly content?: string;
}

const sign = (draft: object, signer = alice): Signed =>
  signMessage({ timestamp: Math.floor(Date.now() / 1000), ...draft } as MessageDraft, signer);

/** What is signed of a message that is in force, and what of it was never said. */
function signLive(form: (typeof FORMS)[number]): Signed {
  const draft = { type: 'POST', content: { type: 'note', content: 'in force' } };
  if (form === 'envelope') return sign(draft);
  const build = form === 'file' ? buildStoredMessage : buildNetworkMessage;
  return build({ ...draft, time: Math.floor(Date.now() / 1000) }, alice);
}

/** Its content first, where that is a file. */
async function post(core: TestCore, { body, content }: Signed): Promise<void> {
  const headers = { 'content-type': 'application/octet-stream' };
  if (content !== undefined)
    assert.equal((await core.post('/storage/add_file', Buffer.from(content), headers)).status, 200);
  assert.equal((await core.post('/messages', body)).status, 200);
}

interface Lie {
  readonly of: readonly (typeof FORMS)[number][];
  /** What the skeleton says of it. */
  readonly said: (post: Signed) => Partial<StoredMessage>;
  /** What bob signs to bear it out. @param post his own */
  readonly signed: (live: Signed, post: Signed) => readonly Signed[];
}

const forgets = ({ itemHash }: Signed) => sign({ type: 'FORGET', content: { hashes: [itemHash] } }, bob);

/** The liar permits alice, who signed it, and forgets what would be his. */
const signsForLiar = (live: Signed): Signed[] => [
  sign(
    {
      type: 'AGGREGATE',
      timestamp: Math.floor(Date.now() / 1000) - 60,
      content: { key: 'security', content: { authorizations: [{ address: alice.address }] } },
    },
    bob,
  ),
  forgets(live),
];

const LIES: Readonly<Record<string, Lie>> = {
  'was signed on behalf of the liar, who permitted it and forgot it': {
    of: FORMS,
    said: () => ({ owner: bob.address }),
    signed: signsForLiar,
  },
  'was signed by the liar, who forgot it': {
    of: ['envelope'],
    said: () => ({ sender: bob.address, owner: bob.address }),
    signed: (live) => [forgets(live)],
  },
  'amended a post of the liar that was forgotten': {
    of: FORMS,
    said: ({ itemHash }) => ({ content_type: 'amend', subject: itemHash }),
    signed: (_, post) => [forgets(post)],
  },
};

async function keep(core: TestCore, texts: readonly string[]): Promise<void> {
  const { peer } = core.rooms.intake;
  for (const text of texts) await peer.keep(await peer.read([Buffer.from(text)]));
  await core.rooms.pipeline.idle();
}
async function meet({ rooms }: TestCore): Promise<void> {
  assert.ok(await rooms.sync.syncer.round(signal));
  await rooms.pipeline.idle();
}
const digestOf = async ({ rooms: { db } }: TestCore) =>
  (({ cursor: _, ...digest }) => digest)(await digestState(db));
const statusOf = async (core: TestCore, { itemHash }: Signed) =>
  (await core.get(`/messages/${itemHash}/status`)).body.status as string;

/** Also once all keys are read again. */
async function haveSameSets(cores: readonly TestCore[]): Promise<void> {
  const printsOf = ({ rooms: { sync } }: TestCore) =>
    [sync.set.index, sync.set.forgotten].map((set) => set.fingerprint(0, set.size));
  const followed = cores.map(printsOf);
  for (const one of followed) assert.deepEqual(one, followed[0]);
  await Promise.all(cores.map(({ rooms }) => rooms.sync.load()));
  assert.deepEqual(cores.map(printsOf), followed);
}

/** The skeleton of a message that a node has, as the liar tells of it. */
async function lieAbout({ rooms: { db } }: TestCore, { itemHash }: Signed, said: Partial<StoredMessage>) {
  const row = await db
    .selectFrom('messages')
    .selectAll()
    .where('item_hash', '=', itemHash)
    .executeTakeFirstOrThrow();
  return erasedText({ ...row, ...said });
}

for (const [name, { of, said, signed }] of Object.entries(LIES))
  for (const form of of)
    test(`a node that a peer told that a message ${name} has it from an honest one (${form})`, async () => {
      await using stack = new AsyncDisposableStack();
      const honest = stack.use(await createTestCore());
      const joining = stack.use(await createTestCore({ peers: [linkTo('honest', () => honest)] }));
      const live = signLive(form);
      const own = sign({ type: 'POST', content: { type: 'note', content: 'bait' } }, bob);
      await post(honest, live);
      const lies = [own, ...signed(live, own)];
      await keep(joining, [await lieAbout(honest, live, said(own)), ...lies.map(({ body }) => body)]);
      assert.equal(await statusOf(joining, live), 'forgotten');
      await keep(
        honest,
        lies.map(({ body }) => body),
      );
      assert.equal(await statusOf(honest, live), 'processed');
      await meet(joining);
      assert.equal(await statusOf(joining, live), 'processed');
      assert.deepEqual(await digestOf(joining), await digestOf(honest));
      await haveSameSets([joining, honest]);
    });

/** A node that was told of a message what is not so, and another one that has its text. */
async function createLiedTo(stack: AsyncDisposableStack, change: (link: PeerLink) => PeerLink) {
  const honest = stack.use(await createTestCore());
  const joining = stack.use(await createTestCore({ peers: [change(linkTo('honest', () => honest))] }));
  const live = signLive('envelope');
  assert.equal((await honest.post('/messages', live.body)).status, 200);
  const forget = forgets(live);
  const lie = await lieAbout(honest, live, { sender: bob.address, owner: bob.address });
  await keep(joining, [lie, forget.body]);
  await keep(honest, [forget.body]);
  return { honest, joining, live, forget };
}

test('whoever has the text puts it right by sending it again', async () => {
  await using stack = new AsyncDisposableStack();
  const { honest, joining, live, forget } = await createLiedTo(stack, (link) => link);
  // The FORGET of the liar is in force until it is decided again.
  assert.equal((await joining.post('/messages', live.body)).status, 410);
  await joining.rooms.pipeline.idle();
  assert.deepEqual(
    [await statusOf(joining, live), await statusOf(joining, forget)],
    ['processed', 'rejected'],
  );
  assert.deepEqual(await digestOf(joining), await digestOf(honest));
});

test('a peer of an earlier release is not asked what is forgotten, and a text that is rightly forgotten is asked of nobody', async () => {
  await using stack = new AsyncDisposableStack();
  const asked: string[] = [];
  const watch =
    (isOld: boolean) =>
    (link: PeerLink): PeerLink => ({
      ...link,
      greet: async (given) => {
        const { forgotten, ...greeting } = await link.greet(given);
        return isOld ? greeting : { ...greeting, forgotten };
      },
      askRanges: (question, given, of) => {
        if (of) asked.push(of);
        return link.askRanges(question, given, of);
      },
      fetchMessages: (keys, given) => {
        asked.push('messages');
        return link.fetchMessages(keys, given);
      },
    });
  const { joining, live } = await createLiedTo(stack, watch(true));
  await meet(joining);
  assert.equal(await statusOf(joining, live), 'forgotten');
  assert.deepEqual(asked, []);

  const honest = stack.use(await createTestCore());
  const reader = stack.use(await createTestCore({ peers: [watch(false)(linkTo('honest', () => honest))] }));
  const post = signLive('envelope');
  const forget = sign({ type: 'FORGET', content: { hashes: [post.itemHash] } });
  for (const { body } of [post, forget]) assert.equal((await honest.post('/messages', body)).status, 200);
  await honest.rooms.pipeline.idle();
  await keep(reader, [await lieAbout(honest, post, {}), forget.body]);
  await meet(reader);
  assert.deepEqual(asked, ['forgotten']);
  // Nor is it kept where somebody sends it.
  assert.equal((await reader.post('/messages', post.body)).status, 410);
  const { body } = await reader.get(`/messages/${post.itemHash}`);
  assert.deepEqual([body.status, body.content ?? null], ['forgotten', null]);
  await haveSameSets([reader, honest]);
});

test('a peer that cannot compare what is forgotten is in step all the same, and the status says what failed', async () => {
  await using stack = new AsyncDisposableStack();
  let fails: string | undefined = 'UPSTREAM_UNAVAILABLE';
  const { honest, joining, live } = await createLiedTo(stack, (link) => ({
    ...link,
    askRanges: async (question, given, of) => {
      if (of && fails) throw new AppError(fails as 'PEER_MISBEHAVED', 'no comparison');
      return await link.askRanges(question, given, of);
    },
  }));
  const told = async () => {
    const { state, peers } = joining.rooms.sync.syncer.view();
    const { failure, forgotten_failure, forgotten_ms, points } = peers[0]!;
    return [state, peers[0]!.state, failure, forgotten_failure, forgotten_ms !== null, points];
  };
  await honest.send(alice, { type: 'POST', content: { type: 'note', content: 'another one' } });
  await meet(joining);
  assert.deepEqual(await told(), ['synced', 'synced', null, 'UPSTREAM_UNAVAILABLE', false, 0]);
  assert.equal(joining.rooms.sync.set.size, honest.rooms.sync.set.size);
  // What is no answer is held against it as ever.
  fails = 'PEER_MISBEHAVED';
  await meet(joining);
  assert.deepEqual(await told(), ['synced', 'synced', null, 'PEER_MISBEHAVED', false, 20]);
  fails = undefined;
  await meet(joining);
  assert.equal(await statusOf(joining, live), 'processed');
  assert.deepEqual((await told()).slice(0, 5), ['synced', 'synced', null, null, true]);
});

test('two nodes name what only one of them has forgotten, and of what they tell otherwise whose it was', async () => {
  await using stack = new AsyncDisposableStack();
  const { honest, joining, live } = await createLiedTo(stack, (link) => link);
  const other = sign({ type: 'POST', content: { type: 'note', content: 'forgotten' } });
  const skeletons: string[] = [];
  assert.equal((await honest.post('/messages', other.body)).status, 200);
  for (const said of [{}, { sender: bob.address, owner: bob.address }])
    skeletons.push(await lieAbout(honest, other, said));
  const forgetting = [forgets(other), sign({ type: 'FORGET', content: { hashes: [other.itemHash] } })];
  await keep(joining, [skeletons[1]!, ...forgetting.map(({ body }) => body)]);
  await keep(
    honest,
    forgetting.map(({ body }) => body),
  );
  const urls = [await honest.listen(), await joining.listen()] as const;
  const { onlyFirst, onlySecond, forgotten } = await diffNodes(...urls);
  assert.deepEqual([onlyFirst, onlySecond], [[], []]);
  const hashes = (some: readonly { readonly hash: string }[]) => some.map(({ hash }) => hash);
  assert.deepEqual(
    Object.entries(forgotten!).map(([name, some]) => [name, hashes(some)]),
    [
      ['onlyFirst', []],
      ['onlySecond', [live.itemHash]],
      ['otherwise', [other.itemHash]],
    ],
  );
});

test('of a content that is a file no other bytes count, and the next peer that has it is asked', async () => {
  await using stack = new AsyncDisposableStack();
  const honest = stack.use(await createTestCore());
  const opened: string[] = [];
  const linkFrom = (name: string, bytes?: string): PeerLink => {
    const link = linkTo(name, () => honest);
    return {
      ...link,
      openFile: async (hash, given) => {
        opened.push(name);
        if (bytes === undefined) return link.openFile!(hash, given);
        return bytes === '' ? undefined : { stream: Readable.from([Buffer.from(bytes)]), contentType: 'a/b' };
      },
    };
  };
  const peers = [linkFrom('none', ''), linkFrom('other', '{"of":"nobody"}'), linkFrom('good')];
  const joining = stack.use(await createTestCore({ peers }));
  const live = signLive('file');
  await post(honest, live);
  const lies = signsForLiar(live).map(({ body }) => body);
  await keep(joining, [await lieAbout(honest, live, { owner: bob.address }), ...lies]);
  await keep(honest, lies);
  assert.equal(await statusOf(joining, live), 'forgotten');
  await meet(joining);
  assert.deepEqual(opened, ['none', 'other', 'good']);
  assert.equal(await statusOf(joining, live), 'processed');
  assert.deepEqual(await digestOf(joining), await digestOf(honest));
  const files = await joining.rooms.db.selectFrom('files').select('hash').execute();
  assert.deepEqual(files, [{ hash: live.itemHash }]);
  assert.deepEqual(
    joining.rooms.sync.syncer
      .view()
      .peers.map(({ failure, forgotten_failure }) => failure ?? forgotten_failure),
    [null, null, null],
  );
});

test('a peer that answers a question by name with what nobody asked for has misbehaved, and nothing of it is kept', async () => {
  await using stack = new AsyncDisposableStack();
  const unasked = sign({ type: 'POST', content: { type: 'note', content: 'unasked' } });
  const { joining, live } = await createLiedTo(stack, (link) => ({
    ...link,
    fetchMessages: async () => [Buffer.from(unasked.body)],
  }));
  const { size } = joining.rooms.sync.set;
  await meet(joining);
  const { forgotten_failure, points } = joining.rooms.sync.syncer.view().peers[0]!;
  assert.deepEqual([forgotten_failure, points], ['PEER_MISBEHAVED', 20]);
  assert.equal(joining.rooms.sync.set.size, size);
  assert.equal(await statusOf(joining, live), 'forgotten');
});
