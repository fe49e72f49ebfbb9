import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { test } from 'node:test';
import { boundIdle } from './idle.ts';

test('connections to many places are kept no longer than there is room, and used again while they are', async () => {
  /** Of each request. Not their ports: two connections to different places may have the same. */
  const sockets: Socket[] = [];
  const server = createServer(({ socket }, response) => {
    sockets.push(socket);
    response.end();
  }).listen(0, '0.0.0.0');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const agent = boundIdle(new Agent({ keepAlive: true }), 3);
  const ask = async (host: string) => {
    const [response] = (await once(request({ agent, host, port }).end(), 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'close');
    // The agent gets its socket back behind the end of the answer.
    await new Promise(setImmediate);
  };
  const idle = () => Object.values(agent.freeSockets).flatMap((kept) => kept ?? []);
  try {
    // All of 127.0.0.0/8 is this machine: many places.
    for (let last = 1; last <= 10; last++) await ask(`127.0.0.${last}`);
    assert.equal(idle().filter(({ destroyed }) => !destroyed).length, 3);
    await ask('127.0.0.8');
    assert.ok(sockets.at(-1) === sockets.at(7), 'it was still there');
    await ask('127.0.0.9');
    await ask('127.0.0.1');
    assert.equal(new Set(sockets).size, 11, 'the first one had made room');
    for (let again = 0; again < 20; again++) await ask('127.0.0.1');
    assert.equal(new Set(sockets).size, 11);
    assert.ok(idle().every((socket) => socket.listenerCount('close') < 10));
  } finally {
    agent.destroy();
    server.closeAllConnections();
    server.close();
  }
});
