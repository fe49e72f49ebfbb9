import {
  AppError,
  parseInstanceContent,
  parseInstanceControlContent,
  parseInstanceUpdateContent,
} from '@skerry/protocol';
import { applyControl, applyUpdate, createInstance } from '../../instances/fold.ts';
import type { InstanceState } from '../../instances/state.ts';
import { type Facts, type MessageKind, NO_NEEDS } from '../accepted.ts';

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
export const instanceUpdate: MessageKind = (message) => {
  const content = parseInstanceUpdateContent(message.content);
  return {
    message,
    postType: null,
    needs: { ...NO_NEEDS, instanceIds: [content.instance_id] },
    decide: (facts) => [
      {
        kind: 'instance',
        state: applyUpdate(findOwned(facts, content.instance_id, message.sender), message, content),
      },
    ],
  };
};

/** INSTANCE_CONTROL: start, stop, restart. */
export const instanceControl: MessageKind = (message) => {
  const content = parseInstanceControlContent(message.content);
  return {
    message,
    postType: null,
    needs: { ...NO_NEEDS, instanceIds: [content.instance_id] },
    decide: (facts) => [
      {
        kind: 'instance',
        state: applyControl(findOwned(facts, content.instance_id, message.sender), message, content),
      },
    ],
  };
};
