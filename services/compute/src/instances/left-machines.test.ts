import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLogger } from '@skerry/kit';
import type { Ipv4Claim } from '../network/address-book.ts';
import { ipv4LinkOf } from '../network/ipv4.ts';
import { machineIdOf, networkNames, tapName } from '../network/names.ts';
import { inDirectory } from '../testing/directory.ts';
import { uuidOf } from '../vm/command-line.ts';
import type { InstanceDeps } from './deps.ts';
import { Instances } from './instances.ts';
import { findLeftMachines } from './left-machines.ts';
import { instanceDirectory, newRecord, writeRecord } from './record/record.ts';

const POOL = '172.16.0.0/20';
const NAMES = networkNames('f'.repeat(64));
const [WHOLE, RUNNING, ENDED] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [string, string, string];
const WANTED = {
  ...{ isRunning: false, restartId: null, cpu: 1, memoryMib: 512, diskGib: 1 },
  ...{ image: 'debian:12', sshKey: '', allowedPorts: [] },
};

/** A program that is taken for the QEMU of an instance. */
async function startQemu(dataDir: string, id: string): Promise<AsyncDisposable> {
  const program = join(dataDir, 'qemu-system-shell');
  await copyFile('/bin/sh', program);
  const args = ['-c', 'read line', '-uuid', uuidOf(machineIdOf(id))];
  const cwd = instanceDirectory(dataDir, id);
  const machine = spawn(program, args, { cwd, stdio: ['pipe', 'ignore', 'ignore'] });
  await once(machine, 'spawn');
  return {
    async [Symbol.asyncDispose]() {
      machine.kill('SIGKILL');
      await once(machine, 'exit');
    },
  };
}

test('a machine that runs keeps its tap and its link though the record of its instance is damaged', () =>
  inDirectory(async (dataDir) => {
    const own: Ipv4Claim = { link: 0, hostPorts: {} };
    await writeRecord(dataDir, { ...newRecord(WHOLE, WANTED, 1), base: 'bases/x', ipv4: own });
    for (const id of [RUNNING, ENDED]) {
      await mkdir(instanceDirectory(dataDir, id), { recursive: true });
      await writeFile(join(instanceDirectory(dataDir, id), 'vm.json'), '{"version":1');
    }
    await using _qemu = await startQemu(dataDir, RUNNING);
    assert.deepEqual(await findLeftMachines(dataDir), [RUNNING]);
    const ending = new AbortController();
    const started: unknown[] = [];
    const kept: [string, number][] = [];
    const deps = {
      ...{
        dataDir,
        ipv4Pool: POOL,
        now: Date.now,
        log: createLogger('test', 'silent'),
        signal: ending.signal,
      },
      network: {
        findGateway: async (tap: string) =>
          tap === tapName(NAMES, RUNNING) ? ipv4LinkOf(POOL, 7).gateway : undefined,
        start: async (guests: readonly { tap: string }[], held: readonly string[]) =>
          void started.push([guests.map(({ tap }) => tap), held]),
      },
      addresses: { restore() {}, keep: (id: string, link: number) => kept.push([id, link]) },
    } as unknown as InstanceDeps;
    const instances = new Instances({
      ...{
        nodeId: 'f'.repeat(64),
        ipv6Prefix: 'fd00:1:2:3::/64',
        names: NAMES,
        besideBytes: 0,
        obstacle: null,
      },
      ...{ capacity: { cpu: 1, memoryMib: 512, diskGib: 1 }, deps, tell() {} },
    });
    await instances.resume(0);
    ending.abort();
    await instances.settled();
    assert.deepEqual(started, [[[tapName(NAMES, WHOLE)], [tapName(NAMES, RUNNING)]]]);
    assert.deepEqual(kept, [[RUNNING, 7]]);
  }));
