import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { createTestCore } from '../../testing/core.ts';
import type { PeerTrust } from './ask.ts';
import { decideTrust, type Told } from './decide.ts';
import { Trust } from './trust.ts';

const SETTINGS = {
  schedulers: undefined,
  scoringPublishers: undefined,
  creditPublishers: undefined,
  knownCoreNodes: undefined,
  creditEnforcement: undefined,
};
const unset: Told = { url: 'x', value: [], source: 'unset' };
const MINUTE_MS = 60_000;

test('of a peer that answered and hangs now nobody says that it has not answered yet', () => {
  const problemOf = (facts: Partial<Parameters<typeof decideTrust>[0]>) =>
    decideTrust({ given: undefined, held: undefined, told: [], peers: 2, hasWaited: true, ...facts }).problem;
  assert.equal(problemOf({}), 'it is not set, and no peer has answered yet');
  assert.equal(problemOf({ hasHeard: true }), 'it is not set, and no peer answers any more');
  assert.equal(
    problemOf({ hasHeard: true, told: [unset] }),
    'it is not set, and only 1 of 2 peers answer, none of which knows it',
  );
});

test('that peers do not answer yet is no warning while a node starts, and one for each list after it', async () => {
  await using core = await createTestCore({ trust: SETTINGS });
  const { db } = core.rooms;
  const said: { readonly trust?: string; readonly msg: string }[] = [];
  const log = createLogger('core', 'warn', { write: (line) => void said.push(JSON.parse(line)) });
  let nowMs = 5_000;
  const given = {
    scoring_publishers: [],
    credit_publishers: [],
    known_core_nodes: [],
    credit_enforcement: [],
  };
  const trust = await Trust.open({ db, given, peers: 1, uptime: () => nowMs, log });
  const hear = async (...told: PeerTrust[]) => {
    said.length = 0;
    await trust.hear(told);
    return said.filter((line) => line.trust === 'schedulers').map(({ msg }) => msg);
  };
  assert.deepEqual(await hear(), []);
  // Whoever asks how the node is hears of it all the same.
  assert.match(trust.problem()!, /^schedulers: it is not set, and no peer has answered yet;/);
  nowMs += MINUTE_MS;
  assert.match((await hear())[0]!, /no peer has answered yet/);
  assert.deepEqual(await hear(), []);
  assert.deepEqual(await hear({ schedulers: unset }), []);
  assert.match((await hear())[0]!, /no peer answers any more/);
});
