import type { InstanceControlContent, InstanceFold, VerifiedMessage } from '@skerry/protocol';
import { type Facts, forgotten, type Own, PROCESSED, pending, rejected, type Verdict } from '../accepted.ts';
import { instanceEffect } from '../effects/instances.ts';
import { whyNotPermitted } from '../pipeline/decide.ts';

function decideChange(facts: Facts, message: VerifiedMessage, instanceId: string, isStop: boolean): Verdict {
  const instance = facts.message(instanceId);
  if (instance && instance.type !== 'INSTANCE')
    return rejected('INSTANCE_NOT_FOUND', `${instanceId} is a ${instance.type}, not an INSTANCE`);
  if (instance?.status === 'forgotten') return forgotten(`the instance ${instanceId} was forgotten`);
  if (instance?.status !== 'processed')
    return pending('INSTANCE_NOT_FOUND', `there is no instance ${instanceId} here yet`);
  const { type, channel } = message;
  const act = { type, channel, owner: instance.owner, subject: null, contentType: null };
  const isOutOfCredit = isStop && facts.mayStop(message.sender, instance.owner, message.time);
  const refusal = isOutOfCredit ? undefined : whyNotPermitted(facts, act, message);
  if (refusal === undefined) return PROCESSED;
  return rejected('NOT_PERMITTED', `instance ${instanceId} belongs to ${instance.owner}: ${refusal}`);
}

/** What a message says that changes an instance. @param action a credit publisher may send a stop, too */
export const changeOfInstance = (
  instanceId: string,
  fold: InstanceFold,
  action?: InstanceControlContent['action'],
): Own<typeof instanceEffect> => {
  const isStop = action === 'stop';
  const isStart = action !== undefined && !isStop;
  return {
    subject: instanceId,
    needs: {
      messages: [instanceId],
      ...(isStop ? { stops: instanceId } : {}),
      ...(isStart ? { starts: instanceId } : {}),
    },
    changes: [instanceEffect.change({ instanceId, fold })],
    decide: (facts, dated) => decideChange(facts, dated, instanceId, isStop),
  };
};
