// Honest users beside a hostile population, on a network of some core and two compute nodes. Run by strangers.*.test.ts in a
// network namespace of its own: every client has an address of its own there, and none is exempt from a limit.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { CoreClient, call, createSigner, generatePrivateKey, type Signer } from '@skerry/client';
import { loadOrCreateKeyFile, skerryPaths } from '@skerry/kit';
import { hostnameOf, type InstanceView, sha256Hex } from '@skerry/protocol';
import { STATE_API } from '@skerry/protocol/api/core/state';
import { readEnvironment } from '../../config.ts';
import { end, startNetwork } from '../network.ts';
import { startDaemon } from '../parts.ts';
import { playAt } from '../processes.ts';
import { say, succeed, until } from '../shell.ts';
import { createCaller } from './ask.ts';
import { follower, keeper, owner, runner, writer } from './honest.ts';
import { fetcher, hammer, sleeper, streamHolder, uploader } from './hostile-clients.ts';
import { backdater, liarNode, liarStatus, replayer, revokedDelegate, wanter } from './hostile-messages.ts';
import type { Actor, Places, Stage } from './places.ts';
import { renderRun } from './render.ts';
import { Tally } from './tally.ts';
import { type Sample, takeSample } from './watch.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    quiet: { type: 'string', default: '60' },
    machines: { type: 'string', default: '2' },
    cores: { type: 'string', default: '3' },
  },
});
const HOSTILE_MS = Number(values.seconds) * 1000;
const QUIET_MS = Number(values.quiet) * 1000;
const MACHINES = Number(values.machines);

const LOCAL_CORE = 'http://127.0.0.1:4024';
/** Not loopback: whoever comes from here is a stranger (RFC 5737, TEST-NET-2; it leads nowhere in this namespace). */
const NODE_ADDRESS = '198.51.100.1';
const clientAddress = (at: number) => `198.51.100.${10 + at}`;
const CLIENTS = 40;
const CORE_PORTS = [4024, 4124, 4224].slice(0, Number(values.cores));
const SECOND_COMPUTE_PORT = 4120;
const MACHINE_IMAGE = 'debian:12';
const MACHINE_MS = 600_000;
const AGREE_MS = 600_000;
const SAMPLE_EVERY_MS = 15_000;
/** In a shorter run some may still be waiting for their turn. */
const JUDGED_MS = 60_000;
/** The mean of the last third of the run's samples over that of the third before it. */
const MEMORY_GROWTH_MAX = 1.35;
/** Of logs, for each second, all daemons together. */
const LOG_BYTES_PER_SECOND_MAX = 16 * 1024;

const home = await mkdtemp(join(tmpdir(), 'skerry-strangers-'));
Object.assign(process.env, {
  SKERRY_HOME: home,
  SKERRY_CACHE: skerryPaths(readEnvironment()).cache,
  SKERRY_CORE_HOST: '0.0.0.0',
  SKERRY_COMPUTE_HOST: '0.0.0.0',
});
const core = (signer: Signer) => new CoreClient({ url: LOCAL_CORE, signer });
const newSigner = () => createSigner(generatePrivateKey());

const places: Places = {
  cores: CORE_PORTS.map((port) => `http://${NODE_ADDRESS}:${port}`),
  computes: [4020, SECOND_COMPUTE_PORT].map((port) => `http://${NODE_ADDRESS}:${port}`),
  gatewayApi: 'http://127.0.0.1:8081',
  scheduler: 'http://127.0.0.1:4030',
};

async function addAddresses(): Promise<void> {
  await succeed('ip', 'link', 'set', 'lo', 'up');
  const all = [NODE_ADDRESS, ...Array.from({ length: CLIENTS }, (_, at) => clientAddress(at))];
  for (const address of all) await succeed('ip', 'address', 'add', `${address}/32`, 'dev', 'lo');
}

/** Makes a machine and waits until it has an address: booting it is not what is tested here. */
async function createMachine(signer: Signer, name: string): Promise<InstanceView> {
  const client = core(signer);
  const { instance_id } = await client.createInstance({
    name,
    cpu: 1,
    memory: 512,
    disk: 4,
    image: MACHINE_IMAGE,
    ssh_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1zK0mPpV6c9nZ0Zc0YwQx1m3rXo2bVJm7y9yqzvWcS owner',
    firewall: { allowedPorts: [22] },
  });
  let view = await client.getInstance(instance_id);
  await until(`${name} runs`, MACHINE_MS, async () => {
    view = await client.getInstance(instance_id);
    assert.notEqual(view.phase, 'failed', JSON.stringify(view.reason));
    return view.phase === 'running';
  });
  return view;
}

/** A file that no machine boots: where honest users have none, booting those of strangers would be most of a short run. */
async function storeNoDisk(signer: Signer): Promise<string> {
  const bytes = 'no disk';
  await core(signer).storeFile(new Blob([bytes]), 'disk', sha256Hex(bytes));
  return sha256Hex(bytes);
}

/** Lets a delegate act and takes the permission back: what it made meanwhile stays. */
async function grantAndRevoke(victim: Signer, delegate: Signer): Promise<number> {
  const client = core(victim);
  const write = (authorizations: unknown[], timestamp: number) =>
    client.postMessage({
      type: 'AGGREGATE',
      content: { key: 'security', content: { authorizations } },
      timestamp,
    });
  const grantedAt = Math.floor(Date.now() / 1000) - 120;
  await write([{ address: delegate.address }], grantedAt);
  await write([], grantedAt + 60);
  return grantedAt;
}

const digestOf = async (port: number) => {
  const { messages, derived } = await call(`http://127.0.0.1:${port}`, STATE_API.getStateDigest, {});
  return JSON.stringify({ messages, derived });
};

/** All core nodes end in one state. */
async function expectAgreement(): Promise<void> {
  let digests: string[] = [];
  await until('all core nodes have one digest', AGREE_MS, async () => {
    digests = await Promise.all(CORE_PORTS.map(digestOf));
    return new Set(digests).size === 1;
  });
}

let nextClient = 0;

function enter(actor: Actor, tally: Tally, signal: AbortSignal, stack: DisposableStack): Promise<void> {
  assert.ok(nextClient < CLIENTS, 'every actor has an address of its own');
  const caller = stack.use(createCaller(clientAddress(nextClient++)));
  const stage: Stage = {
    places,
    tally,
    caller,
    signer: newSigner(),
    signal,
    pause: (ms) =>
      new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', done);
          resolve();
        };
        const timer = setTimeout(done, ms * (0.5 + Math.random()));
        signal.addEventListener('abort', done);
      }),
  };
  return actor.run(stage).catch((error) => {
    if (!signal.aborted) tally.fault(actor.who, 'the actor itself', String(error));
  });
}

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Everybody who was to come has come: strangers who tried nothing, or honest users who asked nothing, show nothing. */
function expectEverybody(tally: Tally, honest: readonly Actor[], hostile: readonly Actor[]): void {
  if (HOSTILE_MS < JUDGED_MS) return;
  const rows = { honest: tally.honestRows('hostile'), hostile: tally.hostileRows() };
  const came = new Set(
    [...rows.honest, ...rows.hostile].filter(({ tried }) => tried > 0).map(({ who }) => who),
  );
  const missing = [...honest, ...hostile].map(({ who }) => who).filter((who) => !came.has(who));
  assert.deepEqual(missing, [], 'these did nothing');
}

/** @returns what was measured, in words */
function expectBounded(samples: readonly Sample[]): string {
  const third = Math.floor(samples.length / 3);
  if (third < 2) return 'memory and logs are not judged in so short a run';
  const mean = (part: readonly Sample[]) => part.reduce((sum, one) => sum + one.memoryMib, 0) / part.length;
  const growth = mean(samples.slice(-third)) / mean(samples.slice(third, 2 * third));
  assert.ok(growth < MEMORY_GROWTH_MAX, `memory grew by ${growth.toFixed(2)} over the last two thirds`);
  const [first, last] = [samples[0]!, samples.at(-1)!];
  const rate = ((last.logBytes - first.logBytes) / (last.atMs - first.atMs)) * 1000;
  assert.ok(rate < LOG_BYTES_PER_SECOND_MAX, `logs grew by ${Math.round(rate)} bytes a second`);
  return `memory of the last third ${growth.toFixed(2)} of the one before, logs ${Math.round(rate)} bytes a second`;
}

async function scenario(): Promise<void> {
  await addAddresses();
  const second = await loadOrCreateKeyFile(join(home, 'second-compute', 'key'));
  const up = await startNetwork('--cores', values.cores, '--hour', '20s');
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => {
    await end(up, 'SIGINT');
  });
  stack.use(
    await startDaemon('compute', {
      SKERRY_COMPUTE_DATA_DIR: join(home, 'second-compute'),
      SKERRY_COMPUTE_PORT: String(SECOND_COMPUTE_PORT),
      SKERRY_COMPUTE_CORE_URL: LOCAL_CORE,
      SKERRY_COMPUTE_ANNOUNCE_URL: `http://127.0.0.1:${SECOND_COMPUTE_PORT}`,
    }),
  );
  say(
    `${values.cores} core and two compute nodes run; the second compute node is ${createSigner(second).address}`,
  );

  const victim = newSigner();
  const machines: InstanceView[] = [];
  for (let n = 0; n < MACHINES; n++) machines.push(await createMachine(victim, `m${n}`));
  say(`${machines.length} machines run`);
  const image = MACHINES > 0 ? MACHINE_IMAGE : await storeNoDisk(victim);
  const delegate = newSigner();
  const grantedAt = await grantAndRevoke(victim, delegate);
  const { item_hash: note } = await core(victim).postMessage({
    type: 'POST',
    content: { type: 'note', content: { of: 'the victim' } },
  });
  const hashes = [note, ...machines.map(({ instance_id }) => instance_id)];

  const tally = new Tally();
  const callers = stack.use(new DisposableStack());
  const [honestEnd, hostileEnd] = [new AbortController(), new AbortController()];
  const honest: Actor[] = [
    ...Array.from({ length: 4 }, (_, at) => writer(at)),
    ...Array.from({ length: 2 }, (_, at) => keeper(at)),
    ...Array.from({ length: 3 }, (_, at) => follower(at)),
    runner(0),
    runner(1),
    ...machines.map((machine, at) =>
      owner(at, machine.instance_id, hostnameOf(machine.instance_id), machine.ipv6),
    ),
  ];
  const honestOnes = honest.map((actor) => enter(actor, tally, honestEnd.signal, callers));
  await after(QUIET_MS);

  tally.phase = 'hostile';
  const prefix = `${machines[0]?.ipv6.split(':').slice(0, 4).join(':') ?? 'fd00:0:0:1'}::/64`;
  const hostile: Actor[] = [
    revokedDelegate({ victim, delegate, grantedAt, hashes }),
    backdater(image),
    liarNode(
      [
        LOCAL_CORE,
        'http://127.0.0.1:4020',
        'http://127.0.0.1:4030',
        'http://[::1]:8081',
        'http://198.51.100.1:9',
      ],
      [prefix, '::/64', '2002:7f00:1::/64', '64:ff9b:1:7f00::/64', 'fd00::/64'],
    ),
    liarStatus(hashes.slice(1).length > 0 ? hashes.slice(1) : [randomBytes(32).toString('hex')]),
    wanter,
    replayer,
    ...CORE_PORTS.map((_, at) => streamHolder(at)),
    uploader(0),
    uploader(1),
    sleeper(0),
    sleeper(1),
    fetcher(0),
    fetcher(1),
    hammer(0),
    hammer(1),
  ];
  const hostileOnes = hostile.map((actor) => enter(actor, tally, hostileEnd.signal, callers));
  const samples: Sample[] = [];
  const untilMs = Date.now() + HOSTILE_MS;
  while (Date.now() < untilMs) {
    samples.push(takeSample(home));
    say(
      `${Math.round((untilMs - Date.now()) / 1000)} s to go, ${tally.wrongCount} faults, ${samples.at(-1)!.memoryMib} MiB`,
    );
    await after(Math.min(SAMPLE_EVERY_MS, Math.max(0, untilMs - Date.now())));
  }
  samples.push(takeSample(home));
  honestEnd.abort();
  hostileEnd.abort();
  await Promise.all([...honestOnes, ...hostileOnes]);
  console.log(renderRun(tally, samples));
  for (const { who, what, why } of tally.wrong) console.log(`FAULT: ${who}, ${what}: ${why}`);

  await expectAgreement();
  say('all core nodes have one digest');
  for (const hash of hashes) {
    const { status } = await new CoreClient({ url: LOCAL_CORE }).getMessageStatus(hash);
    assert.equal(status, 'processed', `${hash} is still there`);
  }
  expectEverybody(tally, honest, hostile);
  assert.equal(tally.wrongCount, 0, 'no honest request was refused or wrong');
  say(expectBounded(samples));
}

await playAt(home, scenario);
