import { writeFileSync } from 'node:fs';
import { helloWire } from '../../../tls/testing/hello.ts';
import type { CreateDataPlane } from '../../port.ts';
import { endingOf, NAME_A, openClient, openWorld, readBytes, until } from '../../testing/suite/world.ts';
import { TsDataPlane } from '../../ts/plane.ts';
import { NativeDataPlane } from '../plane.ts';

/** In a network namespace of its own: connects to an instance until no port is left, by TLS and by plain HTTP. */

const RANGE = '/proc/sys/net/ipv4/ip_local_port_range';
const [MANY, FEW] = ['32768 60999', '31000 31003'] as const;
const HELLO = helloWire({ serverName: NAME_A });
const ASK = `GET / HTTP/1.1\r\nHost: ${NAME_A}\r\n\r\n`;
const CLIENTS = 5;
/** Clients need ports, too: the last one has its own by another way. An address that one is bound to would take it from all ways. */
const hostOf = (client: number) => (client < CLIENTS ? '127.0.0.1' : '::1');

async function exhaust(name: string, create: CreateDataPlane, said?: string[]): Promise<void> {
  writeFileSync(RANGE, MANY);
  await using world = await openWorld(create);
  const { plane, ports, tlsA, httpA } = world;
  tlsA.handle = (socket) => void socket.pipe(socket);
  httpA.handle = (socket) => void socket.resume();
  writeFileSync(RANGE, FEW);
  const clients = [];
  for (let i = 1; i <= CLIENTS; i++) {
    const client = await openClient(ports.https, hostOf(i));
    clients.push(client);
    client.write(HELLO);
    if (i < CLIENTS) await readBytes(client, HELLO.length);
  }
  const ending = await endingOf(clients.at(-1)!);
  for (let i = 1; i <= CLIENTS; i++) {
    const client = await openClient(ports.http, hostOf(i));
    clients.push(client);
    client.write(ASK);
    if (i < CLIENTS) await until(() => httpA.sockets.size === i);
  }
  const [answer] = (await readBytes(clients.at(-1)!, 1)).toString().split('\r\n', 1);
  const { relayed: served, connect_failed: failed } = (await plane.stats()).tls.outcomes;
  const { failure } = (await plane.findAttempts(NAME_A))!;
  if (said) await until(() => said.length > 0);
  const told = (said ?? []).map((text) => text.split(':', 1)[0]).join();
  console.log(JSON.stringify({ plane: name, served, ending, failed, failure, answer, said: told }));
  for (const client of clients) client.destroy();
}

const said: string[] = [];
const path = process.argv[2]!;
const onTrouble = (details: object) => void said.push(String((details as { text?: string }).text));
await exhaust('native', (options) => new NativeDataPlane({ ...options, path, onTrouble }), said);
await exhaust('ts', (options) => new TsDataPlane(options));
