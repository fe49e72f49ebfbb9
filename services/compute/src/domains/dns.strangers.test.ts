import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { test } from 'node:test';
import { createReach } from '@skerry/kit';
import { readProof } from './dns.ts';

const [TYPE_A, TYPE_NS] = [1, 2];

/** Says of every domain that its name server is `ns`, at 127.0.0.1. */
async function startResolver() {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const end = query.indexOf(0, 12) + 5;
    const type = query.readUInt16BE(end - 4);
    const data = type === TYPE_NS ? [2, 110, 115, 0xc0, 12] : [127, 0, 0, 1];
    const isKnown = type === TYPE_NS || type === TYPE_A;
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(isKnown ? 1 : 0, 6);
    header.writeUInt32BE(0, 8);
    const answer = isKnown ? [0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length, ...data] : [];
    socket.send(
      Buffer.concat([header, query.subarray(12, end), Buffer.from(answer)]),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    [Symbol.dispose]: () => void socket.close(),
  };
}

test('H3: a name server that a stranger’s domain puts on this machine is not asked', async () => {
  using resolver = await startResolver();
  const rules = { zone: 'zone.test', resolvers: [resolver.address], mayReach: createReach(false) };
  const judged: string[] = [];
  const proof = await readProof('www.example.test', `0x${'1'.repeat(40)}`, {
    ...rules,
    mayReach(address) {
      judged.push(address);
      return rules.mayReach(address);
    },
  });
  assert.deepEqual([proof, judged], [{ cname: 'unknown', ownerProof: 'unknown' }, ['127.0.0.1']]);
});
