import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copyDiskLive } from './disk-jobs.ts';

/** A QEMU as far as jobs go, whose answer to the first question after a copy began is lost. */
class Qemu {
  readonly jobs = new Map<string, 'running' | 'concluded'>();
  readonly nodes = new Set<string>();
  readonly #lost: string;

  constructor(lost: string) {
    this.#lost = lost;
  }
  #isLost = false;

  async command(execute: string, args: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    const answer = this.#do(execute, args);
    if (execute !== this.#lost || this.#isLost) return answer;
    this.#isLost = true;
    throw new Error(`QEMU did not answer ${execute}`);
  }

  #do(execute: string, args: Readonly<Record<string, unknown>>): unknown {
    const node = String(args['node-name']);
    if (execute === 'blockdev-add') this.nodes.add(node);
    if (execute === 'blockdev-del' && this.jobs.size === 0) this.nodes.delete(node);
    if (execute === 'blockdev-backup') this.jobs.set(String(args['job-id']), 'running');
    if (execute === 'job-cancel') this.jobs.set(String(args.id), 'concluded');
    if (execute === 'job-dismiss') this.jobs.delete(String(args.id));
    return execute === 'query-jobs' ? [...this.jobs].map(([id, status]) => ({ id, status })) : {};
  }
}

for (const lost of ['blockdev-backup', 'query-jobs'])
  test(`a copy of which QEMU's answer to ${lost} is lost does not go on`, async () => {
    const qemu = new Qemu(lost);
    await assert.rejects(copyDiskLive(qemu, 'copy', 'a', new AbortController().signal), /did not answer/);
    assert.deepEqual([qemu.jobs.size, qemu.nodes.size], [0, 0]);
  });
