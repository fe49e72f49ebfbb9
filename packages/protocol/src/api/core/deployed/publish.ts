import { Type } from '../../../type.ts';
import type { Api } from '../../operation.ts';
import { asDeployed } from '../common/declare.ts';
import { RefusalView } from '../messages.ts';

/** The topic on which deployed nodes tell each other of messages. */
export const MESSAGES_TOPIC = 'ALEPH-TEST';

/** A message that is refused, or a request that holds none. */
const PublishRefusalView = Type.Object(
  {
    ...RefusalView.properties,
    publication_status: Type.Optional(RefusalView.properties.publication_status),
    message_status: Type.Optional(RefusalView.properties.message_status),
  },
  { title: 'PublishRefusal' },
);

const publishAt = <const Path extends string>(path: Path) =>
  ({
    method: 'POST',
    path,
    summary: 'Publish a signed message in the network form, as older clients do',
    tag: 'messages',
    rateClass: 'authenticated',
    errors: [
      'DATABASE_UNAVAILABLE',
      'NOT_PERMITTED',
      'INVALID_ENVELOPE',
      'MESSAGE_FORGOTTEN',
      'OVERLOADED',
      'STORAGE_FULL',
    ],
    ...asDeployed,
    body: {
      kind: 'json',
      isStrict: true,
      schema: Type.Object({
        topic: Type.String({ description: MESSAGES_TOPIC }),
        data: Type.Union([Type.String(), Type.Record(Type.String(), Type.Unknown())], {
          description: 'the message, as JSON in a text, or as it is',
        }),
      }),
    },
    answers: {
      200: Type.Object(
        { status: Type.Literal('success'), failed: Type.Array(Type.String()) },
        { title: 'Published' },
      ),
      422: PublishRefusalView,
    },
  }) as const;

/** What the SDKs fall back to where a node has no `POST /messages`. */
export const PUBLISH_API = {
  publishMessage: publishAt('/api/v0/p2p/pubsub/pub'),
  publishIpfsMessage: publishAt('/api/v0/ipfs/pubsub/pub'),
} as const satisfies Api;
