import { AppError, SCORES_POST_TYPE, SCORING_CHANNEL } from '@skerry/protocol/forms';
import type { CoreClient } from '../core-client.ts';
import { buildNetworkMessage, buildStoredMessage, publishMessage } from '../network-message.ts';
import type { ComputedScores } from './compute.ts';

const isTooLong = (error: unknown) => error instanceof AppError && error.code === 'INVALID_CONTENT';

/** Stores the inputs as files, then publishes the scores. Resolves with the item hash. */
export async function publishScores(core: CoreClient, { content, files }: ComputedScores): Promise<string> {
  for (const [hash, text] of files) await core.storeFile(new Blob([text]), 'scoring-input', hash);
  const draft = { type: 'POST', channel: SCORING_CHANNEL, content: { type: SCORES_POST_TYPE, content } };
  const send = (body: string) => publishMessage(core.url, body, core.options);
  let inline: ReturnType<typeof buildNetworkMessage> | undefined;
  try {
    inline = buildNetworkMessage(draft, core.signer);
  } catch (error) {
    if (!isTooLong(error)) throw error;
  }
  if (inline) {
    await send(inline.body);
    return inline.itemHash;
  }
  const stored = buildStoredMessage(draft, core.signer);
  await core.storeFile(new Blob([stored.content]), 'scores.json', stored.itemHash);
  await send(stored.body);
  return stored.itemHash;
}
