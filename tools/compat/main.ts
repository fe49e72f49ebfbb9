import { parseArgs } from 'node:util';
import { type Result, tryCall } from './call.ts';
import { CALLS } from './calls/index.ts';
import { startNetwork } from './network.ts';
import { installSdk, openSdk } from './sdk.ts';
import { countOutcomes, renderResults } from './table.ts';
import { createWorld } from './world.ts';

/**
 * `npm run compat [-- PART ...] [--json] [--offline]`: makes every call that the deployed network's SDK offers against a
 * network of this repository. PART is a part of a call's name; what it needs of earlier calls must be among them. With
 * `--offline` the packages are those that were installed last; with `--core URL [--compute URL]` the network is that one.
 */
const { values, positionals } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    offline: { type: 'boolean', default: false },
    core: { type: 'string' },
    compute: { type: 'string' },
  },
  allowPositionals: true,
});
const isWanted = (name: string) =>
  positionals.length === 0 || positionals.some((part) => name.includes(part));

// The SDK warns and logs on its own account; what is asked for is the table.
const silent = { log: console.log, warn: console.warn, error: console.error };
const say = (text: string) => void process.stderr.write(`${text}\n`);

if (!values.offline) await installSdk();
const sdk = openSdk();
say(
  `SDK: ${Object.entries(sdk.versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(', ')}`,
);
const { core, compute } = values;
await using network =
  core === undefined ? await startNetwork() : { core, compute, async [Symbol.asyncDispose]() {} };
say(`network: ${network.core}`);
const world = createWorld(sdk, network);
Object.assign(console, { log: () => {}, warn: () => {}, error: () => {} });
const results: Result[] = [];
for (const call of CALLS.filter(({ name }) => isWanted(name))) results.push(await tryCall(call, world));
Object.assign(console, silent);

const counts = countOutcomes(results);
process.stdout.write(
  values.json
    ? `${JSON.stringify({ sdk: sdk.versions, counts, results }, null, 2)}\n`
    : renderResults(results, counts),
);
process.exitCode = counts.fails === 0 ? 0 : 1;
