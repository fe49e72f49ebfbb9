import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startTestS3 } from '../../../services/core/src/store/files/testing/s3-server.ts';
import { type CoreProcess, Cores } from './cores.ts';
import { logOf } from './logs.ts';
import { coreRoles, databaseUrl, haproxyConfig, WAYS } from './page.ts';
import { Program } from './program.ts';

const FIRST_PORT = 4_124;
/** What lacks its file is rejected after this, by whoever leads. */
const PENDING_SECONDS = 5;

/** Those that answer, by their numbers: the first reaches the database by its hosts, the second by HAProxy. */
export const ANSWERING = [0, 1] as const;
/** The candidates for writing, likewise. */
export const WRITING = [2, 3] as const;

/**
 * The node of docs/high-availability.md, besides its servers: HAProxy, an object store, two processes that answer and two candidates for
 * writing.
 */
export async function openNode(
  directory: string,
  stack: AsyncDisposableStack,
  settings: Readonly<Record<string, string>> = {},
): Promise<Cores> {
  const path = join(directory, 'haproxy.cfg');
  writeFileSync(path, haproxyConfig());
  new Program(['haproxy', '-W', '-db', '-f', path], {}, logOf(directory, 'haproxy')).start();
  const { settings: s3 } = stack.use(await startTestS3());
  const { answer, write } = coreRoles();
  const make = (kind: string, roles: string): CoreProcess[] =>
    WAYS.map((way) => ({
      name: `${kind}-${way.toLowerCase()}`,
      databaseUrl: databaseUrl(way),
      settings: {
        SKERRY_CORE_ROLES: roles,
        SKERRY_CORE_PENDING_HORIZON_SECONDS: String(PENDING_SECONDS),
        SKERRY_CORE_S3_ENDPOINT: s3.endpoint,
        SKERRY_CORE_S3_BUCKET: s3.bucket,
        SKERRY_CORE_S3_ACCESS_KEY_ID: s3.accessKeyId,
        SKERRY_CORE_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
        ...settings,
      },
    }));
  const all = [...make('answer', answer), ...make('write', write)];
  const cores = stack.use(new Cores(directory, FIRST_PORT, all));
  await cores.open();
  return cores;
}
