import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { serving } from '@skerry/kit/testing/serving';
import { SCHEDULER_EXAMPLES } from '@skerry/protocol/api/examples/scheduler';
import fc from 'fast-check';
import { decideRole, type HeardPeer, Leadership, type Role, type Standpoint } from './leadership.ts';
import { parseScores } from './scores.ts';

const TAKEOVER_MS = 10_000;
const at = (nowMs: number, startedMs = 0) => ({ nowMs, startedMs, takeoverMs: TAKEOVER_MS });
const standpoint = (address: string, role: Role, sinceMs = 0, canLead = true): Standpoint => ({
  address,
  role,
  sinceMs,
  canLead,
});
const peer = (one: Standpoint | undefined, heardMs: number | undefined = one && 0): HeardPeer => ({
  heardMs,
  standpoint: one,
});

test('alone it leads, whatever it knows', () => {
  assert.equal(decideRole(standpoint('a', 'leader', 0, false), [], at(0)), 'leader');
});

test('beside others: the one that leads goes on, the smallest address begins, and who cannot lead does not', () => {
  const cases: [Standpoint, HeardPeer[], number, Role][] = [
    [standpoint('b', 'standby'), [peer(standpoint('a', 'leader'))], 1, 'standby'],
    [standpoint('b', 'standby'), [peer(standpoint('a', 'leader'))], TAKEOVER_MS, 'leader'],
    [standpoint('b', 'standby'), [peer(standpoint('a', 'standby'))], 1, 'standby'],
    [standpoint('b', 'standby'), [peer(standpoint('a', 'standby', 0, false))], 1, 'leader'],
    [standpoint('a', 'standby'), [peer(standpoint('b', 'standby'))], 1, 'leader'],
    [standpoint('a', 'standby', 0, false), [peer(standpoint('b', 'standby'))], 1, 'standby'],
    [standpoint('a', 'standby'), [peer(undefined)], 1, 'standby'],
    [standpoint('a', 'standby'), [peer(undefined)], TAKEOVER_MS, 'leader'],
    [standpoint('a', 'leader', 5), [peer(standpoint('b', 'leader', 4))], 6, 'standby'],
    [standpoint('b', 'leader', 4), [peer(standpoint('a', 'leader', 5))], 6, 'leader'],
    [standpoint('b', 'leader', 4), [peer(standpoint('a', 'leader', 4))], 6, 'standby'],
    [standpoint('a', 'leader', 4, false), [peer(standpoint('b', 'standby'))], 6, 'standby'],
    // The same list for every scheduler: itself is in it.
    [standpoint('a', 'standby'), [peer(standpoint('a', 'standby'))], 1, 'leader'],
  ];
  for (const [self, peers, nowMs, expected] of cases)
    assert.equal(decideRole(self, peers, at(nowMs)), expected, JSON.stringify([self, peers, nowMs]));
});

test('of schedulers that hear each other and can lead, in the end exactly one leads', () => {
  const one = fc.record({ role: fc.constantFrom<Role>('leader', 'standby'), sinceMs: fc.nat(3) });
  fc.assert(
    fc.property(fc.array(one, { minLength: 1, maxLength: 5 }), (list) => {
      let all = list.map(({ role, sinceMs }, index) => standpoint(`${index}`, role, sinceMs));
      for (let round = 1; round <= all.length + 1; round++) {
        for (const [index, self] of all.entries()) {
          const others = all.filter((other) => other !== self).map((other) => peer(other, 10));
          const role = decideRole(self, others, at(10));
          if (role !== self.role) all = all.with(index, { ...self, role, sinceMs: 10 + round });
        }
      }
      assert.equal(all.filter(({ role }) => role === 'leader').length, 1);
    }),
  );
});

test('published scores are read with care', () => {
  const id = 'a'.repeat(64);
  const rows = [
    { node_id: id, total_score: 0.5 },
    { node_id: id, total_score: 2 },
    { node_id: 'x', total_score: 1 },
    null,
  ];
  assert.deepEqual(
    [...parseScores({ scores: { crn: rows } }, 7)],
    [[id, { score: 0.5, hours: 1, hourSeconds: 3_600, measuredMs: 7_000 }]],
  );
  fc.assert(fc.property(fc.anything(), (value) => void parseScores(value, 0)));
});

test('a leader that falls silent is followed after the time that is set, and learns of it when it is back', async () => {
  const leads = {
    ...(SCHEDULER_EXAMPLES.getSchedulerStatus!.answer as object),
    address: 'a',
    leadership: { role: 'leader', since_ms: 1, can_lead: true, peers: [] },
  };
  let answer: object | undefined = leads;
  await using other = await serving((_, response) =>
    answer ? response.end(JSON.stringify(answer)) : response.destroy(),
  );
  let nowMs = 0;
  const roles: Role[] = [];
  const leadership = new Leadership({
    address: 'b',
    peerUrls: [other.url],
    takeoverMs: TAKEOVER_MS,
    canLead: () => true,
    onRole: (role) => roles.push(role),
    // Set back again and again.
    now: () => 1_000_000 - nowMs,
    uptime: () => nowMs,
    signal: new AbortController().signal,
    log: createLogger('test', 'silent'),
  });
  const leadsAt = async (timeMs: number) => {
    nowMs = timeMs;
    await leadership.refresh();
    return leadership.leads;
  };
  assert.equal(await leadsAt(1_000), false);
  // Who says nothing that a scheduler says is as good as silent.
  answer = { ...leads, leadership: { role: 'king' } };
  assert.equal(await leadsAt(10_999), false);
  assert.equal(await leadsAt(11_000), true);
  answer = leads;
  assert.equal(await leadsAt(12_000), false);
  assert.deepEqual(roles, ['leader', 'standby']);
});
