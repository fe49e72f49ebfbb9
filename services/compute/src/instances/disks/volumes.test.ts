import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildNetworkMessage, createSigner, generatePrivateKey } from '@skerry/client';
import { AppError, sha256Hex } from '@skerry/protocol';
import type { MessageSource } from '../../files/message.ts';
import { makeVolumes } from './volumes.ts';

const signer = createSigner(generatePrivateKey());
const FILE = 'what a volume holds';
const isError = (code: string) => (error: unknown) => error instanceof AppError && error.code === code;

/** A core node with one instance. */
function coreWith(volumes: readonly object[]): { core: MessageSource; instanceId: string } {
  const content = {
    ...{ allow_amend: false, resources: {}, environment: {} },
    rootfs: { parent: { ref: 'debian:12' }, size_mib: 1_024 },
    volumes,
  };
  const { body, itemHash } = buildNetworkMessage({ type: 'INSTANCE', content }, signer);
  const { message } = JSON.parse(body);
  const core = {
    async getMessage(hash: string) {
      if (hash !== itemHash) throw new AppError('MESSAGE_NOT_FOUND', 'none');
      return { type: 'INSTANCE', ...message, signed_text: null, message };
    },
    getFile: async () => new Response(FILE),
  };
  return { core: core as unknown as MessageSource, instanceId: itemHash };
}

test('volumes are made once, by what the message says; files are whole sectors', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  const room = { directory, diskGib: 2, limitBytes: 1_000 };
  try {
    const { core, instanceId } = coreWith([
      { ref: sha256Hex(FILE), mount: '/opt/given' },
      { ephemeral: true, size_mib: 8, mount: '/srv/../etc' },
      { size_mib: 16, mount: '/srv/kept' },
    ]);
    const made = await makeVolumes(core, { instanceId, ...room });
    assert.deepEqual(made, {
      rootMib: 2_024,
      volumes: [
        { file: 'volume-0.raw', isReadOnly: true, sizeMib: 0, mount: '/opt/given' },
        { file: 'volume-1.raw', isReadOnly: false, sizeMib: 8, mount: null },
        { file: 'volume-2.raw', isReadOnly: false, sizeMib: 16, mount: '/srv/kept' },
      ],
    });
    const given = await readFile(join(directory, 'volume-0.raw'));
    assert.deepEqual([given.length, given.toString('utf8', 0, FILE.length)], [512, FILE]);
    assert.equal((await stat(join(directory, 'volume-1.raw'))).size, 8 * 1024 ** 2);
    await writeFile(join(directory, 'volume-2.raw'), 'written by the guest');
    assert.deepEqual(await makeVolumes(core, { instanceId, ...room }), made);
    assert.equal(await readFile(join(directory, 'volume-2.raw'), 'utf8'), 'written by the guest');
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('volumes that do not fit, or are not there, are refused; without any nothing is asked for', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-volumes-'));
  const room = { directory, diskGib: 1, limitBytes: 4 };
  try {
    const refusals: [object, string][] = [
      [{ size_mib: 1_024 }, 'DISK_TOO_SMALL'],
      [{ ref: sha256Hex(FILE) }, 'FILE_TOO_LARGE'],
      [{ ref: sha256Hex('another one') }, 'FILE_TOO_LARGE'],
    ];
    for (const [volume, code] of refusals) {
      const { core, instanceId } = coreWith([volume]);
      await assert.rejects(makeVolumes(core, { instanceId, ...room }), isError(code));
    }
    const { core } = coreWith([]);
    const none = await makeVolumes(core, { instanceId: '0'.repeat(64), ...room });
    assert.deepEqual(none, { volumes: [], rootMib: 1_024 });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
