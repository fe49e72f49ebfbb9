import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOutput } from '../output/output.ts';
import { renderNetwork, renderNetworks } from './shown.ts';

const { table } = createOutput(process.stdout, process.stderr, { json: false, colours: false });

const live = {
  ...{ network: 'ethereum', chain_id: 1, state: 'live' as const, halt: null, progress_at: 1_700_000_000 },
  ...{ head: 9, finalized: 5, indexed: 9, lag: 0, calls: 12 },
};
const endpoint = {
  ...{ name: 'one.example#0', requests: 7, calls: 8, failures: {}, head: 9, resting: false },
  ...{ range_blocks: 100, concurrency: 4 },
};
const contracts = [{ contract: '0xc0', kind: 'events' as const, from_block: 0, to_block: 9, live: true }];

test('of a network it is shown what each of its endpoints does: one that stalls has no other reason to tell', () => {
  const failing = {
    ...endpoint,
    name: 'two.example#1',
    failures: { rate_limited: 71, lie: 1 },
    resting: true,
  };
  const never = { ...endpoint, name: 'three.example#2', head: null, requests: 0 };
  const shown = renderNetwork(
    { ...live, state: 'stalled', contracts, endpoints: [endpoint, failing, never] },
    table,
  );
  assert.match(shown, /^state: stalled$/m);
  const rows = shown.split('\n').map((row) => row.split(/ {2,}/));
  for (const row of [
    ['ENDPOINT', 'HEAD', 'REQUESTS', 'FAILURES', 'AVOIDED'],
    ['one.example#0', '9', '7', 'none', 'no'],
    ['two.example#1', '9', '7', '71 rate_limited, 1 lie', 'yes'],
    ['three.example#2', '-', '0', 'none', 'no'],
  ])
    assert.ok(
      rows.some((one) => one.join() === row.join()),
      `${row.join()} in ${shown}`,
    );
  assert.doesNotMatch(renderNetwork({ ...live, contracts, endpoints: [] }, table), /ENDPOINT/);
});

test('a network that has halted is shown with its code, by which the documentation says what to do', () => {
  const halt = { code: 'REORG_BELOW_FINALITY', message: 'the chain has other blocks' };
  const halted = { ...live, state: 'halted' as const, halt };
  assert.match(
    renderNetwork({ ...halted, contracts, endpoints: [endpoint] }, table),
    /^state: halted \(REORG_BELOW_FINALITY\): the chain has other blocks$/m,
  );
  assert.match(renderNetworks([live, halted], table), /^ethereum +halted \(REORG_BELOW_FINALITY\) +9/m);
});
