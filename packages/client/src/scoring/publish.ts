import { AppError, SCORES_POST_TYPE, SCORING_CHANNEL } from '@skerry/protocol/forms';
import type { CoreClient } from '../core-client.ts';
import {
  buildNetworkMessage,
  buildStoredMessage,
  type NetworkBody,
  type Publication,
  publishMessage,
} from '../network-message.ts';
import type { ComputedScores } from './compute.ts';

const isTooLong = (error: unknown) => error instanceof AppError && error.code === 'INVALID_CONTENT';

/** The message of published scores, and what the node says of it. */
export interface ScoresPublication extends Pick<Publication, 'message_status' | 'reason'> {
  readonly item_hash: string;
}

/** Stores the inputs as files, then publishes the scores. */
export async function publishScores(
  core: CoreClient,
  { content, files }: ComputedScores,
): Promise<ScoresPublication> {
  for (const [hash, text] of files) await core.storeFile(new Blob([text]), 'scoring-input', hash);
  const draft = { type: 'POST', channel: SCORING_CHANNEL, content: { type: SCORES_POST_TYPE, content } };
  const send = async ({ body, itemHash }: NetworkBody): Promise<ScoresPublication> => {
    const { message_status, reason } = await publishMessage(core.url, body, core.options);
    return { item_hash: itemHash, message_status, ...(reason ? { reason } : {}) };
  };
  let inline: ReturnType<typeof buildNetworkMessage> | undefined;
  try {
    inline = buildNetworkMessage(draft, core.signer);
  } catch (error) {
    if (!isTooLong(error)) throw error;
  }
  if (inline) return send(inline);
  const stored = buildStoredMessage(draft, core.signer);
  await core.storeFile(new Blob([stored.content]), 'scores.json', stored.itemHash);
  return send(stored);
}
