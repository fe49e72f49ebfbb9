import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSigner, generatePrivateKey, OwnerPass } from '@skerry/client';
import { createHttpServer, createLogger, type HttpServer, listen } from '@skerry/kit';
import type { InstanceView } from '@skerry/protocol';
import { WebSocket } from 'ws';
import type { InstanceDeps } from '../instances/deps.ts';
import { Instances } from '../instances/instances.ts';
import { instanceDirectory } from '../instances/record/record.ts';
import { networkNames } from '../network/names.ts';
import { OwnerAccess } from '../owner/access.ts';
import { Replays } from '../owner/replays.ts';
import { inDirectory } from '../testing/directory.ts';
import { type AllocationSources, addAllocationRoutes } from './allocations.ts';
import { addLogStream, LOG_STREAM_PATHS } from './log-stream.ts';
import { addMachineRoutes, type MachineRoutes } from './machines.ts';

const log = createLogger('test', 'silent');
const NODE = { domain: '127.0.0.1', nodeId: 'f'.repeat(64) };
const owner = createSigner(generatePrivateKey());
const [LARGE, DAMAGED, OTHER] = ['a', 'b', 'c'].map((digit) => digit.repeat(64)) as [string, string, string];

const viewOf = (id: string) =>
  ({
    ...{ instance_id: id, node_id: NODE.nodeId, owner: owner.address, desired: 'running', restart_id: null },
    ...{ cpu: 1, memory: 2_048, disk: 1, image: 'debian:12', ssh_key: '', phase: 'scheduled' },
    firewall: { allowedPorts: [22] },
  }) as InstanceView;

/** A node with a gibibyte of memory, and an instance whose record is damaged. */
async function openNode(dataDir: string, signal: AbortSignal): Promise<Instances> {
  const directory = instanceDirectory(dataDir, DAMAGED);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'vm.json'), '{');
  const deps = {
    ...{ dataDir, log, signal, now: Date.now, network: { start: async () => {} } },
    addresses: { leave() {} },
    ipv4Pool: '172.16.0.0/20',
  };
  const instances = new Instances({
    ...{ nodeId: NODE.nodeId, ipv6Prefix: 'fd00:1:2:3::/64', names: networkNames(NODE.nodeId) },
    ...{ capacity: { cpu: 8, memoryMib: 1_024, diskGib: 64 }, besideBytes: 0, obstacle: null },
    ...{ deps: deps as unknown as InstanceDeps, tell() {} },
  });
  await instances.resume(0);
  await instances.apply(viewOf(LARGE));
  return instances;
}

async function openApp(instances: Instances): Promise<{ app: HttpServer; url: string }> {
  const app = await createHttpServer({ log, socketPaths: LOG_STREAM_PATHS });
  const access = new OwnerAccess({
    ...{ coreUrl: 'http://127.0.0.1:1', domain: () => NODE.domain, nodeId: NODE.nodeId, now: Date.now },
    replays: new Replays({ windowMs: 60_000 }),
  });
  const sources = { instances, access, log, programs: undefined, now: Date.now };
  await app.register(async (scope) =>
    addMachineRoutes(scope as HttpServer, sources as unknown as MachineRoutes),
  );
  addAllocationRoutes(app, { ...sources, signers: [] } as unknown as AllocationSources);
  const clientOf = () => ({ address: '127.0.0.1', key: 'one', isExempt: true, isRelayed: false });
  addLogStream(app, { ...sources, clientOf });
  return { app, url: await listen(app, '127.0.0.1', 0) };
}

interface Told {
  readonly code: string;
  readonly error: string;
}

test('of an instance that a node has not taken it says why, to its owner in whatever way that is asked', () =>
  inDirectory(async (dataDir) => {
    const ending = new AbortController();
    const instances = await openNode(dataDir, ending.signal);
    const { app, url } = await openApp(instances);
    const ask = async (method: 'GET' | 'POST', path: string) => {
      const headers = await (await OwnerPass.create(owner, NODE)).headers({ method, path });
      const { code, error } = (await (await fetch(url + path, { method, headers })).json()) as Told;
      return { code, error };
    };
    const stream = async (id: string) => {
      const path = `/control/machine/${id}/stream_logs`;
      const socket = new WebSocket(url.replace('http', 'ws') + path);
      await once(socket, 'open');
      const auth = await (await OwnerPass.create(owner, NODE)).sign({ method: 'GET', path });
      socket.send(JSON.stringify({ auth }));
      const [data] = await once(socket, 'message');
      socket.terminate();
      const { status, code, reason } = JSON.parse(String(data));
      assert.equal(status, 'failed');
      return { code, error: reason } as Told;
    };
    const askAll = (id: string) =>
      Promise.all([
        ask('GET', `/control/machine/${id}/logs`),
        ask('GET', `/control/machine/${id}/snapshots`),
        ask('POST', `/control/machine/${id}/reboot`),
        ask('POST', `/control/machine/${id}/update`),
        stream(id),
      ]);
    try {
      for (const { code, error } of await askAll(LARGE)) {
        assert.equal(code, 'INSTANCE_NOT_READY');
        assert.match(error, /has not taken the instance yet.*1024 MiB of memory left of the 2048 needed/);
      }
      for (const { code, error } of await askAll(DAMAGED)) {
        assert.equal(code, 'INSTANCE_NOT_READY');
        assert.match(error, /record of the instance cannot be read; its disk stays/);
      }
      for (const { code } of await askAll(OTHER)) assert.equal(code, 'INSTANCE_NOT_FOUND');
      await instances.forget(LARGE);
      for (const { code } of await askAll(LARGE)) assert.equal(code, 'INSTANCE_NOT_FOUND');
    } finally {
      ending.abort();
      await app.close();
      await instances.settled();
    }
  }));
