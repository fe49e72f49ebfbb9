import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const KIND = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/**
 * A key and a certificate that nobody has vouched for (PEM).
 * @param names as OpenSSL writes them: `DNS:localhost`, `IP:127.0.0.1`
 */
export async function makeCertificate(...names: readonly string[]): Promise<Certificate> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-certificate-'));
  try {
    const [key, cert] = [join(directory, 'key'), join(directory, 'cert')];
    const subject = ['-subj', '/CN=test', '-addext', `subjectAltName=${names.join(',')}`];
    await promisify(execFile)('openssl', ['req', ...KIND, ...subject, '-keyout', key, '-out', cert]);
    return { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
