// A connection through the gateway that lives for as long as this process: a ClientHello, then a line a second, and each has
// to come back. Writes how many came; ends with 1 where the connection ends first. Run by scenario.ts at the place of the user.
import { connect } from 'node:net';
import { helloWire } from '../../../services/gateway/src/tls/testing/hello.ts';

const [address = '', name = ''] = process.argv.slice(2);
const EVERY_MS = 1_000;

const socket = connect({ host: address, port: 443 });
const hello = helloWire({ serverName: name });
let expected: Buffer = Buffer.from(hello);
let count = 0;
const sent: Buffer[] = [];

function end(why: string): never {
  console.error(`the connection through the gateway ended after ${count} lines: ${why}`);
  process.exit(1);
}

socket.once('connect', () => {
  socket.write(hello);
  setInterval(() => {
    const line = Buffer.from(`line ${sent.length}\n`);
    sent.push(line);
    expected = Buffer.concat([expected, line]);
    socket.write(line);
  }, EVERY_MS);
});
socket.on('data', (part: Buffer) => {
  if (!expected.subarray(0, part.length).equals(part)) end('other bytes came back than were sent');
  expected = expected.subarray(part.length);
  if (part.at(-1) === 0x0a) console.log(++count);
});
socket.once('error', (error) => end(error.message));
socket.once('close', () => end('it was closed'));
