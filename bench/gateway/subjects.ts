import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { buildNativePlane } from '../../services/gateway/src/dataplane/native/build.ts';
import { NativeDataPlane } from '../../services/gateway/src/dataplane/native/plane.ts';
import type { DataPlane, QuicWish } from '../../services/gateway/src/dataplane/port.ts';
import type { Figures } from '../measure/figures.ts';

export const NAMES = 5000;
export const INSTANCE_PORT = 19_001;
const LISTEN_PORTS = {
  haproxy: 18_101,
  'haproxy-tuned': 18_102,
  nginx: 18_103,
  sniproxy: 18_104,
  typescript: 18_105,
};
export const RELAY_PORT = 18_107;

/** A proxy that runs, and the processes whose CPU time is its own. */
export interface Subject extends AsyncDisposable {
  readonly name: string;
  readonly port: number;
  readonly pids: readonly number[];
  /** Set where this process can keep its control side busy. */
  readonly plane?: DataPlane;
}

export const isThere = (path: string) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

async function answers(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const socket = connect(port, '127.0.0.1');
    const opened = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (opened) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`nothing answers on port ${port}`);
}

/** A program of one of this directory's C sources. */
export function compile(source: string, to: string, more: readonly string[] = []): string {
  execFileSync('cc', ['-O2', new URL(source, import.meta.url).pathname, ...more, '-o', to], {
    stdio: 'inherit',
  });
  return to;
}

/** Pinned to the first CPU, as every proxy here; client and instance have the second. */
export function spawnPinned(cpu: 0 | 1, command: string, args: readonly string[]): ChildProcess {
  return spawn('taskset', ['-c', String(cpu), command, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function program(name: keyof typeof LISTEN_PORTS, command: string, args: string[]): Promise<Subject> {
  const port = LISTEN_PORTS[name];
  const child = spawnPinned(0, command, args);
  child.stdout!.resume();
  await answers(port);
  return {
    name,
    port,
    pids: [child.pid!],
    async [Symbol.asyncDispose]() {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** The name of those that do the least a relay can do, whatever it carries: what they take is the machine's. */
export const BARE_RELAY = 'bare relay';

/** @param source of a relay from one port to another */
export async function openRelay(dir: string, source: string, port: number): Promise<Subject> {
  const path = compile(source, join(dir, source.replace(/\.c$/, '')));
  const child = spawnPinned(0, path, [String(port), String(INSTANCE_PORT)]);
  await once(child.stdout!, 'data');
  return {
    ...{ name: BARE_RELAY, port, pids: [child.pid!] },
    async [Symbol.asyncDispose]() {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

const haproxyConfig = (tuned: boolean, map: string, port: number) => `
global
    nbthread 1
    maxconn 9200
${tuned ? '    tune.pipesize 1048576\n    maxpipes 500' : ''}
defaults
    mode tcp
    timeout connect 5s
    timeout client 300s
    timeout server 300s
    backlog 4096
${tuned ? '    option splice-request\n    option splice-response\n    option tcp-smart-accept\n    option tcp-smart-connect' : ''}
frontend sni
    bind 127.0.0.1:${port}${tuned ? ' defer-accept' : ''}
    tcp-request inspect-delay 5s
    tcp-request content accept if { req.ssl_hello_type 1 }
    use_backend %[req.ssl_sni,lower,map_str(${map},bk_none)]
backend bk_raw
    server s1 [::1]:${INSTANCE_PORT}
backend bk_none
`;

const nginxConfig = (map: string, port: number, dir: string) => `
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off; master_process off; worker_processes 1; pid ${dir}/nginx.pid; error_log ${dir}/nginx.err warn;
worker_rlimit_nofile 20000;
events { worker_connections 19000; multi_accept on; use epoll; }
stream {
  map_hash_max_size 65536; map_hash_bucket_size 128;
  upstream bk_raw { server [::1]:${INSTANCE_PORT} max_fails=0; }
  upstream bk_none { server [::1]:1; }
  map $ssl_preread_server_name $up { default bk_none; include ${map}; }
  server { listen 127.0.0.1:${port} backlog=4096; ssl_preread on; proxy_pass $up; proxy_connect_timeout 5s; proxy_timeout 300s; tcp_nodelay on; }
}
`;

const sniproxyConfig = (port: number, dir: string) => `
user root
pidfile ${dir}/sniproxy.pid
error_log { filename ${dir}/sniproxy.err
 priority error }
listener 127.0.0.1:${port} { proto tls
 table t }
table t {
    ^h[0-9]*\\.raw\\.test$ [::1]:${INSTANCE_PORT}
}
`;

/** Those that are here; of the others the figures say so. */
export async function openPeers(dir: string, figures: Figures): Promise<Subject[]> {
  const names = Array.from({ length: NAMES }, (_, index) => `h${index}.raw.test`);
  const map = join(dir, 'haproxy.map');
  const nginxMap = join(dir, 'nginx.map');
  await writeFile(map, names.map((name) => `${name} bk_raw\n`).join(''));
  await writeFile(nginxMap, names.map((name) => `${name} bk_raw;\n`).join(''));
  const subjects: Subject[] = [];
  for (const name of ['haproxy', 'nginx', 'sniproxy']) if (!isThere(`/usr/sbin/${name}`)) figures.lack(name);
  for (const name of ['haproxy', 'haproxy-tuned'] as const) {
    const path = join(dir, `${name}.cfg`);
    await writeFile(path, haproxyConfig(name === 'haproxy-tuned', map, LISTEN_PORTS[name]));
    if (isThere('/usr/sbin/haproxy'))
      subjects.push(await program(name, '/usr/sbin/haproxy', ['-q', '-db', '-f', path]));
  }
  await writeFile(join(dir, 'nginx.conf'), nginxConfig(nginxMap, LISTEN_PORTS.nginx, dir));
  if (isThere('/usr/sbin/nginx'))
    subjects.push(
      await program('nginx', '/usr/sbin/nginx', ['-c', join(dir, 'nginx.conf'), '-e', `${dir}/nginx.err`]),
    );
  await writeFile(join(dir, 'sniproxy.conf'), sniproxyConfig(LISTEN_PORTS.sniproxy, dir));
  if (isThere('/usr/sbin/sniproxy'))
    subjects.push(await program('sniproxy', '/usr/sbin/sniproxy', ['-f', '-c', join(dir, 'sniproxy.conf')]));
  return subjects;
}

export const planeOptions = (httpsPort: number) => ({
  hosts: ['127.0.0.1'],
  httpPort: 0,
  httpsPort,
  upstreamHttpPort: 1,
  upstreamHttpsPort: INSTANCE_PORT,
  explain: () => ({ code: 'HOSTNAME_NOT_FOUND' as const, message: '' }),
});

export function* benchRoutes(count = NAMES) {
  for (let index = 0; index < count; index++) yield { hostname: `h${index}.raw.test`, ipv6: '::1' };
}

/** With all product features on: its limits, timeouts and figures are those of a gateway. */
export async function openNative(
  dir: string,
  { routes = NAMES, name = 'native', quic = 'no' as QuicWish } = {},
): Promise<Subject> {
  const built = await buildNativePlane(join(dir, 'planes'));
  if ('missing' in built) throw new Error(`the native data plane cannot be built: ${built.missing}`);
  const plane = new NativeDataPlane({
    ...planeOptions(0),
    quic,
    path: built.path,
    onTrouble: console.error,
  });
  plane.replaceTable(benchRoutes(routes));
  const { https } = await plane.listen();
  spawn('taskset', ['-pc', '0', String(plane.pid)], { stdio: 'ignore' });
  return { name, port: https, pids: [plane.pid!], plane, [Symbol.asyncDispose]: () => plane.close() };
}

/** In a process of its own, so that its CPU time can be told from the bench's. */
export async function openTypeScript(): Promise<Subject> {
  const script = new URL('typescript-plane.ts', import.meta.url).pathname;
  return await program('typescript', process.execPath, [script, String(LISTEN_PORTS.typescript)]);
}
