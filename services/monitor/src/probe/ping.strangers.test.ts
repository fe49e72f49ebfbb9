import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serving } from '@skerry/kit/testing/serving';
import { DIAGNOSTIC_VM } from '@skerry/protocol';
import { nodeAt, probeOptionsOf } from '../testing/scene.ts';
import { measureNode } from './measure.ts';

test('S18: the ping goes to the diagnostic machine in the network of the node, and is published', async () => {
  await using node = await serving((request, response) => {
    response.statusCode = request.url === '/about/login' ? 401 : 200;
    response.setHeader('server', 'skerry/1.0.0');
    response.end('{"networking": {"IPV6_ADDRESS_POOL": "2001:db8:5:1::/64"}}');
  });
  const pinged: string[] = [];
  const measure = (mayReach: (address: string) => boolean) =>
    measureNode(
      nodeAt('compute', `${node.url}/`),
      probeOptionsOf({
        diagnosticVm: DIAGNOSTIC_VM,
        mayReach,
        ping: async (address) => {
          pinged.push(address);
          return 0.002;
        },
      }),
    );
  const record = await measure(() => true);
  assert.deepEqual(pinged, ['2001:db8:5:1:1:63fa:f8b5:db11']);
  assert.equal(record.diagnostic_vm_ping_latency, 0.002);
  // A network that the monitor would not ask for anything else is not pinged either.
  const silent = await measure((address) => !address.startsWith('2001:db8:'));
  assert.equal(silent.diagnostic_vm_ping_latency, undefined);
  assert.equal(pinged.length, 1);
});
