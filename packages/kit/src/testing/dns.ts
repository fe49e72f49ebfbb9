import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export const DNS_TYPES = { A: 1, NS: 2, CNAME: 5, TXT: 16 } as const;
export const SERVFAIL = 2;
const HEADER_BYTES = 12;

/** What is asked for (RFC 1035, 4.1.2): a name in lower case, without the last dot, and a type. */
export interface Question {
  readonly name: string;
  readonly type: number;
}

export interface NameAnswer {
  /** Not 0 where it fails. */
  readonly code?: number;
  /** The data of records of the name and the type that were asked for. */
  readonly records?: readonly Uint8Array[];
}

function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = HEADER_BYTES; query[at]; at += 1 + query[at]!)
    labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!).toLowerCase());
  return labels.join('.');
}

/** A text with its length, as a TXT record and a label have it. */
const counted = (text: string) => Buffer.concat([Buffer.of(text.length), Buffer.from(text, 'latin1')]);

/** Data of records. */
export const recordOf = {
  A: (address: string) => Buffer.from(address.split('.').map(Number)),
  TXT: counted,
  /** Of NS and CNAME. */
  name: (name: string) => Buffer.concat([...name.split('.').map(counted), Buffer.of(0)]),
};

function writeAnswer(query: Buffer, { code = 0, records = [] }: NameAnswer): Buffer {
  const end = query.indexOf(0, HEADER_BYTES) + 5;
  const header = Buffer.from(query.subarray(0, HEADER_BYTES));
  header.writeUInt16BE(0x8180 | code, 2);
  header.writeUInt16BE(records.length, 6);
  header.writeUInt32BE(0, 8);
  const written = records.map((data) => {
    // A pointer to the name, the type and class that were asked for, a time to live of 0.
    const head = Buffer.concat([
      Buffer.of(0xc0, HEADER_BYTES),
      query.subarray(end - 4, end),
      Buffer.alloc(6),
    ]);
    head.writeUInt16BE(data.length, head.length - 2);
    return Buffer.concat([head, data]);
  });
  return Buffer.concat([header, query.subarray(HEADER_BYTES, end), ...written]);
}

/**
 * A name server (RFC 1035).
 * @param answer undefined where it says nothing
 */
export async function answerNames(
  { host, port }: { readonly host: string; readonly port: number },
  answer: (question: Question) => NameAnswer | undefined,
) {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const type = query.readUInt16BE(query.indexOf(0, HEADER_BYTES) + 1);
    const answered = answer({ name: nameIn(query), type });
    if (answered) socket.send(writeAnswer(query, answered), from.port, from.address);
  });
  socket.bind(port, host);
  await once(socket, 'listening');
  return {
    address: `${host}:${socket.address().port}`,
    [Symbol.dispose]: () => void socket.close(),
  };
}

/**
 * One that knows IPv4 addresses alone.
 * @param answer the addresses of a name
 */
export const serveNames = (
  where: { readonly host: string; readonly port: number },
  answer: (name: string) => readonly string[],
) =>
  answerNames(where, ({ name, type }) => ({
    records: type === DNS_TYPES.A ? answer(name).map(recordOf.A) : [],
  }));

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
