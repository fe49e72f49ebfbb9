import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { hear } from '@skerry/kit/testing/heard';
import { playProgram } from '@skerry/kit/testing/play';
import { awaitOutput } from '@skerry/kit/testing/processes';
import { run } from '../host/run.ts';
import type { GuestLink } from '../network/ruleset.ts';

/** Only what hangs takes as long. */
const ANSWER_MS = 60_000;
const RUN_MS = 600_000;
/** A firewall that drops never answers: so long nothing must come. */
const SILENCE_MS = 700;

const seenAs = (text: string) => text.trim().replace('::ffff:', '') || undefined;

/** Another machine: a network namespace that ends with the small process that holds it. */
export class Machine implements AsyncDisposable {
  readonly #holder: ChildProcess;
  readonly #servers: ChildProcess[] = [];

  private constructor(holder: ChildProcess) {
    this.#holder = holder;
  }

  static async start(): Promise<Machine> {
    const holder = spawn('unshare', ['--net', '--', 'sh', '-c', 'ip link set lo up; echo up; exec cat'], {
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    await awaitOutput(holder, 'the holder of a network namespace', hear(holder, ['stderr']));
    return new Machine(holder);
  }

  get pid(): number {
    return this.#holder.pid!;
  }

  run(program: string, ...args: string[]): Promise<string> {
    return this.runWithin(RUN_MS, program, ...args);
  }

  /** Runs a program that takes as long. */
  runWithin(limitMs: number, program: string, ...args: string[]): Promise<string> {
    const inside = [`--net=/proc/${this.pid}/ns/net`, '--', program, ...args];
    return run('nsenter', inside, { timeoutMs: limitMs });
  }

  /** Lines for `ip`, without the word. */
  async ip(...commands: string[]): Promise<void> {
    for (const command of commands) await this.run('ip', ...command.split(' '));
  }

  /** Makes a wire from here, by this name, to the machine's `eth0`. */
  async wire(name: string): Promise<void> {
    const peer = ['peer', 'name', 'eth0', 'netns', `${this.pid}`];
    await run('ip', ['link', 'add', name, 'type', 'veth', ...peer]);
  }

  /** What a guest's cloud-init sets up on `eth0`. */
  async configure({ guest, ipv4 }: Pick<GuestLink, 'guest' | 'ipv4'>): Promise<void> {
    await this.ip(
      'link set eth0 up',
      `-6 addr add ${guest}/124 dev eth0 nodad`,
      '-6 route add default via fe80::1 dev eth0',
      `addr add ${ipv4.guest}/30 dev eth0`,
      `route add default via ${ipv4.gateway}`,
    );
  }

  /** Runs a program beside, and gives what it writes as it comes, from when it wrote its first line. Ends with the machine. */
  async watch(program: string, ...args: string[]): Promise<readonly string[]> {
    const child = spawn('nsenter', [`--net=/proc/${this.pid}/ns/net`, '--', program, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#servers.push(child);
    const lines: string[] = [];
    createInterface(child.stdout!).on('line', (line) => lines.push(line));
    await awaitOutput(child, program, hear(child, ['stderr']));
    return lines;
  }

  /** Listens on TCP ports and says `hello` to everybody, then echoes. */
  async serve(...ports: number[]): Promise<void> {
    const code = `let open = ${ports.length}; for (const port of ${JSON.stringify(ports)}) require('net').createServer((s) => { s.on('error', () => {}); s.write('hello ' + s.remoteAddress + '\\n'); s.pipe(s); }).listen(port, '::', () => --open || console.log('up'))`;
    const server = spawn('nsenter', [`--net=/proc/${this.pid}/ns/net`, '--', process.execPath, '-e', code], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#servers.push(server);
    await awaitOutput(server, 'a server', hear(server, ['stderr']));
  }

  /** Answers every datagram that comes to these UDP ports with `hello` and its sender. */
  async serveUdp(...ports: number[]): Promise<void> {
    const code = `let open = ${ports.length}; for (const port of ${JSON.stringify(ports)}) { const s = require('dgram').createSocket('udp6'); s.on('message', (_, r) => s.send('hello ' + r.address, r.port, r.address)); s.bind(port, '::', () => --open || console.log('up')); }`;
    await this.watch(process.execPath, '-e', code);
  }

  /** Whose address the server for datagrams saw; undefined where nothing came back. */
  greetsUdp(host: string, port: number): Promise<string | undefined> {
    return this.#sendUdp(host, port, ANSWER_MS);
  }

  /** Whether nobody answers a datagram there. */
  async isShutUdp(host: string, port: number): Promise<boolean> {
    return (await this.#sendUdp(host, port, SILENCE_MS)) === undefined;
  }

  async #sendUdp(host: string, port: number, limitMs: number): Promise<string | undefined> {
    const code = `const s = require('dgram').createSocket('udp${isIPv6(host) ? 6 : 4}'); const end = (text) => { console.log(text); process.exit(); }; s.on('message', (d) => end(String(d).split(' ').pop())); s.on('error', () => end('')); s.send('x', ${port}, '${host}'); setTimeout(() => end(''), ${limitMs})`;
    return seenAs(await this.run(process.execPath, '-e', code));
  }

  /** Whose address the server saw; undefined where the connection was refused or nothing came. */
  greets(host: string, port: number): Promise<string | undefined> {
    return this.#connect(host, port, ANSWER_MS);
  }

  /** Whether nobody answers there. */
  async isShut(host: string, port: number): Promise<boolean> {
    return (await this.#connect(host, port, SILENCE_MS)) === undefined;
  }

  async #connect(host: string, port: number, limitMs: number): Promise<string | undefined> {
    const code = `const s = require('net').connect(${port}, '${host}'); const end = (text) => { console.log(text); process.exit(); }; s.on('data', (d) => end(String(d).trim().split(' ').pop())); s.on('error', () => end('')); setTimeout(() => end(''), ${limitMs})`;
    return seenAs(await this.run(process.execPath, '-e', code));
  }

  /** Says something all the time over a connection to one that greets; `ECONNRESET` is among the lines once that is refused. */
  async talksTo(host: string, port: number): Promise<readonly string[]> {
    const code = `const s = require('net').connect(${port}, '${host}'); s.once('data', () => { console.log('open'); setInterval(() => s.write('x'), 50); }); s.on('error', ({ code }) => { console.log(code); process.exit(); })`;
    return this.watch(process.execPath, '-e', code);
  }

  /** Whether no ping is answered. */
  async isSilent(address: string, ...args: string[]): Promise<boolean> {
    return !(await this.pings(address, '-W', '1', ...args));
  }

  /** @param args of `ping` */
  async pings(address: string, ...args: string[]): Promise<boolean> {
    return this.run('ping', '-c', '1', '-W', String(ANSWER_MS / 1000), ...args, address).then(
      () => true,
      () => false,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [...this.#servers, this.#holder]) {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
  }
}

/** Runs a file of this directory in a network namespace of its own; rejects when it fails, with its last words. */
export const playInNamespace = (file: string, ...args: string[]): Promise<void> =>
  playProgram(file, 'unshare', ['--net', '--', process.execPath, join(import.meta.dirname, file), ...args]);
