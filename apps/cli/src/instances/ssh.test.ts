import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import type { AppError } from '@skerry/protocol';
import { skerryHere } from '../testing/here.ts';
import { replying } from '../testing/replying.ts';
import { createTestDir, RUNNING } from '../testing/run.ts';
import { checkReachable, sshArguments } from './ssh.ts';
import { waitForSshBanner } from './ssh-banner.ts';

test('what stands in the way is said, with what to do', () => {
  const refusal = (changes: Partial<typeof RUNNING>, reference = 'web') => {
    try {
      checkReachable({ ...RUNNING, ...changes }, reference);
    } catch (error) {
      const { code, message, details } = error as AppError;
      assert.equal(code, 'INSTANCE_NOT_READY');
      return `${message} | ${(details as { hint: string }).hint}`;
    }
    return undefined;
  };
  assert.equal(refusal({}), undefined);
  assert.match(
    refusal({ desired: 'stopped', phase: 'stopped' })!,
    /web is stopped .*"skerry instance start web --wait"/,
  );
  assert.match(refusal({ ipv6: '', phase: 'scheduled' })!, /has no address yet \(scheduled\)/);
  assert.match(refusal({ phase: 'starting' })!, /is not running \(starting\)/);
  const open = { allowedPorts: [80], allowedUdpPorts: [443] };
  assert.match(refusal({ firewall: open })!, /web --allow 22,80,udp:443"/);
  assert.match(refusal({ firewall: { allowedPorts: [80] } })!, /blocks ssh .*update web --allow 22,80"/);
  // Other clients give names that this command would not.
  for (const [changes, command] of [
    [{ desired: 'stopped', phase: 'stopped' }, "start 'my web' --wait"],
    [{ phase: 'starting' }, "start 'my web' --wait"],
    [{ firewall: open }, "update 'my web' --allow"],
  ] as const)
    assert.ok(refusal(changes, 'my web')!.includes(`"skerry instance ${command}`));
});

test('the machine is known by its id, in a file of its own', () => {
  const target = {
    instanceId: 'id1',
    port: 22,
    address: '2001:db8::1',
    user: 'root',
    knownHostsFile: '/a b/100%/known_hosts',
    identityFile: '/home/me/.ssh/work',
    connectSeconds: 120,
  };
  const args = sshArguments(target, ['uname', '-a']);
  assert.ok(args.includes('HostKeyAlias=id1'));
  assert.ok(args.includes('UserKnownHostsFile="/a b/100%%/known_hosts"'));
  assert.ok(args.includes('IdentitiesOnly=yes'));
  assert.deepEqual(args.slice(-5), ['root', '--', '2001:db8::1', 'uname', '-a']);
  assert.ok(!sshArguments({ ...target, identityFile: undefined }, []).includes('-i'));
});

/** An emulated machine on a node with twenty processes to each core. */
const SLOW_GREETING_MS = 30_000;

/** Greets each connection with the next text; undefined hangs up. */
async function serveGreetings(greetings: readonly (string | undefined)[]) {
  let connections = 0;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    const greeting = greetings[Math.min(connections++, greetings.length - 1)];
    if (greeting === undefined) socket.destroy();
    else socket.write(greeting);
  }).listen(0, '::1');
  await once(server, 'listening');
  return { port: (server.address() as { port: number }).port, [Symbol.dispose]: () => server.close() };
}

test('tries until an ssh server answers', async () => {
  using server = await serveGreetings([undefined, 'HTTP/1.1 400\r\n', 'SSH-2.0-test\r\n']);
  const troubles: string[] = [];
  await waitForSshBanner('::1', server.port, 30_000, (why) => troubles.push(why));
  assert.deepEqual(troubles[1], 'the answer is not from an ssh server: "HTTP/1.1 400"');
  assert.equal(troubles.length, 2);
});

test('gives up at the deadline and says what was last seen', async (context) => {
  context.mock.timers.enable({ apis: ['Date'] });
  using server = await serveGreetings(['nonsense\r\n']);
  const waiting = waitForSshBanner('::1', server.port, 30_000, () => context.mock.timers.tick(30_000));
  await assert.rejects(waiting, (error: AppError) => {
    assert.equal(error.code, 'TIMED_OUT');
    assert.match(error.message, /not from an ssh server/);
    return true;
  });
});

test('waits for a server that is slow to greet, with one connection', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const seen: Socket[] = [];
  const greet = (socket: Socket) => socket.write('SSH-2.0-slow\r\n');
  // A client that gave its connection up comes again, and is greeted at once.
  const server = createServer((socket) => {
    if (seen.push(socket.on('error', () => {})) > 2) greet(socket);
  }).listen(0, '::1');
  await once(server, 'listening');
  using _server = { [Symbol.dispose]: () => server.close() };
  const waiting = waitForSshBanner('::1', (server.address() as { port: number }).port, 120_000);
  // Both ends have their connection once this one, made later, has it.
  await using probe = connect({ host: '::1', port: (server.address() as { port: number }).port });
  await once(probe, 'connect');
  context.mock.timers.tick(SLOW_GREETING_MS);
  for (const socket of seen) greet(socket);
  await waiting;
  assert.equal(seen.length, 2, 'one of the client, one to know that it has it');
});

test('what the network calls an address and is none is handed to nobody', async () => {
  await using home = await createTestDir();
  for (const ipv6 of ['-oProxyCommand=x', 'host.example', '`id`']) {
    await using core = await replying(() => ({ ...RUNNING, ipv6 }));
    const environment = { SKERRY_HOME: home.path, HOME: home.path, SKERRY_CORE_URL: core.url };
    const args = ['instance', 'ssh', RUNNING.instance_id, '--connect-timeout', '1s', '--', 'true'];
    const { err, code } = await skerryHere(environment, args);
    assert.deepEqual([code, /\((\w+)\)\n/.exec(err)?.[1]], [5, 'UNEXPECTED_ANSWER'], err);
  }
});
