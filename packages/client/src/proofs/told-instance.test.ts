import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instanceViewOf, readInstanceMessage, sharedText } from '@skerry/protocol';
import { PLANNED_INSTANCE } from '@skerry/protocol/api/examples/values';
import { buildStoredMessage } from '../network-message.ts';
import { wordsOnUnproven } from '../recomputed-verdict.ts';
import { verifyListed } from '../signed-message.ts';
import { answering } from '../testing/answering.ts';
import {
  ALONE,
  id,
  MESSAGE,
  made,
  message,
  missing,
  NOBODY,
  owner,
  T0,
  view,
} from '../testing/made-instance.ts';
import { proveToldInstance, READ_ALONE_MAX } from './told-instance.ts';

const inList = { ...view, shared: [null] };
const saying = (lie: object) => ({ ...inList, ...lie });
const alone = { ...inList, sources: [id] };
const budget = () => ({ left: READ_ALONE_MAX });

test('an instance whose message a list lacks is proven by the message itself, or refuted', async () => {
  await using node = await answering({ [ALONE]: [alone], [MESSAGE]: [message] });
  const prove = (told: typeof inList) => proveToldInstance({ coreUrl: node.url }, told, NOBODY, budget());
  assert.deepEqual(await prove(inList), { kind: 'proven', verified: 1 });
  // Of one that was asked for by itself, nothing is asked again.
  const before = node.asked.length;
  assert.equal((await prove(alone)).kind, 'proven');
  assert.deepEqual([...new Set(node.asked.slice(before).map((path) => path.split('?')[0]))], [MESSAGE]);

  await using liar = await answering({ [ALONE]: [{ ...alone, cpu: 7 }], [MESSAGE]: [message] });
  const lie = await proveToldInstance({ coreUrl: liar.url }, saying({ cpu: 7 }), NOBODY, budget());
  assert.deepEqual(lie, { kind: 'wrong', verified: 1, why: 'cpu is 7, signed was 1' });
});

test('an instance whose message is a file and came late has the date that nodes pass on', async () => {
  const { address: _, time: __, ...planned } = PLANNED_INSTANCE;
  const draft = { type: 'INSTANCE', content: planned, channel: made.channel!, time: T0 };
  const stored = buildStoredMessage(draft, owner);
  const listed = { ...JSON.parse(stored.body).message, content: JSON.parse(stored.content) };
  const shared = JSON.stringify({ message: JSON.parse(stored.body).message, noted_ms: (T0 + 3_600) * 1_000 });
  const noted = { ...(await verifyListed({ coreUrl: '' }, { ...listed, shared })), content: listed.content };
  const late = instanceViewOf(readInstanceMessage(noted)!.fold.apply(undefined, NOBODY)!);
  assert.equal(late.effective_at, T0 + 3_600);
  const waits = {
    ...listed,
    time: new Date(T0 * 1_000).toISOString(),
    reception_time: message.reception_time,
  };
  const answer = { ...message, item_hash: stored.itemHash, signature: listed.signature, messages: [waits] };
  await using node = await answering({ [`/api/v0/messages/${stored.itemHash}`]: [answer] });
  const told = { ...late, shared: [shared], sources: [stored.itemHash] };
  const proof = await proveToldInstance({ coreUrl: node.url }, told, NOBODY, budget());
  assert.deepEqual(proof, { kind: 'proven', verified: 1 });
});

test('an instance whose message is too long for lists and came late has the date that nodes pass on', async () => {
  const noted = { ...made, notedMs: (T0 + 3_600) * 1_000 };
  const late = instanceViewOf(readInstanceMessage(noted)!.fold.apply(undefined, NOBODY)!);
  assert.equal(late.effective_at, T0 + 3_600);
  await using node = await answering({ [MESSAGE]: [{ ...message, shared: sharedText(noted) }] });
  const told = { ...late, shared: [null], sources: [id] };
  const proof = await proveToldInstance({ coreUrl: node.url }, told, NOBODY, budget());
  assert.deepEqual(proof, { kind: 'proven', verified: 1 });
  // A node of an older release is not asked for more than it knows.
  const refusal = { status: 'error', code: 'INVALID_PARAMETERS', error: 'query.bodies is unknown' };
  await using older = await answering({ [ALONE]: [alone], [MESSAGE]: [refusal, message] });
  assert.equal((await proveToldInstance({ coreUrl: older.url }, inList, NOBODY, budget())).kind, 'proven');
});

test('an instance that changed meanwhile, and one whose message its node has not, are neither', async () => {
  await using node = await answering({ [ALONE]: [alone], [MESSAGE]: [message] });
  const changed = await proveToldInstance(
    { coreUrl: node.url },
    saying({ name: 'before' }),
    NOBODY,
    budget(),
  );
  assert.deepEqual(changed, { kind: 'unproven', reason: 'changed', verified: 1, by: [] });
  await using without = await answering({ [ALONE]: [alone] }, missing);
  const lacking = await proveToldInstance({ coreUrl: without.url }, inList, NOBODY, budget());
  assert.deepEqual(lacking, { kind: 'unproven', reason: 'missing', verified: 0, by: [] });
  // Of a node of an older release.
  await using older = await answering({ [ALONE]: [inList] });
  const unnamed = await proveToldInstance({ coreUrl: older.url }, inList, NOBODY, budget());
  assert.equal(unnamed.kind === 'unproven' && unnamed.reason, 'missing');
});

test('a node that does not answer is contradicted by nothing', async () => {
  const silent = { status: 'error', code: 'OVERLOADED', error: 'later' };
  await using node = await answering({ [ALONE]: [alone] }, silent);
  await assert.rejects(proveToldInstance({ coreUrl: node.url }, inList, NOBODY, budget()), {
    code: 'OVERLOADED',
  });
});

test('beyond the limit nothing is asked, and that is said with the limit', async () => {
  await using node = await answering({ [ALONE]: [alone], [MESSAGE]: [message] });
  const spent = { left: 1 };
  const proofs = [];
  for (let one = 0; one < 3; one++)
    proofs.push(await proveToldInstance({ coreUrl: node.url }, inList, NOBODY, spent));
  assert.deepEqual(
    proofs.map((proof) => (proof.kind === 'unproven' ? proof.reason : proof.kind)),
    ['proven', 'notChecked', 'notChecked'],
  );
  assert.equal(node.asked.filter((path) => path.startsWith(ALONE)).length, 1);
  const words = wordsOnUnproven({ unproven: { notChecked: 2, changed: 1 } });
  assert.match(words!, /^1 changed while being read; 2 not checked: more than 500 have/);
  assert.equal(wordsOnUnproven({ unproven: {} }), undefined);
});

test('a date later than that of the messages is open: an update that changes nothing gives it', async () => {
  const source = { coreUrl: 'http://127.0.0.1:9' };
  const dated = (updated_at: number) =>
    proveToldInstance(source, saying({ updated_at, shared: [sharedText(made)!] }), NOBODY, budget());
  const later = await dated(T0 + 5);
  assert.equal(later.kind === 'unproven' && later.reason, 'dated');
  assert.equal((await dated(T0 - 5)).kind, 'wrong');
  assert.equal((await dated(T0)).kind, 'proven');
});
