import {
  AppError,
  parseInstanceContent,
  parseInstanceControlContent,
  parseInstanceUpdateContent,
  type VerifiedMessage,
} from '@skerry/protocol';
import { applyControl, applyUpdate, createInstance, type MessageHead } from '../../instances/fold.ts';
import type { InstanceState } from '../../instances/state.ts';
import { type Accepted, type Facts, type MessageKind, NO_NEEDS } from '../accepted.ts';

function findOwned(facts: Facts, instanceId: string, signer: string): InstanceState {
  const instance = facts.instance(instanceId);
  if (!instance) throw new AppError('INSTANCE_NOT_FOUND', `there is no instance ${instanceId}`);
  if (instance.owner !== signer) {
    throw new AppError(
      'NOT_PERMITTED',
      `instance ${instanceId} belongs to ${instance.owner}, not to ${signer}`,
    );
  }
  return instance;
}

/** A message by which an owner changes an instance. */
function changeOwned<Content extends { readonly instance_id: string }>(
  message: VerifiedMessage,
  content: Content,
  apply: (state: InstanceState, head: MessageHead, content: Content) => InstanceState,
): Accepted {
  return {
    message,
    postType: null,
    needs: { ...NO_NEEDS, instanceIds: [content.instance_id] },
    decide: (facts) => {
      const owned = findOwned(facts, content.instance_id, message.sender);
      return [{ kind: 'instance', state: apply(owned, message, content) }];
    },
  };
}

/** INSTANCE: a virtual machine that its owner wants running. */
export const instance: MessageKind = (message) => {
  const content = parseInstanceContent(message.content);
  return {
    message,
    postType: null,
    needs: NO_NEEDS,
    decide: () => [{ kind: 'instance', state: createInstance(message, content) }],
  };
};

/** INSTANCE_UPDATE: new name, description or firewall. */
export const instanceUpdate: MessageKind = (message) =>
  changeOwned(message, parseInstanceUpdateContent(message.content), applyUpdate);

/** INSTANCE_CONTROL: start, stop, restart. */
export const instanceControl: MessageKind = (message) =>
  changeOwned(message, parseInstanceControlContent(message.content), applyControl);
