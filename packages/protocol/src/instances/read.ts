import {
  parseInstanceContent,
  parseInstanceControlContent,
  parseInstanceUpdateContent,
} from '../content/instance.ts';
import { NETWORK_POST, parseAllocationContent, parseInstanceStatusContent } from '../content/network.ts';
import { ownerOf } from '../content/on-behalf.ts';
import { parsePostContent } from '../content/post.ts';
import type { VerifiedMessage } from '../envelope.ts';
import { convertNetworkContent } from '../network-form/convert.ts';
import {
  foldAllocation,
  foldControl,
  foldInstance,
  foldStatus,
  foldUpdate,
  type InstanceFold,
} from './fold.ts';

/** What one message does to one instance. */
export interface InstanceMessage {
  readonly instanceId: string;
  readonly fold: InstanceFold;
  /** Whether it counts by the owner's word: its sender is the owner, or may act for them. */
  readonly isOwners: boolean;
}

function readPost(message: VerifiedMessage, value: unknown): InstanceMessage | undefined {
  const { type, content: raw } = parsePostContent(value);
  if (type === NETWORK_POST.allocation) {
    const content = parseAllocationContent(raw);
    return { instanceId: content.instance_id, fold: foldAllocation(message, content), isOwners: false };
  }
  if (type !== NETWORK_POST.instanceStatus) return undefined;
  const content = parseInstanceStatusContent(raw);
  return { instanceId: content.instance_id, fold: foldStatus(message, content), isOwners: false };
}

/**
 * What a verified message says of an instance; undefined: nothing. Whether it is in force, and whether somebody may act for
 * the owner, follows from other messages. Throws what the parser of its content throws.
 */
export function readInstanceMessage(message: VerifiedMessage): InstanceMessage | undefined {
  const { form, itemHash, sender } = message;
  if (message.content === null) return undefined;
  const { type, content: value }: { type: string; content: unknown } =
    form === 'network' ? convertNetworkContent(message.type, itemHash, message.content) : message;
  switch (type) {
    case 'INSTANCE': {
      // In the network form it may lack a key (network-form/convert.ts).
      const content = parseInstanceContent(value, form === 'network');
      const fold = foldInstance(message, ownerOf(sender, content), content);
      return { instanceId: itemHash, fold, isOwners: true };
    }
    case 'INSTANCE_UPDATE': {
      const content = parseInstanceUpdateContent(value);
      return { instanceId: content.instance_id, fold: foldUpdate(message, content), isOwners: true };
    }
    case 'INSTANCE_CONTROL': {
      const content = parseInstanceControlContent(value);
      return { instanceId: content.instance_id, fold: foldControl(message, content), isOwners: true };
    }
    case 'POST':
      return readPost(message, value);
    default:
      return undefined;
  }
}
