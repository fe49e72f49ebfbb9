import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { Standing } from './standing.ts';

test('a core node that has yet to reach its peers is a warning once a start is over; one that trusts nobody at once', async () => {
  const lines: { readonly level: number; readonly msg: string }[] = [];
  const log = createLogger('credit', 'info', { write: (line) => void lines.push(JSON.parse(line)) });
  let [uptimeMs, isTrusted] = [1_000, true];
  let lag: string | null = 'the core node has not reached any of its peers yet';
  const network = {
    address: '0x1',
    isTrusted: async () => isTrusted,
    findLag: async () => lag,
  };
  const standing = new Standing(network, log, () => uptimeMs);
  const told = async () => {
    lines.length = 0;
    const isWell = await standing.check();
    return [isWell, ...lines.map(({ level }) => level)];
  };
  assert.deepEqual([await told(), await told()], [[false, 30], [false]]);
  assert.match(standing.troubles[0]!, /^nothing is charged, .* reached any of its peers yet$/);
  uptimeMs = 60_000;
  assert.deepEqual([await told(), await told()], [[false, 40], [false]]);
  lag = null;
  assert.deepEqual([await told(), standing.troubles], [[true], []]);
  [uptimeMs, isTrusted] = [1_000, false];
  assert.deepEqual(await told(), [false, 40]);
});
