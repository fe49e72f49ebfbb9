import { homedir } from 'node:os';
import { join } from 'node:path';
import type { CoreClient } from '@skerry/client';
import { type InstanceView, parseInstanceContent } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { tellPrice } from '../credits/price.ts';
import { tellOnInterrupt } from '../interrupt.ts';
import type { Ports } from '../options.ts';
import { checkNewName } from './names.ts';
import { rememberInstance } from './records.ts';
import { renderCreated, reportOf, shortId } from './render.ts';
import { readSshKey } from './ssh-key.ts';
import { readCursor, type WaitOptions, type WaitRequest, waitForInstance } from './wait.ts';

export interface InstanceCreateOptions extends WaitOptions {
  readonly name: string;
  readonly image: string;
  readonly cpu: number;
  readonly memory: number;
  readonly disk: number;
  readonly sshKey?: string;
  readonly allow: Ports;
  readonly proxyProtocol?: boolean;
  readonly description?: string;
}

export async function createInstance(context: Context, options: InstanceCreateOptions): Promise<void> {
  const core = await context.openWriter();
  const { name, description, cpu, memory, disk, image, allow } = options;
  await checkNewName(context, core.signer.address, name);
  const { publicKey, identityFile } = await readSshKey(options.sshKey, {
    sshDir: join(homedir(), '.ssh'),
    madeFile: join(context.paths.config, 'ssh', 'id_ed25519'),
    onMade: (file) => context.output.note(`you had no SSH key; created ${file}`),
  });
  const content = parseInstanceContent({
    name,
    ...(description === undefined ? {} : { description }),
    cpu,
    memory,
    disk,
    image,
    ssh_key: publicKey,
    firewall: { ...allow, ...(options.proxyProtocol ? { proxyProtocol: true } : {}) },
  });
  await tellPrice(context, content);
  const cursor = options.wait ? await readCursor(core) : undefined;
  const { instance_id: instanceId, ipv6 } = await core.createInstance(content);
  await rememberInstance(context.paths.config, instanceId, identityFile);
  const instance =
    cursor === undefined
      ? await core.getInstance(instanceId)
      : await waitForCreated(
          context,
          core,
          { instanceId, cursor, isPlaced: ipv6 !== '' },
          options.waitTimeout,
        );
  const report = await reportOf(context, instance);
  context.output.result(report, renderCreated(report));
}

async function waitForCreated(
  { output }: Context,
  core: CoreClient,
  created: Pick<WaitRequest, 'instanceId' | 'cursor' | 'isPlaced'>,
  timeoutMs: number,
): Promise<InstanceView> {
  const { instanceId } = created;
  output.note(`instance ${instanceId}`);
  using progress = output.progress(0);
  using _ = tellOnInterrupt(
    output,
    `still being created: "skerry instance show ${shortId(instanceId)}" tells how far it is`,
  );
  const goal = { kind: 'created' } as const;
  return await waitForInstance({
    ...created,
    core,
    goal,
    phaseBefore: undefined,
    timeoutMs,
    progress,
  });
}
