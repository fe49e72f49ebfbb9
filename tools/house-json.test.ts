import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listJsonCasts, listSources, ROOT_PACKAGE, type SourceFile } from './source.ts';

/** Parsed JSON that is taken for a type has come from nowhere else than here: what came over the wire is parsed by its contract. */
const OWN: Readonly<Record<string, string>> = {
  'packages/kit/src/modules/bundles.ts': 'the list that npm ci makes beside the bundles',
  'apps/cli/src/instances/records.ts': 'a file of its own',
  'apps/cli/src/network/terminal.ts': 'log lines of the daemons that it started',
  'apps/cli/src/networks/local.ts': 'a file of its own',
  'devnet/src/chain/chain.ts': 'the chain that it started',
  'devnet/src/chain/state.ts': 'the chain that it started',
  'packages/kit/src/daemon/log-line.ts': 'log lines of the daemons that it started',
  'packages/database/src/embedded/binaries.ts': 'the package of the programs',
  'packages/kit/src/contract/components.ts': 'a schema that it wrote',
  'packages/protocol/src/json/scan.ts': 'text that was scanned: an object, or a string',
  'packages/protocol/src/sync/shared.ts': 'text that another thread verified',
  'services/compute/src/images/convert.ts': 'what qemu-img says',
  'services/compute/src/instances/disks/disks.ts': 'what qemu-img says',
  'services/compute/src/instances/disks/snapshots.ts': 'what qemu-img says',
  'services/compute/src/network/host-ports.ts': 'what nft says',
  'services/compute/src/network/network.ts': 'what ip says',
  'services/compute/src/network/pool.ts': 'what ip says',
  'services/compute/src/network/proof-address.ts': 'what ip says',
  'services/compute/src/network/uplink.ts': 'what ip says',
  'services/core/src/api/json-pick.ts': 'a string that it wrote',
  'services/core/src/intake/stored.ts': 'a message that was verified',
  'services/core/src/state/lists/json-path.ts': 'a string by its pattern',
  'services/credit/src/purchase-store.ts': 'a file of its own',
  'services/monitor/src/hour-store.ts': 'a file of its own',
};

const product = listSources().filter(({ isTest, package: owner }) => !isTest && owner !== ROOT_PACKAGE);
const pathOf = (place: string) => place.replace(/:\d+$/, '');

test('what comes over the wire is parsed, and not taken for a type', () => {
  const places = product.flatMap(listJsonCasts);
  assert.deepEqual(
    places.filter((place) => !Object.hasOwn(OWN, pathOf(place))),
    [],
  );
  const found = new Set(places.map(pathOf));
  assert.deepEqual(
    Object.keys(OWN).filter((path) => !found.has(path)),
    [],
    'these take nothing for a type any more',
  );
});

test('the rule knows a cast in every spelling, and lets through what is still unknown', () => {
  const listIn = (text: string) =>
    listJsonCasts({ ...(product[0] as SourceFile), path: 'a.ts', text: `async () => { ${text} };` });
  for (const text of [
    'const a = JSON.parse(b) as Row;',
    'const a = (await response.json()) as Row;',
    'const a = (JSON.parse(b) ?? {}) as Row;',
    'const a = JSON.parse(b) as unknown as Row;',
    'const a: Row = JSON.parse(b);',
    'const { a } = JSON.parse(b);',
    'const a = await response.json();',
    'use(JSON.parse(b).a);',
    'use((await response.json()).a);',
  ])
    assert.deepEqual(listIn(text), ['a.ts:1'], text);
  for (const text of [
    'const a: unknown = JSON.parse(b);',
    'use(JSON.parse(b));',
    'use(JSON.parse(b) as unknown);',
    'const { a } = fieldsOf(await response.json());',
    'const a = parse(await response.json());',
    'const a = metrics.json(b) as Row;',
  ])
    assert.deepEqual(listIn(text), [], text);
});
