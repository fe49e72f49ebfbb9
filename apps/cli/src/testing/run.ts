import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { InstanceView } from '@skerry/protocol';

export async function createTestDir(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'skerry-cli-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** An instance that runs; tests change what they are about. */
export const RUNNING: InstanceView = {
  instance_id: `1234${'ab'.repeat(30)}`,
  owner: `0x${'1'.repeat(40)}`,
  name: 'web',
  description: '',
  cpu: 1,
  memory: 512,
  disk: 4,
  image: 'debian:12',
  ipv6: '2001:db8::1',
  status: 'running',
  created_at: 1_000,
  updated_at: 1_000,
  ssh_key: 'ssh-ed25519 AAAA',
  firewall: { allowedPorts: [22] },
  desired: 'running',
  restart_id: null,
  node_id: 'c'.repeat(64),
  node_address: `0x${'2'.repeat(40)}`,
  phase: 'running',
  reason: null,
};
