import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { test } from 'node:test';
import { findFreePort } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import { checkPorts, choosePorts } from './ports.ts';
import { ANY_PORTS } from './testing/network.ts';

test('an option wins over the variable, the variable over the usual port', () => {
  const ports = choosePorts(
    { core: 1, scheduler: undefined },
    { SKERRY_CORE_PORT: '2', SKERRY_SCHEDULER_PORT: '3' },
  );
  assert.deepEqual(ports, {
    ...ANY_PORTS,
    core: 1,
    scheduler: 3,
    compute: 4020,
    credit: 4032,
    gatewayHttp: 8080,
    gatewayHttps: 8443,
    gatewayApi: 8081,
    status: 4031,
  });
  assert.throws(() => choosePorts({}, { SKERRY_CORE_PORT: 'x' }), { code: 'INVALID_CONFIG' });
});

/** Listens on a port that stays free once it is closed. */
async function listenOn(host: string): Promise<Server> {
  const server = createServer().listen(await findFreePort(), host);
  await once(server, 'listening');
  return server;
}

test('a port that is taken is named with its option, whatever address it is taken on', async () => {
  for (const host of ['127.0.0.1', '::1', '::']) {
    const server = await listenOn(host);
    const { port } = server.address() as { port: number };
    await assert.rejects(checkPorts({ ...ANY_PORTS, gatewayHttps: port }), (error: AppError) => {
      assert.equal(error.code, 'PORT_IN_USE');
      assert.equal(
        error.message,
        `port ${port} of the gateway's HTTPS is in use; choose another with --https-port or SKERRY_GATEWAY_HTTPS_PORT`,
      );
      return true;
    });
    server.close();
    await once(server, 'close');
    await checkPorts({ ...ANY_PORTS, gatewayHttps: port });
  }
});

test('one port for two doors is refused', async () => {
  const server = await listenOn('::');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  await assert.rejects(
    checkPorts({ ...ANY_PORTS, core: port, compute: port }),
    (error: AppError) =>
      error instanceof AppError && error.message.startsWith('the core node and the compute node both use'),
  );
});

test('the ports of further core nodes are tried before anything starts, too', async () => {
  const server = await listenOn('127.0.0.1');
  const { port } = server.address() as { port: number };
  const first = await findFreePort();
  await assert.rejects(checkPorts({ ...ANY_PORTS, core: first }, [first, port, 65_536]), {
    code: 'PORT_IN_USE',
    message: [
      `port ${port} of core node 2 is in use; choose another with --core-port or SKERRY_CORE_PORT`,
      'port 65536 of core node 3 is above 65535; choose another with --core-port or SKERRY_CORE_PORT',
    ].join('\n'),
  });
  server.close();
  await once(server, 'close');
});
