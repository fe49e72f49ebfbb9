import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const TYPE_A = 1;
const HEADER_BYTES = 12;

/**
 * A name server on loopback (RFC 1035); of IPv6 it knows nothing.
 * @param answers what it says of every name: these addresses at the first question, those at the next, the last for ever
 */
export async function startNameServer(...answers: readonly (readonly string[])[]) {
  const socket = createSocket('udp4');
  let asked = 0;
  socket.on('message', (query, from) => {
    const end = query.indexOf(0, HEADER_BYTES) + 5;
    const isA = query.readUInt16BE(end - 4) === TYPE_A;
    const addresses = isA ? answers[Math.min(asked++, answers.length - 1)]! : [];
    const header = Buffer.from(query.subarray(0, HEADER_BYTES));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(addresses.length, 6);
    header.writeUInt32BE(0, 8);
    // A pointer to the name, type A, class IN, a time to live of 0, four bytes.
    const records = addresses.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
    );
    socket.send(
      Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...records]),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    get asked() {
      return asked;
    },
    [Symbol.dispose]: () => void socket.close(),
  };
}
