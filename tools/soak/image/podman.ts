// The image with podman, rootless, on a Debian server: what docs/container.md says, line by line. Run by image.soak.test.ts in
// namespaces of its own: podman.ts DIRECTORY, which holds plan.json.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { until } from '@skerry/kit/testing/until';
import { run } from '../../../services/compute/src/host/run.ts';
import { Clock } from '../install/clock.ts';
import { ONE, openNetwork } from '../install/places.ts';
import { FOLDER, Server } from '../install/server.ts';
import { blockOf } from './page.ts';
import type { Plan } from './plan.ts';

const PERSON = 'keeper';
const SERVICES = ['core', 'scheduler', 'gateway', 'monitor', 'credit', 'status'];
/** Everything is emulated, on a machine that others use too: only what hangs takes as long. */
const SLOW = { limitMs: 2_400_000, everyMs: 10_000 };
const LINE_MS = 2_400_000;
const BOOT_MS = 900_000;
const CORE = 'http://127.0.0.1:4024';
const TOLD = 'hello';

const [directory = ''] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(join(directory, 'plan.json'), 'utf8')) as unknown as Plan;
const clock = new Clock();

class Operator {
  readonly #server: Server;
  /** Those whose words were printed. */
  readonly #heard = new Set<string>();

  constructor(server: Server) {
    this.#server = server;
  }

  /** What a line of shell prints to somebody without rights. */
  do(line: string): Promise<string> {
    return this.#server.run(`set -e; ${line}`, LINE_MS, PERSON);
  }

  async isHealthy(): Promise<boolean> {
    const format = '{{.Name}} {{.State.Status}} {{.State.Healthcheck.Status}}';
    const names = SERVICES.map((name) => `skerry-${name}`).join(' ');
    const said = await this.do(`podman inspect --format '${format}' ${names} || true`);
    console.log(said.replace(/^/gm, '    '));
    const lines = said.split('\n');
    for (const line of lines.filter((one) => one.endsWith(' running unhealthy'))) await this.#hear(line);
    return lines.filter((line) => line.endsWith(' running healthy')).length === SERVICES.length;
  }

  /** What one that is not healthy says, and its check. */
  async #hear(line: string): Promise<void> {
    const [name = ''] = line.split(' ');
    if (this.#heard.has(name)) return;
    this.#heard.add(name);
    const checks = `podman inspect --format '{{json .State.Healthcheck.Log}}' ${name}`;
    console.log(await this.do(`(${checks}; podman logs --tail 15 ${name}) 2>&1 || true`));
  }

  waitUntilHealthy(): Promise<boolean> {
    return until('every service is healthy', () => this.isHealthy(), Boolean, SLOW);
  }
}

/** A person without rights who may leave something running; and what the guests' image leaves out. */
const PREPARE = [
  `useradd --create-home --shell /bin/bash ${PERSON}`,
  `install -d -o ${PERSON} -g ${PERSON} -m 0700 /home/${PERSON}/.ssh`,
  `install -o ${PERSON} -g ${PERSON} -m 0600 /root/.ssh/authorized_keys /home/${PERSON}/.ssh/`,
  `cp -r ${FOLDER}/deploy /home/${PERSON}/ && chown -R ${PERSON}: /home/${PERSON}`,
  // They do nothing here, and starting podman takes a minute where it is emulated.
  'systemctl mask --now podman-auto-update.timer podman-restart.service',
].join(' && ');

async function restartServer(server: Server): Promise<void> {
  const look = () => server.run('cat /proc/sys/kernel/random/boot_id', BOOT_MS).catch(() => '');
  const before = await look();
  await server.run('systemctl reboot').catch(() => '');
  await until('the server is up again', look, (seen) => seen !== '' && seen !== before, SLOW);
}

async function tryImage(server: Server): Promise<void> {
  await clock.step('a Debian with podman boots', () => server.boot());
  await server.run(PREPARE);
  const operator = new Operator(server);
  const [forRoot = '', ...own] = blockOf('boot').split('\n');
  await server.run(forRoot.replace('sudo ', '').replace('$USER', PERSON));
  await operator.do(own.join('\n'));
  await clock.step('podman load, skerry --version', async () => {
    const said = await operator.do(`cd ${FOLDER}; ${blockOf('load')}`);
    console.log(said.replace(/^/gm, '    '));
  });
  await clock.step('keys are made, and all is started', async () => {
    console.log(await operator.do(blockOf('start')));
    console.log(await operator.do('cat deploy/.env'));
  });
  await clock.step('every service is healthy', () => operator.waitUntilHealthy());
  await clock.step('the network counts scheduler, gateway and credit service', () =>
    until(
      'all are online',
      () => operator.do('curl -s http://127.0.0.1:4031/status'),
      (seen) => {
        const { services } = JSON.parse(seen) as { services: { online: number; total: number } };
        return services.total === 4 && services.online === 4;
      },
      SLOW,
    ),
  );
  const posted = await clock.step(
    'the network is shown, and a message is posted, with the command in the image',
    () => operator.do(blockOf('use')),
  );
  const [hash = ''] = /^[0-9a-f]{64}$/m.exec(posted) ?? [];
  const hasMessage = async () => {
    const seen = await operator.do(`curl -s ${CORE}/api/v0/messages/${hash}`);
    assert.match(seen, new RegExp(`"text":"${TOLD}"`));
  };
  await hasMessage();
  await clock.step('the gateway reaches IPv6', async () => {
    const url = `http://[${ONE.ipv6.gateway}]:8000/`;
    const page = createServer((_request, response) => response.end('over IPv6')).listen(8000, '::');
    assert.equal(await operator.do(`podman exec skerry-gateway wget -q -O - ${url}`), 'over IPv6');
    page.close();
  });
  await clock.step('a backup is made and verified', () => operator.do(blockOf('save')));
  await clock.step('containers are made anew', () =>
    operator.do('cd deploy; podman-compose down; podman-compose up -d'),
  );
  await clock.step('every service is healthy again', () => operator.waitUntilHealthy());
  await hasMessage();
  await clock.step('the server is restarted', () => restartServer(server));
  await clock.step('every service is healthy, without anybody', () => operator.waitUntilHealthy());
  await hasMessage();
}

async function scenario(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  stack.use(await openNetwork(directory));
  const sshKey = join(directory, 'id');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', sshKey]);
  const server = stack.use(
    new Server({
      ...{ name: 'one', link: ONE, memoryMib: 3072, sshKey },
      ...{ image: plan.image, folder: plan.disk, directory: join(directory, 'one') },
    }),
  );
  await tryImage(server);
}

try {
  await scenario();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
}
console.log(`\n${clock.table()}`);
process.exit();
