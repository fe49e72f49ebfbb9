import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import { findFreePort, skerryPaths } from '@skerry/kit';
import { sha256Hex } from '@skerry/protocol';
import { readEnvironment } from '../config.ts';
import { skerryHere } from './here.ts';
import { startUp } from './parts.ts';
import { listDescendants } from './processes.ts';
import { until } from './shell.ts';

const HOUR = '8s';
/** Only what hangs takes as long. */
const TIMEOUT_MS = 600_000;
const ASK_AGAIN_MS = 500;
/** The node serves domains of owners; no name server answers it. */
const DOMAINS = {
  SKERRY_COMPUTE_DOMAIN_ZONE: 'instance.example.net',
  SKERRY_COMPUTE_DOMAIN_RESOLVERS: '127.0.0.1:9',
};

export interface Row {
  readonly node_id: string;
  readonly total_score: number;
  readonly measurements: { readonly record_count: number };
}

/** Runs a command with a core node, and gives what it printed as JSON. */
export async function ask(url: string, ...args: string[]) {
  const { code, out, err } = await skerryHere(process.env, ['--core', url, '--json', ...args]);
  return { code, err, body: JSON.parse(out || err) };
}

/** Hours of a few seconds keep the whole network busy, and nothing needs another one. Goes on when it is disposed. */
function pauseMonitor(up: number): Disposable {
  const { pid } = listDescendants(up).find(({ commandLine }) => /skerry\.js monitor( |$)/.test(commandLine))!;
  process.kill(pid, 'SIGSTOP');
  return { [Symbol.dispose]: () => void process.kill(pid, 'SIGCONT') };
}

/** A devnet as it comes, after three short hours: both nodes have a score. */
export async function playFirstHours(stack: AsyncDisposableStack) {
  const home = await mkdtemp(join(tmpdir(), 'skerry-first-hours-'));
  stack.defer(() => rm(home, { recursive: true, force: true }));
  // The gateway's native plane is compiled once on a machine.
  const { cache: SKERRY_CACHE } = skerryPaths(readEnvironment());
  const settings = { SKERRY_HOME: home, SKERRY_CACHE, SKERRY_COMPUTE_INSTALL_PACKAGES: 'no', ...DOMAINS };
  const net = stack.use(
    await startUp(settings, [
      ...['--hour', HOUR, '--data-dir', join(home, 'net')],
      // The core node tells where they are, which the console learns from it.
      ...['--scheduler-port', String(await findFreePort()), '--status-port', String(await findFreePort())],
      ...['--gateway-port', String(await findFreePort())],
    ]),
  );
  const first = net.urls.core!;
  // The ones that are looked at are those that are kept: the next ones may come at any time, and say something else.
  let published: Awaited<ReturnType<typeof ask>>['body'];
  await until('a score of both kinds from three hours or more', TIMEOUT_MS, async () => {
    await setTimeout(ASK_AGAIN_MS);
    published = (await ask(first, 'score', 'latest')).body;
    const rows: Row[] = [...(published.scores?.ccn ?? []), ...(published.scores?.crn ?? [])];
    return (
      rows.length === 2 && rows.every((row) => row.measurements.record_count >= 3 && row.total_score > 0)
    );
  });
  stack.use(pauseMonitor(net.pid));
  return { home, urls: net.urls, first, published };
}

export type FirstHours = Awaited<ReturnType<typeof playFirstHours>>;

/** A machine without a disk that boots, of somebody with credit. */
export async function createOwner({ home, first }: FirstHours) {
  const owner = createSigner(generatePrivateKey());
  const client = new CoreClient({ url: first, signer: owner });
  const noDisk = sha256Hex('no disk');
  await client.storeFile(new Blob(['no disk']), 'disk', noDisk);
  const machine = await client.createInstance({
    ...{ name: 'a', cpu: 1, memory: 512, disk: 4, image: noDisk },
    ssh_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz test@skerry',
  });
  const keyFile = join(home, 'net', 'credit', 'key');
  const granted = await ask(first, 'credit', 'grant', owner.address, '$5', '--key-file', keyFile);
  assert.equal(granted.code, 0, granted.err);
  return { address: owner.address, client, machineId: machine.instance_id };
}

export type Owner = Awaited<ReturnType<typeof createOwner>>;

/** Resolves with the machine's address, once it has one and its owner has credit. */
export async function untilPlaced(
  { first }: FirstHours,
  { client, address, machineId }: Owner,
): Promise<string> {
  let ipv6 = '';
  await until('the machine has an address, and its owner credit', TIMEOUT_MS, async () => {
    await setTimeout(ASK_AGAIN_MS);
    ({ ipv6 } = await client.getInstance(machineId));
    const { body } = await ask(first, 'credit', 'balance', address);
    return ipv6 !== '' && body.credit_balance > 0;
  });
  return ipv6;
}

/** A node that holds no machine takes its network out of the kernel when it stops. */
export async function letGo({ urls }: FirstHours, { client, machineId }: Owner): Promise<void> {
  await client.forget([machineId]);
  const executions = `${urls.compute}/v2/about/executions/list`;
  await until('the machine is let go', TIMEOUT_MS, async () => {
    const held = await fetch(executions).then((answer) => answer.json());
    return Object.keys(held as object).length === 0;
  });
}
