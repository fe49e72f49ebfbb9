import { answer, type Handlers } from '@skerry/kit';
import { AppError, isNetworkForm, scanJsonObject } from '@skerry/protocol';
import { MESSAGES_TOPIC, type PUBLISH_API } from '@skerry/protocol/api/core/deployed/publish';
import { answerOf, networkRefusalOf, submitBody } from '../messages/submit.ts';
import type { Rooms } from '../rooms.ts';

/** The body that `POST /messages` would have. Throws INVALID_JSON, INVALID_ENVELOPE. */
function bodyOf(data: string | Readonly<Record<string, unknown>>): Buffer {
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  if (!isNetworkForm(scanJsonObject(text).value))
    throw new AppError('INVALID_ENVELOPE', 'body.data must be a signed message with its item_hash');
  return Buffer.from(`{"message":${text}}`);
}

/** What the SDKs fall back to where a node has no `POST /messages`. */
export function publishHandlers({
  intake,
  metrics,
  clientOf,
}: Pick<Rooms, 'intake' | 'metrics' | 'clientOf'>): Handlers<typeof PUBLISH_API> {
  const publish: Handlers<typeof PUBLISH_API>['publishMessage'] = async ({
    body: { topic, data },
    request,
  }) => {
    if (topic !== MESSAGES_TOPIC)
      throw new AppError('NOT_PERMITTED', `messages are published on the topic ${MESSAGES_TOPIC} alone`);
    try {
      answerOf(await submitBody({ intake }, bodyOf(data), { client: clientOf(request) }), {});
      return { status: 'success', failed: [] };
    } catch (error) {
      const refusal = networkRefusalOf(error);
      if (!refusal) throw error;
      metrics.http.refused((error as AppError).code);
      return answer(422, refusal);
    }
  };
  return { publishMessage: publish, publishIpfsMessage: publish };
}
