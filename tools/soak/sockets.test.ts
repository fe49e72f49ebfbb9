import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { createTestDatabase } from '../../packages/database/src/testing/database.ts';
import { withDirectory } from './options.ts';
import { SocketReader } from './sockets/reader.ts';
import { runSockets } from './sockets/run.ts';

/** `npm run soak -- sockets`, briefly. */
test('hundreds of WebSockets lack nothing and get nothing twice, whenever they came', () =>
  withDirectory(async (directory) => {
    await using database = await createTestDatabase({ log: createLogger('test', 'silent') });
    const { open, gaps, duplicates, behind, ended } = await runSockets({
      ...{
        directory,
        databaseUrl: database.url,
        channels: 30,
        readers: 300,
        greedy: 3,
        slow: 5,
        perSecond: 200,
      },
      isEnough: (sent) => sent >= 300,
    });
    assert.deepEqual(
      { open, gaps, duplicates, behind, ended },
      { open: 308, gaps: 0, duplicates: 0, behind: 0, ended: 0 },
    );
  }));

test('a reader answers a ping with what it has, as a node expects of everyone who is still there', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const ignore = () => {};
  new SocketReader((server.address() as AddressInfo).port, '/', {
    ...{ onOpen: ignore, onText: ignore, onEnd: ignore },
  });
  const [node] = (await once(server, 'connection')) as [Socket];
  t.after(() => node.destroy());
  await once(node, 'data');
  const payload = Buffer.from('8 bytes.');
  node.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
  node.write(Buffer.concat([Buffer.from([0x89, payload.length]), payload]));
  const [answer] = (await once(node, 'data')) as [Buffer];
  const [opcode, length, ...mask] = answer.subarray(0, 6);
  assert.deepEqual([opcode, length], [0x8a, 0x80 | payload.length]);
  const said = answer.subarray(6).map((byte, at) => byte ^ mask[at % 4]!);
  assert.deepEqual(Buffer.from(said), payload);
});
