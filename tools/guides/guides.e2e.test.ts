import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createSigner } from '@skerry/client';
import { loadOrCreateKeyFile } from '@skerry/kit';
import { until } from '@skerry/kit/testing/until';
import { canHoldAddresses, randomPrefix } from '../../apps/cli/src/scheduler/testing/nodes.ts';
import { startCore } from '../../apps/cli/src/testing/core.ts';
import { startDaemon } from '../../apps/cli/src/testing/parts.ts';
import { findFreePorts } from '../../apps/cli/src/testing/ports.ts';
import { ROOT } from '../source.ts';
import { follow, readGuide } from './follow.ts';
import type { Step } from './steps.ts';
import { createPerson, type Person } from './testing/person.ts';

/**
 * Every guide, as it stands there, on one network and one machine: a core node and a scheduler that are there, and a person who
 * adds one node after another. What needs packages and systemd is left to `npm run soak -- install`.
 */

const PAGES = globSync('guides/*.md', { cwd: join(ROOT, 'docs') }).sort();
const BACKUP = 'backup.md';
/** The rest of that page is about other places. */
const [SAVE, RESTORE] = ['Save a node', 'After the loss of a server'] as const;
const stack = new AsyncDisposableStack();
const done: Step[] = [];
let dir: string;
let person: Person;

/** A core node and a scheduler, each of which knows the other. */
async function startNetwork(corePort: number, schedulerPort: number): Promise<void> {
  const key = join(dir, 'scheduler', 'key');
  const schedulerUrl = `http://127.0.0.1:${schedulerPort}`;
  stack.use(
    await startCore(dir, {
      SKERRY_CORE_PORT: String(corePort),
      SKERRY_CORE_SCHEDULERS: createSigner(await loadOrCreateKeyFile(key)).address,
      SKERRY_CORE_SCORING_PUBLISHERS: 'none',
      SKERRY_CORE_CREDIT_PUBLISHERS: 'none',
      SKERRY_CORE_SERVICES: `scheduler=${schedulerUrl}`,
      SKERRY_CORE_ALLOW_PRIVATE: 'yes',
    }),
  );
  stack.use(
    await startDaemon('scheduler', {
      SKERRY_SCHEDULER_DATA_DIR: join(dir, 'scheduler'),
      SKERRY_SCHEDULER_HOST: '127.0.0.1',
      SKERRY_SCHEDULER_PORT: String(schedulerPort),
      SKERRY_SCHEDULER_CORE_URL: `http://127.0.0.1:${corePort}`,
      SKERRY_SCHEDULER_PROBE_INTERVAL_SECONDS: '1',
      SKERRY_SCHEDULER_TRUST: 'all',
      SKERRY_SCHEDULER_ALLOW_PRIVATE: 'yes',
    }),
  );
}

/** Ports differ, since all roles share this machine. */
const environmentOf = (ports: Readonly<Record<string, number>>) => ({
  ...Object.fromEntries(Object.entries(ports).map(([name, port]) => [`SKERRY_${name}_PORT`, String(port)])),
  SKERRY_LOG_LEVEL: 'error',
  SKERRY_CORE_HOST: '127.0.0.1',
  SKERRY_CORE_SYNC_INTERVAL_SECONDS: '1',
  SKERRY_CORE_ALLOW_PRIVATE: 'yes',
  SKERRY_COMPUTE_CPU: '2',
  SKERRY_COMPUTE_PROGRAMS: 'no',
  SKERRY_GATEWAY_HOST: '127.0.0.1',
  SKERRY_GATEWAY_DATA_PLANE: 'typescript',
  SKERRY_MONITOR_ALLOW_PRIVATE: 'yes',
});

const isHealthy = (url: string) =>
  fetch(`${url}/health`).then(
    ({ ok }) => ok,
    () => false,
  );

async function followHere(page: string, section?: string): Promise<void> {
  done.push(...(await follow(readGuide(page, section), person)));
}

describe('the guides, followed literally', { skip: canHoldAddresses ? false : 'needs root on Linux' }, () => {
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'skerry-guides-'));
    stack.defer(() => rm(dir, { recursive: true, force: true }));
    const [core, scheduler, second, compute, http, https, api] = (await findFreePorts(7)) as [
      ...[number, number, number, number, number, number, number],
    ];
    await startNetwork(core, scheduler);
    const [settings, backups] = [join(dir, 'etc'), join(dir, 'backup')];
    await mkdir(settings);
    const ports = {
      CORE: second,
      COMPUTE: compute,
      GATEWAY_HTTP: http,
      GATEWAY_HTTPS: https,
      GATEWAY_API: api,
    };
    person = stack.use(
      await createPerson(dir, environmentOf(ports), {
        'https://core.example.org': `http://127.0.0.1:${core}`,
        'https://core2.example.org': `http://127.0.0.1:${second}`,
        'http://203.0.113.9:4020': `http://127.0.0.1:${compute}`,
        '2001:db8:1:2::/64': randomPrefix(),
        'http://nobody.apps.example.org/': `http://nobody.apps.localhost:${http}/`,
        'apps.example.org': 'apps.localhost',
        '/etc/skerry': settings,
        '/srv/backup': backups,
      }),
    );
  });
  after(() => stack.disposeAsync());

  for (const page of ['compute-node', 'gateway', 'core-node', 'monitor'])
    test(`guides/${page}.md`, () => followHere(`guides/${page}.md`));

  test('guides/troubleshooting.md', () => followHere('guides/troubleshooting.md'));

  test('backup.md: a core node is saved, lost with its data, and restored', async () => {
    await followHere(BACKUP, SAVE);
    await person.end('core');
    const data = join(dir, 'home/data/core');
    await rm(data, { recursive: true });
    const [restore, ...rest] = readGuide(BACKUP, RESTORE).filter((step) => !step.needsServer);
    done.push(...(await follow([restore!], person)));
    person.start(`skerry core --settings ${join(dir, 'home/config/core.env')}`);
    await until('the restored node answers', () => isHealthy(person.standIns['https://core2.example.org']!));
    done.push(...(await follow(rest, person)));
  });

  for (const page of ['upgrade', 'remove-a-node'])
    test(`guides/${page}.md`, () => followHere(`guides/${page}.md`));

  test('no step is forgotten', () => {
    const nameOf = ({ page, line }: Step) => `${page}:${line}`;
    const all = [
      ...PAGES.map((page) => readGuide(page)),
      readGuide(BACKUP, SAVE),
      readGuide(BACKUP, RESTORE),
    ];
    const expected = all.flat().filter((step) => !step.needsServer);
    assert.deepEqual(done.map(nameOf).toSorted(), expected.map(nameOf).toSorted());
  });
});
