// Every daemon of the image's tree, as the image's user, by chroot: what a container engine does apart from confining them. Run by
// image.soak.test.ts in namespaces of its own: tree.ts ARCHIVE DIRECTORY.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { until } from '@skerry/kit/testing/until';
import { run } from '../../../services/compute/src/host/run.ts';
import { type RunAs, unpackImage } from './unpack.ts';

const SLOW = { limitMs: 600_000, everyMs: 500 };
const CORE = 'http://127.0.0.1:4024';
const CONTENT = '{"type":"note","content":{"text":"from the image"}}';

const [archive = '', directory = ''] = process.argv.slice(2);

type Settings = Readonly<Record<string, string>>;

class Tree {
  readonly #root: string;
  readonly #image: RunAs;

  constructor(root: string, image: RunAs) {
    this.#root = root;
    this.#image = image;
  }

  /** A process with the image's user, environment and command, and these arguments. */
  start(args: readonly string[], settings: Settings, output: 'inherit' | 'pipe'): ChildProcess {
    const { User, Env, Entrypoint } = this.#image;
    const variables = [...Env, ...Object.entries(settings).map(([name, value]) => `${name}=${value}`)];
    const inside = [this.#root, '/usr/bin/env', '-i', ...variables, ...Entrypoint, ...args];
    return spawn('chroot', [`--userspec=${User}`, '--groups=', ...inside], {
      stdio: ['ignore', output, 'inherit'],
    });
  }

  /** What a command prints. */
  async ask(...args: string[]): Promise<string> {
    const child = this.start(args, {}, 'pipe');
    const [out, [code]] = await Promise.all([text(child.stdout!), once(child, 'exit')]);
    assert.equal(code, 0, args.join(' '));
    return out.trim();
  }
}

const look = (url: string) => fetch(url).catch(() => undefined);
const answers = async (url: string) => (await look(url))?.status === 200;

async function startDaemon(tree: Tree, role: string, settings: Settings, isUp: () => Promise<boolean>) {
  const args = role === 'status' ? ['status', 'serve'] : [role];
  const prefix = `SKERRY_${role.toUpperCase()}_`;
  const given = Object.entries(settings).map(([name, value]) => [`${prefix}${name}`, value] as const);
  const child = tree.start(args, Object.fromEntries(given), 'inherit');
  await until(
    `${role} serves`,
    () => {
      assert.equal(child.exitCode, null, `${role} ended`);
      return isUp();
    },
    Boolean,
    SLOW,
  );
  const [, ids] = /^Uid:\s+(.*)$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))!;
  assert.deepEqual(new Set(ids!.split('\t')), new Set(['10001']), `${role} is somebody else`);
  console.log(`[${process.uptime().toFixed(0)} s] ${role} serves`);
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const [code] = await ended;
  assert.equal(code, 0);
}

/** `/proc`, a few devices, and names of this machine, as every container has them. */
async function furnish(root: string): Promise<void> {
  await run('ip', ['link', 'set', 'lo', 'up']);
  await run('mount', ['-t', 'proc', 'proc', join(root, 'proc')]);
  await run('mount', ['--rbind', '/dev', join(root, 'dev')]);
}

async function tryTree(): Promise<void> {
  const root = join(directory, 'root');
  const tree = new Tree(root, unpackImage(archive, root));
  await furnish(root);
  const { version } = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8'),
  ) as { version: string };
  assert.equal(await tree.ask('--version'), version);
  const HOST = '127.0.0.1';
  const [SCHEDULERS, CREDIT_PUBLISHERS, SCORING_PUBLISHERS] = [
    await tree.ask('scheduler', 'address'),
    await tree.ask('credit', 'address'),
    await tree.ask('monitor', 'address'),
  ];
  const trust = { SCHEDULERS, CREDIT_PUBLISHERS, SCORING_PUBLISHERS };
  const startCore = () => startDaemon(tree, 'core', { HOST, ...trust }, () => answers(`${CORE}/health`));
  const core = await startCore();
  await tree.ask('key', 'new');
  const hash = await tree.ask('message', 'post', '--content', CONTENT);
  const beside = { HOST, CORE_URL: CORE };
  const others = [
    await startDaemon(tree, 'scheduler', beside, () => answers(`http://${HOST}:4030/status`)),
    await startDaemon(tree, 'credit', beside, () => answers(`http://${HOST}:4032/status`)),
    await startDaemon(tree, 'gateway', { ...beside, DATA_PLANE: 'native' }, () =>
      answers(`http://${HOST}:8081/api/status`),
    ),
    await startDaemon(tree, 'status', beside, () => answers(`http://${HOST}:4031/status`)),
    await startDaemon(tree, 'monitor', { CORE_URL: CORE }, async () => {
      const answer = await look(`${CORE}/api/v0/messages.json?addresses=${SCORING_PUBLISHERS}`);
      return ((await answer?.text()) ?? '').includes('item_hash');
    }),
  ];
  for (const child of others) await stop(child);
  await stop(core);
  const again = await startCore();
  assert.match(await tree.ask('message', 'get', hash), /from the image/);
  await stop(again);
  assert.match(await run('chroot', [root, '/usr/bin/ping', '-V']), /ping from iputils/);
}

await tryTree();
console.log(`[${process.uptime().toFixed(0)} s] every daemon of the tree has served`);
process.exit(0);
