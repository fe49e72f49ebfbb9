import { parseCommand } from '../usage.ts';
import { type Result, tryCall } from './call.ts';
import { CALLS } from './calls/index.ts';
import { startNetwork } from './network.ts';
import { installSdk, isInstalled, openSdk, SDK_DIRECTORY, SDK_PACKAGES } from './sdk.ts';
import { countOutcomes, renderResults } from './table.ts';
import { createWorld } from './world.ts';

const USAGE = `npm run compat [-- [PART ...] [--json] [--offline] [--core URL [--compute URL]]]

Makes every call that the deployed network's SDK offers against a network of this repository, and
prints which of them work. Ends with 1 if one fails. PART is a part of a call's name, for those calls
alone; what they need of earlier calls must be among them.

The newest SDK comes from the npm registry, with what it asks its users to install, into
  ${SDK_DIRECTORY}
which the repository does not use for anything else. Its install scripts are not run.
  ${SDK_PACKAGES.join('\n  ')}

  --json          the versions, the counts and every result as JSON
  --offline       the packages that were installed last
  --core URL      a core node that is running already, in the place of a new network
  --compute URL   a compute node beside it; without one, the calls that need it fail
  -h, --help      this text`;
const { values, positionals } = parseCommand(USAGE, {
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

const calls = CALLS.filter(({ name }) => isWanted(name));
if (calls.length === 0) {
  console.error(`no call has one of these in its name: ${positionals.join(', ')}`);
  process.exit(2);
}

// The SDK warns and logs on its own account; what is asked for is the table.
const silent = { log: console.log, warn: console.warn, error: console.error };
const say = (text: string) => void process.stderr.write(`${text}\n`);

if (!values.offline) {
  say(`installing ${SDK_PACKAGES.length} packages of the SDK from npm in ${SDK_DIRECTORY}`);
  say('(minutes the first time; --offline uses those that are there)');
  await installSdk();
}
if (!isInstalled()) {
  console.error(`there is no SDK in ${SDK_DIRECTORY}; run this once without --offline`);
  process.exit(1);
}
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
for (const call of calls) results.push(await tryCall(call, world));
Object.assign(console, silent);

const counts = countOutcomes(results);
process.stdout.write(
  values.json
    ? `${JSON.stringify({ sdk: sdk.versions, counts, results }, null, 2)}\n`
    : renderResults(results, counts),
);
process.exitCode = counts.fails === 0 ? 0 : 1;
