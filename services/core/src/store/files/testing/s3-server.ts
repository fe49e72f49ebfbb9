import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { awaitReady, endProcess } from '@skerry/kit/testing/processes';
import type { S3Settings } from '../s3/request.ts';

const CHILD = fileURLToPath(new URL('./s3-child.ts', import.meta.url));
/** The one account that the server knows; it checks the signature of every request. */
const ACCOUNT = 'S3RVER';

export interface TestS3 extends AsyncDisposable {
  readonly settings: S3Settings;
}

/** A real S3-compatible server in a process of its own, with one bucket, its objects in a directory of its own. */
export async function startTestS3(): Promise<TestS3> {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-s3-'));
  const bucket = 'skerry';
  // It makes the tokens of its listings with DES, which OpenSSL 3 only has on demand.
  const child = fork(CHILD, [directory, bucket], { execArgv: ['--openssl-legacy-provider'] });
  const { port } = await awaitReady<{ port: number }>(child, 'the S3 server');
  return {
    settings: {
      endpoint: `http://127.0.0.1:${port}`,
      bucket,
      region: 'us-east-1',
      accessKeyId: ACCOUNT,
      secretAccessKey: ACCOUNT,
    },
    async [Symbol.asyncDispose]() {
      await endProcess(child, 'SIGKILL');
      await rm(directory, { recursive: true, force: true });
    },
  };
}
