import {
  NETWORK_POST,
  parseAllocationContent,
  parseInstanceStatusContent,
  parseNodeContent,
  parsePostContent,
  type VerifiedMessage,
} from '@skerry/protocol';
import { applyAllocation, applyStatus } from '../../instances/fold.ts';
import { type Accepted, type MessageKind, NO_NEEDS } from '../accepted.ts';

/** What services tell each other. By anyone without the standing, such a POST is kept like any other and changes nothing. */
const NETWORK_POSTS: Readonly<
  Record<string, (message: VerifiedMessage, content: unknown) => Pick<Accepted, 'needs' | 'decide'>>
> = {
  [NETWORK_POST.node]: (_message, content) => {
    parseNodeContent(content);
    return { needs: NO_NEEDS, decide: () => [] };
  },
  [NETWORK_POST.allocation]: (message, raw) => {
    const content = parseAllocationContent(raw);
    const { instance_id: instanceId, node_address: nodeAddress } = content;
    return {
      needs: {
        ...NO_NEEDS,
        instanceIds: [instanceId],
        observed: nodeAddress ? [{ instanceId, nodeAddress }] : [],
      },
      decide: (facts) => {
        const instance = facts.instance(instanceId);
        if (!instance || !facts.schedulers.has(message.sender)) return [];
        const observed = nodeAddress ? facts.observed(instanceId, nodeAddress) : undefined;
        return [{ kind: 'instance', state: applyAllocation(instance, message, content, observed) }];
      },
    };
  },
  [NETWORK_POST.instanceStatus]: (message, raw) => {
    const content = parseInstanceStatusContent(raw);
    return {
      needs: { ...NO_NEEDS, instanceIds: [content.instance_id] },
      decide: (facts) => {
        const instance = facts.instance(content.instance_id);
        if (!instance || instance.nodeAddress !== message.sender) return [];
        return [{ kind: 'instance', state: applyStatus(instance, message.itemHash, content) }];
      },
    };
  },
};

export const post: MessageKind = (message) => {
  const content = parsePostContent(message.content);
  const network = Object.hasOwn(NETWORK_POSTS, content.type) ? NETWORK_POSTS[content.type] : undefined;
  const effect = network?.(message, content.content) ?? { needs: NO_NEEDS, decide: () => [] };
  return { message, postType: content.type, ...effect };
};
