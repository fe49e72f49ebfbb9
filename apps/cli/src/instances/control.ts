import { AppError, type Firewall, parseInstanceUpdateContent } from '@skerry/protocol/forms';
import type { Context } from '../context.ts';
import { type Accepted, afterAccepted } from '../messages/accepted.ts';
import { blameOption, INSTANCE_OPTIONS } from '../messages/blame-option.ts';
import type { Ports } from '../options.ts';
import { decideGoal, type Goal } from './goal.ts';
import { findMeant, findMeantWithFirewall } from './meant.ts';
import { checkNewName } from './names.ts';
import { messageFields, renderCreated, reportOf, shortId } from './render.ts';
import { readCursor, type WaitOptions, waitForInstance, waitLimits } from './wait.ts';

export interface InstanceUpdateOptions {
  readonly name?: string;
  readonly description?: string;
  readonly allow?: Ports;
  readonly proxyProtocol?: boolean;
}

export type ControlAction = 'start' | 'stop' | 'restart';

function goalOf(action: ControlAction, messageHash: string): Goal {
  if (action === 'restart') return { kind: 'restarted', restartId: messageHash };
  return { kind: action === 'start' ? 'started' : 'stopped' };
}

const hintOf = (instanceId: string) => `"skerry instance show ${shortId(instanceId)}" tells how it is`;

export async function controlInstance(
  context: Context,
  action: ControlAction,
  reference: string,
  options: WaitOptions,
): Promise<void> {
  const core = await context.openWriter();
  const before = await findMeant(context, reference);
  const instanceId = before.instance_id;
  const cursor = await readCursor(core);
  const sent = await core.controlInstance(instanceId, action, before.updated_at);
  const accepted: Accepted = {
    what: `instance ${instanceId} was asked to ${action}`,
    ids: { instance_id: instanceId, item_hash: sent.item_hash },
    hint: hintOf(instanceId),
  };
  const { report, done } = await afterAccepted(context.output, accepted, async () => {
    let instance = await core.getInstance(instanceId);
    const goal = goalOf(action, sent.item_hash);
    let done = goal.kind !== 'restarted' && decideGoal(goal, instance, false) === 'reached';
    if (options.wait && !done) {
      using progress = context.output.progress(0);
      const limits = waitLimits(options);
      const phaseBefore = before.phase;
      instance = await waitForInstance({ core, instanceId, goal, cursor, phaseBefore, limits, progress });
      done = true;
    }
    return { report: await reportOf(context, instance), done };
  });
  context.output.result({ ...report, ...messageFields(sent) }, renderCreated(report));
  // Its status is that of before.
  if (!done) context.output.note(`it was asked to ${action}: ${accepted.hint}, and --wait waits for it`);
}

/** The firewall is changed as a whole: what is not asked for stays as it is. */
function firewallChange(
  { allow, proxyProtocol }: InstanceUpdateOptions,
  now: Firewall,
): { firewall?: Firewall } {
  if (allow === undefined && proxyProtocol === undefined) return {};
  const { allowedPorts, allowedUdpPorts, ...rest } = now;
  const ports = allow ?? { allowedPorts, ...(allowedUdpPorts === undefined ? {} : { allowedUdpPorts }) };
  return {
    firewall: {
      ...rest,
      ...ports,
      ...(proxyProtocol === undefined ? {} : { proxyProtocol }),
    },
  };
}

export async function updateInstance(
  context: Context,
  reference: string,
  options: InstanceUpdateOptions,
): Promise<void> {
  const { name, description, allow, proxyProtocol } = options;
  if ([name, description, allow, proxyProtocol].every((asked) => asked === undefined)) {
    throw new AppError('INVALID_PARAMETERS', 'nothing to change', {
      details: { hint: 'use --name, --description, --allow or --proxy-protocol' },
    });
  }
  const core = await context.openWriter();
  const isFirewallKept = (allow === undefined) !== (proxyProtocol === undefined);
  const find = isFirewallKept ? findMeantWithFirewall : findMeant;
  const before = await find(context, reference);
  const { instance_id: instanceId, updated_at: updatedAt, firewall } = before;
  if (name !== undefined && name !== before.name) await checkNewName(context, before.owner, name);
  const changes = {
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
    ...firewallChange(options, firewall),
  };
  blameOption(INSTANCE_OPTIONS, () => parseInstanceUpdateContent({ instance_id: instanceId, ...changes }));
  const sent = await core.updateInstance(instanceId, changes, updatedAt);
  const accepted: Accepted = {
    what: `instance ${instanceId} was changed`,
    ids: { instance_id: instanceId, item_hash: sent.item_hash },
    hint: hintOf(instanceId),
  };
  const report = await afterAccepted(context.output, accepted, async () =>
    reportOf(context, await core.getInstance(instanceId)),
  );
  context.output.result({ ...report, ...messageFields(sent) }, renderCreated(report));
}
