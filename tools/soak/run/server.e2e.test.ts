import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { ROOT } from '../../source.ts';

/** As `npm run soak` runs it, with a database server of its own. */
const SOAK = `import { runSoakHere } from './tools/soak/run/here.ts';
import { soakOrders } from './tools/soak/orders.ts';
await runSoakHere(() => soakOrders({ seconds: 1, seed: 1, seeds: 1 }), 0);
process.exit();`;

test('a soak whose database server is its own ends it, and is not said to have left it behind', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', SOAK], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, SKERRY_TEST_DATABASE_URL: undefined },
  });
  assert.equal(status, 0, `${stdout}${stderr}`);
  assert.match(stdout, /1 worlds from 1 on/);
});
