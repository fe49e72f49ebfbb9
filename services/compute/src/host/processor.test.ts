import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { compareVersions } from '../http/status.ts';
import { listGpus, parseCpuinfo } from './processor.ts';

test('confidential features are those that the processor has, and nothing is made up', () => {
  const text = (flags: string) =>
    `processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7543\ncpu MHz\t\t: 2794.750\nflags\t\t: fpu ${flags}\n`;
  assert.deepEqual(parseCpuinfo(text('svm sev sev_es')), {
    vendor: 'AuthenticAMD',
    model: 'AMD EPYC 7543',
    frequencyMhz: 2794.75,
    features: ['sev', 'sev_es'],
  });
  assert.deepEqual(parseCpuinfo(text('svm severe')).features, []);
  assert.deepEqual(parseCpuinfo(''), { vendor: null, model: null, frequencyMhz: null, features: [] });
});

test('graphics processors are read from the kernel; virtual displays are none', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'skerry-pci-'));
  const put = async (name: string, deviceClass: string, vendor: string, device: string) => {
    await mkdir(join(directory, name));
    for (const [file, text] of Object.entries({ class: deviceClass, vendor, device }))
      await writeFile(join(directory, name, file), `${text}\n`);
  };
  try {
    await put('0000:01:00.0', '0x030200', '0x10de', '0x20b0');
    await put('0000:00:02.0', '0x030000', '0x1234', '0x1111');
    await put('0000:00:03.0', '0x020000', '0x8086', '0x100e');
    assert.deepEqual(await listGpus(directory), [
      {
        vendor: 'NVIDIA',
        device_name: null,
        device_class: '0302',
        device_id: '10de:20b0',
        pci_host: '01:00.0',
      },
    ]);
    assert.deepEqual(await listGpus(join(directory, 'none')), []);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test('versions are compared by their numbers', () => {
  for (const [one, other, sign] of [
    ['1.2.3', '1.2.3', 0],
    ['1.10.0', '1.9.9', 1],
    ['v1.2', '1.2.0', 0],
    ['0.9', 'v1', -1],
    ['1.0.0-rc1', '1.0.0', 0],
  ] as const)
    assert.equal(Math.sign(compareVersions(one, other)), sign, `${one} ${other}`);
});
