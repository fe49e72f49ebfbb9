import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INSTANCE_SIZES, parseInstanceContent } from '@skerry/protocol/forms';
import { firewallOf, type MachineForm, portsText, readMachineForm, SIZES } from './machine-form.ts';

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz me@home';
const FORM: MachineForm = {
  ...{ name: ' web ', image: 'debian:12', cpu: '1', memory: '512', disk: '4' },
  ...{ ports: '22, 80 443,443,udp:443', sshKey: `${KEY}\n` },
};

test('what is typed for a machine is what a core node takes', () => {
  for (const { cpu, memory, disk } of SIZES) {
    const read = readMachineForm({ ...FORM, cpu: `${cpu}`, memory: `${memory}`, disk: `${disk}` });
    assert.ok('content' in read);
    const { firewall, name } = parseInstanceContent(read.content);
    assert.deepEqual([name, firewall], ['web', { allowedPorts: [22, 80, 443], allowedUdpPorts: [443] }]);
  }
});

test('what is open is shown as it is typed', () => {
  for (const text of ['', '22', '22, 80, 443, udp:443, udp:51820'])
    assert.equal(portsText(firewallOf(text)!), text);
  assert.equal(firewallOf('22, 443x'), undefined);
});

test('the first field that is wrong is named', () => {
  const wrong: Partial<MachineForm>[] = [
    { name: ' ' },
    { image: '' },
    { cpu: 'x' },
    { memory: '0' },
    { disk: '-1' },
    { ports: '22, 70000' },
    { ports: '22, udp:x' },
    { sshKey: '' },
    { sshKey: '-----BEGIN OPENSSH PRIVATE KEY-----' },
    { sshKey: `${KEY}\n${KEY}` },
  ];
  for (const change of wrong) {
    const read = readMachineForm({ ...FORM, ...change });
    assert.ok('field' in read, JSON.stringify(change));
    assert.equal(read.field, Object.keys(change)[0]);
  }
});

test('a size that no core node takes is refused with the range that it takes', () => {
  const faults = [
    { cpu: '0' },
    { cpu: '1.5' },
    { cpu: '257' },
    { memory: '1' },
    { memory: '9999999' },
    { disk: '99999999' },
  ].map((change) => {
    const read = readMachineForm({ ...FORM, ...change });
    assert.ok('fault' in read, JSON.stringify(change));
    return read.fault;
  });
  const memory = 'The memory is a whole number of MiB from 128 to 1,048,576.';
  const cores = 'The cores are a whole number from 1 to 256.';
  const disk = 'The disk is a whole number of GiB from 1 to 2,048.';
  assert.deepEqual(faults, [cores, cores, cores, memory, memory, disk]);
  const { cpu: least, memory: most } = INSTANCE_SIZES;
  const edge = readMachineForm({ ...FORM, cpu: `${least.minimum}`, memory: `${most.maximum}` });
  assert.ok('content' in edge && parseInstanceContent(edge.content));
});
