import assert from 'node:assert/strict';
import type { Call } from '../call.ts';
import { type Loose, NotOffered } from '../sdk.ts';
import type { World } from '../world.ts';

const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz compat';

const create = (world: World, more: object) =>
  world.client('InstanceMessageClient').send({
    account: world.account,
    channel: world.channel,
    authorized_keys: [SSH_KEY],
    metadata: { name: 'compat' },
    ...more,
  });

async function placeOf(world: World, hash: string): Promise<Loose> {
  const response = await fetch(`${world.network.core}/api/v0/instances/${hash}`);
  return response.json();
}

/** An instance that is taken is placed, or is refused before it takes room. */
const creates = (name: string, config: object, noted: string): Call => ({
  name: `instance.send, ${name}`,
  async run(world) {
    const { item_hash } = await create(world, config);
    const { phase, reason } = await placeOf(world, item_hash);
    assert.notEqual(phase, 'failed', JSON.stringify(reason));
    world.note(noted, item_hash);
  },
});

const operates = (method: string, ...args: readonly unknown[]): Call => ({
  name: `vm.${method}`,
  async run(world) {
    const { VmClient } = world.sdk.load('client');
    const client = VmClient && new VmClient(world.account, world.network.compute);
    if (client?.[method] === undefined) throw new NotOffered(`VmClient has no ${method}`);
    const { status, response } = await client[method](world.noted('instance'), ...args);
    // Whether the machine runs already is a matter of the machine below; what counts is that the operation is known and the signature taken.
    assert.ok([200, 202, 409].includes(status), `${status} ${response}`);
  },
});

export const machineCalls: readonly Call[] = [
  creates('as by default', {}, 'default instance'),
  creates('an image by name', { image: 'debian:12' }, 'instance'),
  creates(
    'resources and volumes',
    {
      image: 'debian:12',
      resources: { vcpus: 1, memory: 512, seconds: 30 },
      volumes: [{ ephemeral: true, size_mib: 16, mount: '/scratch' }],
      environment: { internet: true, aleph_api: true, hypervisor: 'qemu' },
      payment: { chain: 'ETH', type: 'credit' },
    },
    'sized instance',
  ),
  operates('startInstance'),
  operates('rebootInstance'),
  operates('stopInstance'),
  operates('expireInstance'),
  operates('createBackup'),
  operates('getBackup'),
  operates('reinstallInstance'),
  {
    name: 'forget.send, an instance',
    async run(world) {
      await world.client('ForgetMessageClient').send({
        account: world.account,
        channel: world.channel,
        hashes: [world.noted('instance')],
        sync: true,
      });
      const { status } = await fetch(`${world.network.core}/api/v0/price/${world.noted('instance')}`);
      assert.equal(status, 410);
    },
  },
  operates('eraseInstance'),
];
