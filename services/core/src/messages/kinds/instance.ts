import { effectiveTime, instanceNeeds, ownerOf, type VerifiedMessage } from '@skerry/protocol';
import { foldControl, foldInstance, foldUpdate, type InstanceFold } from '../../instances/fold.ts';
import {
  type Accepted,
  accept,
  type Decision,
  type Facts,
  forgotten,
  type MessageKind,
  PROCESSED,
  pending,
  rejected,
} from '../accepted.ts';
import { whyNotPermitted } from '../verdict.ts';

function decideChange(facts: Facts, message: VerifiedMessage, instanceId: string, isStop: boolean): Decision {
  const instance = facts.message(instanceId);
  if (instance && instance.type !== 'INSTANCE')
    return rejected('INSTANCE_NOT_FOUND', `${instanceId} is a ${instance.type}, not an INSTANCE`);
  if (instance?.status === 'forgotten') return forgotten(`the instance ${instanceId} was forgotten`);
  if (instance?.status !== 'processed')
    return pending('INSTANCE_NOT_FOUND', `there is no instance ${instanceId} here yet`);
  const { type, channel } = message;
  const act = { type, channel, owner: instance.owner, subject: null, contentType: null };
  const isOutOfCredit = isStop && facts.mayStop(message.sender, instance.owner, effectiveTime(message));
  const refusal = isOutOfCredit ? undefined : whyNotPermitted(facts, act, message);
  if (refusal === undefined) return PROCESSED;
  return rejected('NOT_PERMITTED', `instance ${instanceId} belongs to ${instance.owner}: ${refusal}`);
}

/** A message by which an instance is changed. */
function changeOf(
  message: VerifiedMessage,
  instanceId: string,
  fold: InstanceFold,
  isStop = false,
): Accepted {
  return accept(message, {
    subject: instanceId,
    needs: { messages: [instanceId] },
    changes: [{ kind: 'instance', instanceId, fold }],
    decide: (facts, judged) => decideChange(facts, judged, instanceId, isStop),
  });
}

/** INSTANCE: a virtual machine that its owner wants running. */
export const instance: MessageKind<'INSTANCE'> = (message, content) => {
  const owner = ownerOf(message.sender, content);
  const instanceId = message.itemHash;
  return accept(message, {
    changes: [
      { kind: 'instance', instanceId, fold: foldInstance(message, owner, content) },
      { kind: 'resource', resource: { from: 'needs', needs: instanceNeeds(content) } },
    ],
  });
};

/** INSTANCE_UPDATE: new name, description or firewall. */
export const instanceUpdate: MessageKind<'INSTANCE_UPDATE'> = (message, content) =>
  changeOf(message, content.instance_id, foldUpdate(message, content));

/** INSTANCE_CONTROL: start, stop, restart. */
export const instanceControl: MessageKind<'INSTANCE_CONTROL'> = (message, content) =>
  changeOf(message, content.instance_id, foldControl(message, content), content.action === 'stop');
