import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { truncate, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createCertificate } from '../../services/gateway/src/dataplane/testing/suite/certificate.ts';
import { INSTANCE_PORT, type Subject, spawnPinned } from './subjects.ts';

/** TLS as it is on the wire: nginx as the instance, which sends records of 16 KiB, and curl, which decrypts each. */

const FILES = { 1: 'one.bin', 32: 'of-32.bin' } as const;
export type TlsStreams = keyof typeof FILES;
/** In all; each of the many is long enough to be a bulk transfer. */
export const TLS_MEGABYTES = { 1: 256, 32: 1024 } as const;
const NGINX = '/usr/sbin/nginx';

export const canServeTls = () => {
  try {
    accessSync(NGINX, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** In the place of the instance of the other measures. */
export async function openTlsInstance(dir: string): Promise<AsyncDisposable> {
  for (const streams of [1, 32] as const) {
    const path = join(dir, FILES[streams]);
    await writeFile(path, '');
    await truncate(path, (TLS_MEGABYTES[streams] * 1e6) / streams);
  }
  const { key, cert } = createCertificate('raw.test');
  const [keyPath, certPath] = [join(dir, 'tls-key.pem'), join(dir, 'tls-cert.pem')];
  await writeFile(keyPath, key);
  await writeFile(certPath, cert);
  const config = join(dir, 'tls-instance.conf');
  await writeFile(
    config,
    `daemon off; master_process off; worker_processes 1; user root; pid ${dir}/tls.pid; error_log ${dir}/tls.err warn;
events { worker_connections 19000; multi_accept on; }
http { access_log off; sendfile on; tcp_nodelay on; server { listen [::1]:${INSTANCE_PORT} ssl backlog=4096; root ${dir};
 ssl_certificate ${certPath}; ssl_certificate_key ${keyPath}; ssl_protocols TLSv1.3; ssl_buffer_size 16k; } }
`,
  );
  const child = spawnPinned(1, NGINX, ['-c', config, '-e', join(dir, 'tls.err')]);
  for (let tries = 0; tries < 200; tries++) {
    const socket = connect(INSTANCE_PORT, '::1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) break;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return {
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, 'exit');
    },
  };
}

/** All bytes through a proxy, over so many connections at once; the curl that reads them. */
export async function downloadTls(subject: Subject, streams: TlsStreams): Promise<void> {
  const urls = Array.from({ length: streams }, (_, index) => [
    '-o',
    '/dev/null',
    `https://h${index}.raw.test/${FILES[streams]}`,
  ]).flat();
  const child = spawnPinned(1, 'curl', [
    ...[
      '--no-progress-meter',
      '--insecure',
      '--http1.1',
      '--fail',
      '--connect-to',
      `::127.0.0.1:${subject.port}`,
    ],
    ...['--parallel', '--parallel-immediate', '--parallel-max', String(streams)],
    ...urls,
  ]);
  const [code] = (await once(child, 'exit')) as [number];
  if (code !== 0) throw new Error(`${subject.name}: curl ended with ${code}`);
}
