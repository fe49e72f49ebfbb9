import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const TYPE_A = 1;
const HEADER_BYTES = 12;

/** The name that is asked for (RFC 1035, 4.1.2), in lower case, without the last dot. */
function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = HEADER_BYTES; query[at]; at += 1 + query[at]!)
    labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!).toLowerCase());
  return labels.join('.');
}

/**
 * A name server (RFC 1035); of IPv6 it knows nothing.
 * @param answer the addresses of a name
 */
export async function serveNames(
  { host, port }: { readonly host: string; readonly port: number },
  answer: (name: string) => readonly string[],
) {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const end = query.indexOf(0, HEADER_BYTES) + 5;
    const isA = query.readUInt16BE(end - 4) === TYPE_A;
    const addresses = isA ? answer(nameIn(query)) : [];
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
  socket.bind(port, host);
  await once(socket, 'listening');
  return {
    address: `${host}:${socket.address().port}`,
    [Symbol.dispose]: () => void socket.close(),
  };
}

/**
 * One on loopback.
 * @param answers what it says of every name: these addresses at the first question, those at the next, the last for ever
 */
export async function startNameServer(...answers: readonly (readonly string[])[]) {
  let asked = 0;
  const server = await serveNames(
    { host: '127.0.0.1', port: 0 },
    () => answers[Math.min(asked++, answers.length - 1)]!,
  );
  return {
    ...server,
    get asked() {
      return asked;
    },
  };
}
