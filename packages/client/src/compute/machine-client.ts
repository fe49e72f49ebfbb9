import {
  type BackupView,
  LogFrame,
  type LogLineView,
  MACHINES_API,
  type SnapshotView,
} from '@skerry/protocol/api/compute/machines';
import { NODE_API } from '@skerry/protocol/api/compute/node';
import type { AnswerOf, Operation } from '@skerry/protocol/api/operation';
import { AppError, sha256Hex, sha256HexOf } from '@skerry/protocol/forms';
import { type CallInput, type CallOptions, call, createAnswerParser, parseJson, urlOfCall } from '../call.ts';
import { OwnerPass } from '../owner-pass.ts';
import { chunksOf } from '../reads/chunks.ts';
import { request } from '../request.ts';
import type { AskedSigner } from '../signer.ts';
import type { ComputeNode } from './compute-node.ts';

const LONG_TIMEOUT_MS = 3_600_000;
/** A whole disk comes or goes, hundreds of gigabytes over a line of an owner's own. */
const DISK_TIMEOUT_MS = 24 * 3_600_000;
const OCTETS = 'application/octet-stream';

const parseLogFrame = createAnswerParser(LogFrame, 'a frame of the log stream');

/** What a log stream says. Throws UNEXPECTED_ANSWER. */
export const readLogFrame = (text: string): LogFrame => parseLogFrame(parseJson(text, 'the log stream'));

const ACTIONS = {
  stop: MACHINES_API.stopMachine,
  reboot: MACHINES_API.rebootMachine,
  reinstall: MACHINES_API.reinstallMachine,
  erase: MACHINES_API.eraseMachine,
} as const;

/** What an owner asks the compute node of an instance; of a program, its logs. Every request is signed; every failure is an AppError. */
export class MachineClient {
  readonly url: string;
  readonly #instanceId: string;
  readonly #pass: OwnerPass;
  readonly #signal: AbortSignal | undefined;

  private constructor(url: string, instanceId: string, pass: OwnerPass, signal: AbortSignal | undefined) {
    this.url = url;
    this.#instanceId = instanceId;
    this.#pass = pass;
    this.#signal = signal;
  }

  /**
   * Signs for the node that is meant: one that answers could name another as itself, and repeat there what it was asked. Throws
   * UNEXPECTED_ANSWER where it does.
   * @param signal ends every request of this client
   */
  static async open(
    { url, nodeId }: ComputeNode,
    instanceId: string,
    signer: AskedSigner,
    { signal }: Pick<CallOptions, 'signal'> = {},
  ): Promise<MachineClient> {
    const { DOMAIN_NAME: domain, node_hash: told } = await call(url, NODE_API.getNodeConfig, {}, { signal });
    if (told !== undefined && told !== nodeId)
      throw new AppError('UNEXPECTED_ANSWER', `${url} says that it is another node than ${nodeId}`);
    return new MachineClient(url, instanceId, await OwnerPass.create(signer, { domain, nodeId }), signal);
  }

  async #ask<O extends Operation>(
    operation: O,
    input: CallInput<O>,
    options: CallOptions = {},
  ): Promise<AnswerOf<O>> {
    const { body: value } = input as { readonly body?: unknown };
    const body = value === undefined || value instanceof Blob ? value : JSON.stringify(value);
    const bodySha256 =
      body === undefined
        ? undefined
        : await (body instanceof Blob ? sha256HexOf(chunksOf(body.stream())) : sha256Hex(body));
    // Signed when all is at hand: an operation is good for two minutes.
    const path = urlOfCall('', operation, input);
    const headers = await this.#pass.headers({ method: operation.method, path, bodySha256 });
    const sent = (body === undefined ? input : { ...(input as object), body }) as CallInput<O>;
    return call(this.url, operation, sent, {
      signal: this.#signal,
      ...options,
      headers: { ...headers, ...(body instanceof Blob ? { 'content-type': OCTETS } : {}) },
    });
  }

  get #params() {
    return { ref: this.#instanceId };
  }

  /** `stop`: power down until it is started again; `reboot`; `reinstall`: a new disk from the image; `erase`: what was put aside. */
  act(action: keyof typeof ACTIONS): Promise<Record<string, unknown>> {
    return this.#ask(ACTIONS[action], { params: this.#params }, { timeoutMs: LONG_TIMEOUT_MS });
  }

  /** The last lines of the console, or of what the program wrote, oldest first. */
  readLogs(limit: number): Promise<LogLineView[]> {
    return this.#ask(MACHINES_API.readMachineLogs, { params: this.#params, query: { limit } });
  }

  /** The address of the log stream, and the first frame that it wants. */
  async openLogs(): Promise<{ url: string; frame: string }> {
    const path = `/control/machine/${this.#instanceId}/stream_logs`;
    return {
      url: this.url.replace(/^http/, 'ws') + path,
      frame: JSON.stringify({ auth: await this.#pass.sign({ method: 'GET', path }) }),
    };
  }

  async listSnapshots(): Promise<SnapshotView[]> {
    return (await this.#ask(MACHINES_API.listSnapshots, { params: this.#params })).snapshots;
  }

  async createSnapshot(name: string): Promise<SnapshotView[]> {
    const input = { params: this.#params, body: { name } };
    return (await this.#ask(MACHINES_API.createSnapshot, input)).snapshots;
  }

  async deleteSnapshot(name: string): Promise<SnapshotView[]> {
    const input = { params: { ...this.#params, name } };
    return (await this.#ask(MACHINES_API.deleteSnapshot, input)).snapshots;
  }

  async listBackups(): Promise<BackupView[]> {
    return (await this.#ask(MACHINES_API.listBackups, { params: this.#params })).backups;
  }

  startBackup(): Promise<BackupView> {
    return this.#ask(MACHINES_API.startBackup, { params: this.#params });
  }

  deleteBackup(id: string): Promise<Record<string, unknown>> {
    return this.#ask(MACHINES_API.deleteBackup, { params: { ...this.#params, id } });
  }

  /** The bytes of a backup that is done. The caller checks them. Throws UNEXPECTED_ANSWER where its link leads elsewhere than to the node. */
  async fetchBackup({ download_url: link }: BackupView): Promise<Response> {
    const { origin } = new URL(this.url);
    const url = `${this.url}${link}`;
    if (!link?.startsWith('/') || URL.parse(url)?.origin !== origin)
      throw new AppError('UNEXPECTED_ANSWER', `${this.url} gives no path of its own for the backup`);
    return request(url, { timeoutMs: DISK_TIMEOUT_MS, signal: this.#signal });
  }

  /** From a snapshot, a backup of the node's, or a file that is stored on the network. */
  restore(
    from: { snapshot: string } | { backup_id: string } | { volume_ref: string },
  ): Promise<Record<string, unknown>> {
    return this.#restore(from, LONG_TIMEOUT_MS);
  }

  /** From a disk image. @param file a Blob, which may be backed by a file */
  restoreFile(file: Blob): Promise<Record<string, unknown>> {
    return this.#restore(file, DISK_TIMEOUT_MS);
  }

  #restore(body: object, timeoutMs: number): Promise<Record<string, unknown>> {
    const input = { params: this.#params, body };
    return this.#ask(MACHINES_API.restoreMachine, input, { timeoutMs });
  }
}
