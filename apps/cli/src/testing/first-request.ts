// From `skerry instance create --wait` to the first answer through the gateway, so many times. Run by
// first-request.soak.test.ts in a network namespace of its own: first-request.ts RUNS
import assert from 'node:assert/strict';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { skerryPaths } from '@skerry/kit';
import { hostnameOf } from '@skerry/protocol';
import { readEnvironment } from '../config.ts';
import { end, startNetwork } from './network.ts';
import { playAt } from './processes.ts';
import { run, say, skerry, succeed, until } from './shell.ts';

const SOON_MS = 120_000;
const DOMAIN = 'skerry.localhost';
const ANSWER = 'hello from the machine';

const home = await mkdtemp(join(tmpdir(), 'skerry-first-request-'));
const cache = skerryPaths(readEnvironment()).cache;
Object.assign(process.env, { SKERRY_HOME: home, SKERRY_CACHE: cache });
const sshKey = join(home, 'ssh-key');

const curl = async (host: string) =>
  (
    await run('curl', [
      '--silent',
      '--max-time',
      '5',
      '--resolve',
      `${host}:8080:127.0.0.1`,
      `http://${host}:8080/`,
    ])
  ).stdout;

/** Milliseconds from the return of `create --wait` until the gateway connects, and until a server that is started then answers. */
async function measureOne(name: string): Promise<{ routedMs: number; answeredMs: number }> {
  const created = await skerry(
    ...['instance', 'create', '--name', name, '--image', 'debian:12', '--memory', '512', '--disk', '4'],
    ...['--ssh-key', `${sshKey}.pub`, '--allow', '22,80', '--wait', '--json'],
  );
  const startMs = performance.now();
  const { instance_id: id } = JSON.parse(created) as { instance_id: string };
  const host = `${hostnameOf(id)}.${DOMAIN}`;
  const serving = skerry(
    ...['instance', 'ssh', name, '--'],
    `mkdir -p /srv/www && echo '${ANSWER}' > /srv/www/index.html && ` +
      'systemd-run --quiet --unit=web python3 -m http.server --bind :: --directory /srv/www 80',
  );
  // The gateway tried the machine itself: nothing between the two is missing any more.
  await until('the name is routed', SOON_MS, async () =>
    /INSTANCE_UNREACHABLE|hello from/.test(await curl(host)),
  );
  const routedMs = performance.now() - startMs;
  await until('the machine answers', SOON_MS, async () => (await curl(host)) === ANSWER);
  const answeredMs = performance.now() - startMs;
  await serving;
  await skerry('instance', 'stop', name, '--wait');
  // One that is only stopped keeps its place on the node, and there are fewer than runs.
  await skerry('message', 'post', '--type', 'FORGET', '--content', JSON.stringify({ hashes: [id] }));
  return { routedMs, answeredMs };
}

function percentiles(values: readonly number[]): string {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (part: number) =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

async function scenario(runs: number): Promise<void> {
  await succeed('ip', 'link', 'set', 'lo', 'up');
  await succeed('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', sshKey);
  const up = await startNetwork();
  await skerry('key', 'new');
  const measured: { routedMs: number; answeredMs: number }[] = [];
  for (let index = 0; index < runs; index++) {
    measured.push(await measureOne(`web-${index}`));
    const { routedMs, answeredMs } = measured.at(-1)!;
    say(
      `run ${index + 1}: connected to after ${Math.round(routedMs)} ms, answered after ${Math.round(answeredMs)} ms`,
    );
  }
  say(
    `from create --wait until the gateway connects, ${runs} runs: ${percentiles(measured.map(({ routedMs }) => routedMs))}`,
  );
  say(
    'until the first answer of a server that is started by ssh at that moment: ' +
      percentiles(measured.map(({ answeredMs }) => answeredMs)),
  );
  assert.equal(await end(up, 'SIGINT'), 0);
}

await playAt(home, () => scenario(Number(process.argv[2])));
