import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import { hear } from '@skerry/kit/testing/heard';
import { awaitOutput, endProcess } from '@skerry/kit/testing/processes';
import { until } from '@skerry/kit/testing/until';
import { machineIdOf } from '../../network/names.ts';
import { inDirectory } from '../../testing/directory.ts';
import { uuidOf } from '../../vm/command-line.ts';
import type { InstanceDeps } from '../deps.ts';
import type { Place } from '../place.ts';
import { instanceDirectory, newRecord, type Status, writeRecord } from '../record/record.ts';
import { InstanceWorker } from './worker.ts';

/** What is told of guests that do not come up. */

const LOG = createLogger('test', 'silent');
const ID = 'a'.repeat(64);
const WANTED = {
  ...{ isRunning: true, owner: '0x1', restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
  ...{ image: 'debian:12', sshKey: '', allowedPorts: [22] },
};
const BOOTED_MS = 2_000_000_000_000;
const MINUTE_MS = 60_000;

/** What a QEMU says whose guest boots for ever. */
const BOOTING = `
const values = { 'query-status': { status: 'running' }, 'query-chardev': [], 'query-jobs': [], 'ringbuf-read': '' };
require('net').createServer((socket) => {
  let rest = '';
  socket.on('error', () => {}).setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\\n');
    rest = lines.pop();
    for (const { execute, id } of lines.map((line) => JSON.parse(line)))
      socket.write(JSON.stringify({ return: values[execute] ?? {}, id }) + '\\n');
  });
  socket.write('{"QMP":{}}\\n');
}).listen('qmp.sock', () => console.log('there'));
`;

/** The worker of an instance whose guest boots, and what it tells, at a time. */
async function bootAt(dataDir: string, nowMs: number) {
  const status: Status = { phase: 'starting', reason: null, observedAtMs: BOOTED_MS, restartId: null };
  const record = { ...newRecord(ID, WANTED, 1), base: 'bases/x', bootedAtMs: BOOTED_MS, status };
  await writeRecord(dataDir, record);
  const program = join(dataDir, 'qemu-system-booting');
  await copyFile(process.execPath, program);
  const args = ['-e', BOOTING, '--', '-uuid', uuidOf(machineIdOf(ID))];
  const qemu = spawn(program, args, {
    cwd: instanceDirectory(dataDir, ID),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await awaitOutput(qemu, 'the stand-in for QEMU', hear(qemu, ['stderr']));
  const end = () => endProcess(qemu, 'SIGKILL');
  const told: Status[] = [];
  const ending = new AbortController();
  const deps = {
    ...{ dataDir, signal: ending.signal, log: LOG, now: () => nowMs, ipv4Pool: '172.16.0.0/16' },
    network: { answers: async () => false },
    onStatus: (_id: string, one: Status) => told.push(one),
  };
  const place = { id: ID, machineId: machineIdOf(ID), tap: 't', guest: 'fd00::1', mac: '52:00:00:00:00:01' };
  const worker = new InstanceWorker(deps as unknown as InstanceDeps, place as Place, record);
  await worker.adopt(MINUTE_MS, true);
  const working = worker.work();
  return {
    ...{ worker, told, end },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await working;
      await end();
    },
  };
}

const untilTold = (told: readonly Status[], words: RegExp) =>
  until('it is told', () => told.find(({ reason }) => words.test(reason?.message ?? '')));

test('of a guest that does not come up in its time it is told where its words are', () =>
  inDirectory(async (dataDir) => {
    await using boot = await bootAt(dataDir, BOOTED_MS + 5 * MINUTE_MS);
    const { phase, reason } = await untilTold(boot.told, /does not answer; its log says/);
    assert.deepEqual([phase, reason?.code, boot.told.length], ['starting', 'GUEST_SILENT', 1]);
  }));

test('a boot that began by a clock which was set back since begins by the new one', () =>
  inDirectory(async (dataDir) => {
    const nowMs = BOOTED_MS - 600 * MINUTE_MS;
    await using boot = await bootAt(dataDir, nowMs);
    await until('it is noted', () => boot.worker.record.bootedAtMs === nowMs);
  }));

test('why a QEMU ended is told in its own words', () =>
  inDirectory(async (dataDir) => {
    await using boot = await bootAt(dataDir, BOOTED_MS);
    await writeFile(join(instanceDirectory(dataDir, ID), 'qemu.log'), 'qemu: cannot map guest memory\n');
    await boot.end();
    const { reason } = await untilTold(boot.told, /exited unexpectedly/);
    assert.match(
      reason?.message ?? '',
      /exited unexpectedly: qemu: cannot map guest memory \(retrying in 1 s\)/,
    );
  }));

test('what a QEMU wrote long before it ended is not told as the reason', () =>
  inDirectory(async (dataDir) => {
    await using boot = await bootAt(dataDir, BOOTED_MS);
    const log = join(instanceDirectory(dataDir, ID), 'qemu.log');
    await writeFile(log, 'qemu: a warning of its start\n');
    const before = Date.now() / 1_000 - 3_600;
    await utimes(log, before, before);
    await boot.end();
    const { reason } = await untilTold(boot.told, /exited unexpectedly/);
    assert.match(reason?.message ?? '', /exited unexpectedly \(retrying in 1 s\)/);
  }));
