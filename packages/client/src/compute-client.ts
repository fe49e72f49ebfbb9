import {
  AppError,
  NETWORK_CHANNEL,
  NETWORK_POST,
  type NodeContent,
  sha256Hex,
  sha256HexOf,
} from '@skerry/protocol';
import type { CoreClient } from './core-client.ts';
import { OwnerPass } from './owner-pass.ts';
import { type RequestOptions, request, requestJson } from './request.ts';
import type { Signer } from './signer.ts';

export interface BackupShown {
  backup_id: string;
  state: 'running' | 'done' | 'failed';
  reason: { code: string; message: string } | null;
  size: number | null;
  /** `sha256:` and 64 hexadecimal digits. */
  checksum: string | null;
  created_at: string;
  expires_at: string;
  /** A path at the node. */
  download_url: string | null;
}

export interface SnapshotShown {
  name: string;
  created_at: string;
}

export interface LogLine {
  MESSAGE: string;
  /** Microseconds since 1970. */
  __REALTIME_TIMESTAMP: string;
}

type Method = 'GET' | 'POST' | 'DELETE';
const LONG_TIMEOUT_MS = 3_600_000;
const PAGE_SIZE = 100;
const OCTETS = 'application/octet-stream';

/** Where a compute node is, by its own newest announcement. Throws NODE_NOT_FOUND. */
export async function findNodeUrl(core: CoreClient, nodeAddress: string): Promise<string> {
  const query = new URLSearchParams({
    channels: NETWORK_CHANNEL.compute,
    types: NETWORK_POST.node,
    addresses: nodeAddress,
    pagination: String(PAGE_SIZE),
  });
  const { posts } = await requestJson<{ posts: { content: NodeContent }[] }>(
    `${core.url}/api/v0/posts.json?${query}`,
  );
  const announced = posts
    .map(({ content }) => content)
    .sort((one, other) => other.announced_at_ms - one.announced_at_ms);
  const url = announced[0]?.url;
  if (url === undefined)
    throw new AppError('NODE_NOT_FOUND', `the compute node ${nodeAddress} has not said where it is`);
  return url.replace(/\/+$/, '');
}

/** What an owner asks the compute node of an instance. Every request is signed; every failure is an AppError. */
export class MachineClient {
  readonly url: string;
  readonly #instanceId: string;
  readonly #pass: OwnerPass;

  private constructor(url: string, instanceId: string, pass: OwnerPass) {
    this.url = url;
    this.#instanceId = instanceId;
    this.#pass = pass;
  }

  static async open(url: string, instanceId: string, signer: Signer): Promise<MachineClient> {
    const { DOMAIN_NAME: domain, node_hash: nodeId } = await requestJson<{
      DOMAIN_NAME: string;
      node_hash?: string;
    }>(`${url}/status/config`);
    return new MachineClient(url, instanceId, await OwnerPass.create(signer, { domain, nodeId }));
  }

  async #ask<T>(method: Method, action: string, body?: unknown, options: RequestOptions = {}): Promise<T> {
    const path = `/control/machine/${this.#instanceId}/${action}`;
    const bodySha256 =
      body === undefined
        ? undefined
        : await (body instanceof Blob ? sha256HexOf(body.stream()) : sha256Hex(JSON.stringify(body)));
    // Signed when all is at hand: an operation is good for two minutes.
    const headers = await this.#pass.headers({ method, path, bodySha256 });
    return requestJson<T>(this.url + path, {
      method,
      ...options,
      headers: { ...headers, ...(body instanceof Blob ? { 'content-type': OCTETS } : {}) },
      ...(body === undefined ? {} : { body: body instanceof Blob ? body : JSON.stringify(body) }),
    });
  }

  /** `stop`: power down until it is started again; `reboot`; `reinstall`: a new disk from the image; `erase`: what was put aside. */
  act(action: 'stop' | 'reboot' | 'reinstall' | 'erase'): Promise<Record<string, unknown>> {
    return this.#ask('POST', action, undefined, { timeoutMs: LONG_TIMEOUT_MS });
  }

  readLogs(limit: number): Promise<LogLine[]> {
    return this.#ask('GET', `logs?limit=${limit}`);
  }

  /** The address of the log stream, and the first frame that it wants. */
  async openLogs(): Promise<{ url: string; frame: string }> {
    const path = `/control/machine/${this.#instanceId}/stream_logs`;
    return {
      url: this.url.replace(/^http/, 'ws') + path,
      frame: JSON.stringify({ auth: await this.#pass.sign({ method: 'GET', path }) }),
    };
  }

  async listSnapshots(): Promise<SnapshotShown[]> {
    return (await this.#ask<{ snapshots: SnapshotShown[] }>('GET', 'snapshots')).snapshots;
  }

  async createSnapshot(name: string): Promise<SnapshotShown[]> {
    return (await this.#ask<{ snapshots: SnapshotShown[] }>('POST', 'snapshots', { name })).snapshots;
  }

  async deleteSnapshot(name: string): Promise<SnapshotShown[]> {
    const path = `snapshots/${encodeURIComponent(name)}`;
    return (await this.#ask<{ snapshots: SnapshotShown[] }>('DELETE', path)).snapshots;
  }

  async listBackups(): Promise<BackupShown[]> {
    return (await this.#ask<{ backups: BackupShown[] }>('GET', 'backup')).backups;
  }

  startBackup(): Promise<BackupShown> {
    return this.#ask('POST', 'backup');
  }

  deleteBackup(id: string): Promise<Record<string, unknown>> {
    return this.#ask('DELETE', `backup/${id}`);
  }

  /** The bytes of a backup that is done. The caller checks them. */
  fetchBackup({ download_url: link }: BackupShown): Promise<Response> {
    return request(`${this.url}${link}`, { timeoutMs: LONG_TIMEOUT_MS });
  }

  /** From a snapshot, a backup of the node's, or a file that is stored on the network. */
  restore(
    from: { snapshot: string } | { backup_id: string } | { volume_ref: string },
  ): Promise<Record<string, unknown>> {
    return this.#ask('POST', 'restore', from, { timeoutMs: LONG_TIMEOUT_MS });
  }

  /** From a disk image. @param file a Blob, which may be backed by a file */
  restoreFile(file: Blob): Promise<Record<string, unknown>> {
    return this.#ask('POST', 'restore', file, { timeoutMs: LONG_TIMEOUT_MS });
  }
}
