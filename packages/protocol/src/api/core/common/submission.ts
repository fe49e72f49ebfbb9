import { type TProperties, Type } from '../../../type.ts';
import { MessageStatus } from '../../../views.ts';

const Reason = Type.Object({ code: Type.String(), message: Type.String() });

/** How deployed nodes answer the network form; they say no reason. */
export const PublicationView = Type.Object(
  {
    publication_status: Type.Object(
      { status: Type.String(), failed: Type.Array(Type.String()) },
      { description: 'network form only' },
    ),
    message_status: MessageStatus,
    reason: Type.Optional(Reason),
  },
  { title: 'Publication' },
);

/** The same in the network form: both sets of fields, which do not collide. */
const publication = {
  publication_status: Type.Optional(PublicationView.properties.publication_status),
  message_status: Type.Optional(MessageStatus),
};

const applied = {
  item_hash: Type.String({ description: 'SHA-256, or a CID' }),
  status: Type.Literal('success'),
  ...publication,
};
const pending = {
  item_hash: Type.String(),
  status: Type.Literal('pending'),
  reason: Reason,
  ...publication,
};

/** The answers to a message that is kept: in force (200), or lacking something that may still come (202). */
export const SUBMISSION_ANSWERS = {
  200: Type.Object(applied, { title: 'Applied' }),
  202: Type.Object(pending, { title: 'Pending' }),
} as const;

/** The same with more fields. @param title of both, in the document */
export const submissionAnswers = <P extends TProperties>(title: string, more: P) =>
  ({
    200: Type.Object({ ...applied, ...more }, { title }),
    202: Type.Object({ ...pending, ...more }, { title: `Pending${title}` }),
  }) as const;
