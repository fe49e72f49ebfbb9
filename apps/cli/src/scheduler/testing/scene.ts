import { join } from 'node:path';
import { CoreClient, call, createSigner, generatePrivateKey, type Signer } from '@skerry/client';
import { fieldsOf, type InstanceView, NETWORK_POST } from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { startDaemon } from '../../testing/parts.ts';
import { until } from '../../testing/shell.ts';
import type { FakeNode } from './nodes.ts';

/** Only what hangs takes as long. */
export const TIMEOUT_MS = 600_000;
const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz';
const owner = createSigner(generatePrivateKey());

/** A scheduler that trusts some nodes, with a data directory and a key of this name. */
export const schedule = (dir: string, name: string, coreUrl: string, nodes: readonly FakeNode[]) =>
  startDaemon('scheduler', {
    SKERRY_SCHEDULER_DATA_DIR: join(dir, name),
    ...{
      SKERRY_SCHEDULER_HOST: '127.0.0.1',
      SKERRY_SCHEDULER_PORT: '0',
      SKERRY_SCHEDULER_CORE_URL: coreUrl,
    },
    SKERRY_SCHEDULER_NODES: nodes.map(({ address }) => address).join(','),
    SKERRY_SCHEDULER_PROBE_INTERVAL_SECONDS: '1',
  });

/** A client of the owner of all instances. */
export const ownerOf = (coreUrl: string) => new CoreClient({ url: coreUrl, signer: owner });

export async function waitForPlace(coreUrl: string, id: string): Promise<InstanceView> {
  const client = new CoreClient({ url: coreUrl });
  await until(`${id} is placed`, TIMEOUT_MS, async () => (await client.getInstance(id)).node_id !== null);
  return client.getInstance(id);
}

/** An instance that a scheduler has placed. */
export async function createPlaced(coreUrl: string, name: string): Promise<InstanceView> {
  const { instance_id: id } = await ownerOf(coreUrl).createInstance({
    ...{ name, description: '', cpu: 1, memory: 512, disk: 4, image: 'debian:12' },
    ...{ ssh_key: SSH_KEY, firewall: { allowedPorts: [22] } },
  });
  return waitForPlace(coreUrl, id);
}

const instanceOf = (content: unknown) => String(fieldsOf(fieldsOf(content).content).instance_id);

/** Forgets the placements that a key has signed. @param of which instances */
export async function takeBack(coreUrl: string, signer: Signer, of: (instanceId: string) => boolean) {
  const query = { addresses: signer.address, contentTypes: NETWORK_POST.allocation, pagination: 100 };
  const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, { query });
  const aimed = messages.filter((one) => of(instanceOf(one.content)));
  await new CoreClient({ url: coreUrl, signer }).forget(aimed.map((one) => one.item_hash));
}
