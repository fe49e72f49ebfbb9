import { homedir } from 'node:os';
import { join } from 'node:path';
import type { CoreClient } from '@skerry/client';
import { type InstanceView, instanceNeeds, parseInstanceContent } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { tellPrice } from '../credits/price.ts';
import { type Accepted, afterAccepted } from '../messages/accepted.ts';
import { blameOption, INSTANCE_OPTIONS } from '../messages/blame-option.ts';
import { verdictFields } from '../messages/verdict.ts';
import type { Ports } from '../options.ts';
import { checkNewName } from './names.ts';
import { rememberInstance } from './records.ts';
import { messageFields, renderCreated, reportOf, shortId } from './render.ts';
import { confirmRoom, type RoomOptions } from './room.ts';
import { readSshKey } from './ssh-key.ts';
import { readCursor, type WaitLimits, type WaitOptions, waitForInstance, waitLimits } from './wait.ts';

export interface InstanceCreateOptions extends WaitOptions, RoomOptions {
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
  const asked = {
    ...{ name, cpu, memory, disk, image, ssh_key: publicKey },
    ...(description === undefined ? {} : { description }),
    firewall: { ...allow, ...(options.proxyProtocol ? { proxyProtocol: true } : {}) },
  };
  const content = blameOption(INSTANCE_OPTIONS, () => parseInstanceContent(asked));
  await tellPrice(context, { ...instanceNeeds(content), kind: 'instance' });
  await confirmRoom(context, content, options);
  const cursor = options.wait ? await readCursor(core) : undefined;
  const sent = await core.createInstance(content);
  await afterCreation(context, { core, sent, cursor, identityFile, limits: waitLimits(options) });
}

interface Created {
  readonly core: CoreClient;
  readonly sent: Awaited<ReturnType<CoreClient['createInstance']>>;
  /** Of before it was created, where it is waited for. */
  readonly cursor: string | undefined;
  readonly identityFile: string | undefined;
  readonly limits: WaitLimits;
}

/** Tells of an instance that exists, and may cost something already, whatever fails here. */
async function afterCreation(context: Context, created: Created): Promise<void> {
  const { core, sent, cursor, identityFile } = created;
  const { output, paths } = context;
  const { instance_id: instanceId, item_hash: itemHash } = sent;
  await rememberInstance(paths.config, instanceId, identityFile).catch((error: Error) =>
    output.note(`cannot note which key opens it, so "skerry instance ssh" takes any: ${error.message}`),
  );
  if (sent.status === 'pending' && cursor === undefined) {
    const ids = { instance_id: instanceId, item_hash: itemHash };
    output.result({ ...ids, ...verdictFields(sent) }, instanceId);
    return;
  }
  const accepted: Accepted = {
    what: `instance ${instanceId} was created`,
    ids: { instance_id: instanceId, item_hash: itemHash },
    hint: `"skerry instance show ${shortId(instanceId)}" tells how it is`,
  };
  const report = await afterAccepted(output, accepted, async () =>
    reportOf(
      context,
      cursor === undefined
        ? await core.getInstance(instanceId)
        : await waitForCreated(context, { ...created, cursor }),
    ),
  );
  output.result({ ...report, ...messageFields(sent) }, renderCreated(report));
}

async function waitForCreated(
  { output }: Context,
  { core, sent, cursor, limits }: Created & { readonly cursor: string },
): Promise<InstanceView> {
  const { instance_id: instanceId, ipv6 } = sent;
  output.note(`instance ${instanceId}`);
  using progress = output.progress(0);
  return await waitForInstance({
    ...{ core, instanceId, cursor, limits, progress },
    goal: { kind: 'created' },
    isPlaced: ipv6 !== '',
    phaseBefore: undefined,
  });
}
