import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '@skerry/kit/testing/until';
import { AppError } from '@skerry/protocol';
import { copyDiskLive, endLeftCopies } from './disk-jobs.ts';

/** A QEMU as far as jobs go, whose first answers to a command are lost. */
class Qemu {
  readonly jobs = new Map<string, 'running' | 'concluded'>();
  readonly nodes = new Set<string>();
  /** Whether a job ends when that is asked. */
  isObedient = true;
  readonly #cancelled = new Set<string>();
  readonly #lost: string;
  #losses: number;

  constructor(lost = '', losses = 1) {
    this.#lost = lost;
    this.#losses = losses;
  }

  async command(execute: string, args: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
    const answer = this.#do(execute, args);
    if (execute !== this.#lost || this.#losses === 0) return answer;
    this.#losses--;
    throw new AppError('TIMED_OUT', `QEMU did not answer ${execute}`);
  }

  #do(execute: string, args: Readonly<Record<string, unknown>>): unknown {
    const node = String(args['node-name']);
    if (execute === 'blockdev-add') this.nodes.add(node);
    if (execute === 'blockdev-del' && this.jobs.size === 0) this.nodes.delete(node);
    if (execute === 'blockdev-backup') this.jobs.set(String(args['job-id']), 'running');
    if (execute === 'job-cancel' && this.isObedient) {
      this.#cancelled.add(String(args.id));
      this.jobs.set(String(args.id), 'concluded');
    }
    if (execute === 'job-dismiss') this.jobs.delete(String(args.id));
    return execute === 'query-jobs' ? [...this.jobs].map(([id, status]) => this.#shown(id, status)) : {};
  }

  #shown(id: string, status: string) {
    return { id, status, ...(this.#cancelled.has(id) ? { error: 'Operation canceled' } : {}) };
  }
}

const NEVER = { limitMs: 3_600_000, signal: new AbortController().signal };

for (const lost of ['blockdev-backup', 'query-jobs'])
  test(`a copy of which QEMU's answer to ${lost} is lost does not go on`, async () => {
    const qemu = new Qemu(lost);
    await assert.rejects(copyDiskLive(qemu, 'copy', 'a', NEVER), /did not answer/);
    assert.deepEqual([qemu.jobs.size, qemu.nodes.size], [0, 0]);
  });

test('a copy does not go on where QEMU is silent for longer', async () => {
  const qemu = new Qemu('query-jobs', 4);
  await assert.rejects(copyDiskLive(qemu, 'copy', 'a', NEVER), /did not answer/);
  assert.equal(qemu.jobs.size, 1);
  await until('it was ended', () => qemu.jobs.size === 0 && qemu.nodes.size === 0);
});

test('a copy that does not come to its end is ended', async () => {
  const qemu = new Qemu();
  const late = { code: 'TIMED_OUT', message: 'the disk was not copied within 0 minutes' };
  await assert.rejects(copyDiskLive(qemu, 'copy', 'a', { ...NEVER, limitMs: 0 }), late);
  assert.deepEqual([qemu.jobs.size, qemu.nodes.size], [0, 0]);
});

test('a copy that QEMU does not end keeps nobody waiting, and is ended as soon as it can be', async () => {
  const qemu = new Qemu();
  qemu.isObedient = false;
  await assert.rejects(copyDiskLive(qemu, 'copy', 'a', { ...NEVER, limitMs: 0, cancelMs: 0 }), {
    code: 'TIMED_OUT',
  });
  assert.equal(qemu.jobs.size, 1);
  qemu.isObedient = true;
  await until('it was ended', () => qemu.jobs.size === 0 && qemu.nodes.size === 0);
});

test('of the copies that are found only those end that nobody follows', async () => {
  const qemu = new Qemu();
  const copied = copyDiskLive(qemu, 'copy', 'own', NEVER);
  qemu.jobs.set('left', 'running');
  await until('its copy began', () => qemu.jobs.has('own'));
  await endLeftCopies(qemu);
  assert.deepEqual([...qemu.jobs], [['own', 'running']]);
  qemu.jobs.set('own', 'concluded');
  await copied;
  assert.deepEqual([qemu.jobs.size, qemu.nodes.size], [0, 0]);
});
