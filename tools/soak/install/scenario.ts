// Two Debian servers become a compute node and a gateway of a network, with the packages alone. Run by install.soak.test.ts in
// namespaces of its own: scenario.ts DIRECTORY, which holds plan.json.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../../services/compute/src/host/run.ts';
import { Clock } from './clock.ts';
import { expectNoRestart, install, joinAs, loseAndRestore, reloadWrongly, upgrade } from './operator.ts';
import { DOMAIN, ONE, openNetwork, openPlaceOfUser, PREFIX, TWO } from './places.ts';
import type { Plan } from './plan.ts';
import { Server } from './server.ts';
import { startThirdPlace, unpack } from './third-place.ts';
import { User } from './user.ts';

/** From power on to a member of the network. */
const MEMBER_MAX_SECONDS = 600;

const [directory = ''] = process.argv.slice(2);
const plan = JSON.parse(readFileSync(join(directory, 'plan.json'), 'utf8')) as Plan;
const clock = new Clock();

async function scenario(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  stack.use(await openNetwork(directory));
  const sshKey = join(directory, 'id');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', sshKey]);
  const serverOf = (name: string, link: typeof ONE, memoryMib: number) =>
    stack.use(
      new Server({
        ...{ name, link, memoryMib, sshKey },
        ...{ image: plan.image, folder: plan.disk, directory: join(directory, name) },
      }),
    );
  const one = serverOf('one', ONE, 3072);
  const two = serverOf('two', TWO, 2048);

  const command = await clock.step('here: the package is unpacked', () =>
    unpack(plan.first.skerry, join(directory, 'unpacked')),
  );
  await clock.step('here: core node, scheduler, monitor and credit service serve', async () =>
    stack.use(await startThirdPlace(command, join(directory, 'here'))),
  );

  await clock.step('compute: an empty Debian boots', () => one.boot());
  await clock.step('compute: apt installs the packages', () => install(one, ['skerry', 'skerry-compute']));
  await clock.step('compute: skerry join, until the network counts it', () =>
    joinAs(one, 'compute', `--announce-url http://${ONE.ipv4.guest}:4020 --prefix ${PREFIX}`),
  );
  await clock.step('gateway: an empty Debian boots', () => two.boot());
  await clock.step('gateway: apt installs the package', () => install(two, ['skerry']));
  await clock.step('gateway: skerry join, until the network counts it', async () => {
    // Addresses of examples are private ones to it.
    await two.run("echo 'SKERRY_GATEWAY_ALLOW_PRIVATE=yes' >> /etc/skerry/gateway.env");
    await joinAs(two, 'gateway', `--domain ${DOMAIN}`);
  });

  const user = new User(stack.use(await openPlaceOfUser()), command, join(directory, 'user'));
  await clock.step('user: learns the network, makes a key, stores an image', () => user.begin(plan.image));
  await clock.step('user: creates a machine', () => user.create());
  await clock.step('user: reaches it under its name', () => user.reach(0));

  const stream = stack.use(await user.stream());
  await clock.step('a line goes to the machine and back through the gateway', () => stream.isAlive());
  await clock.step('compute: apt upgrades the packages, the machine runs on', () =>
    upgrade(one, ['skerry', 'skerry-compute'], 'compute'),
  );
  await clock.step('gateway: apt upgrades the package', () => upgrade(two, ['skerry'], 'gateway'));
  await clock.step('gateway: a reload with a wrong setting changes nothing', () => reloadWrongly(two));
  await clock.step('the connection from before is open', () => stream.isAlive());
  await clock.step('user: reaches the machine again', () => user.reach(0));

  await clock.step('compute: the server shuts down, and its machine before it', () => one.shutDown());
  await clock.step('compute: the server boots', () => one.powerOn());
  await clock.step('user: reaches the machine, which was shut down in order', () => user.reach(1));

  await loseAndRestore(clock, one, join(directory, 'one.skerry'));
  await clock.step('user: reaches the machine on its new disk', () => user.reach(0));
  await clock.step('gateway: the new version has served since the upgrade', () =>
    expectNoRestart(two, 'gateway'),
  );
}

function report(): void {
  console.log(`\n${clock.table()}\n`);
  for (const role of ['compute', 'gateway']) {
    const seconds =
      clock.sum(`${role}: an empty`) + clock.sum(`${role}: apt installs`) + clock.sum(`${role}: skerry join`);
    console.log(`${role}: ${seconds.toFixed(0)} s from an empty server to a member of the network`);
    assert.ok(seconds < MEMBER_MAX_SECONDS, `a ${role} node took ${seconds.toFixed(0)} s to become a member`);
  }
}

try {
  await scenario();
  report();
} catch (error) {
  console.log(`\n${clock.table()}\n`);
  console.error(error);
  process.exitCode = 1;
}
