import type { HttpServer } from '@skerry/kit';
import {
  AppError,
  checkImage,
  type ErrorKind,
  type InstanceContent,
  LIMITS,
  MessageStatus,
  type VerifiedMessage,
} from '@skerry/protocol';
import type { FastifyReply } from 'fastify';
import Type, { type Static } from 'typebox';
import { readContent } from '../messages/contents.ts';
import { checkType } from '../messages/intake.ts';
import type { Outcome } from '../messages/judged.ts';
import { registerWebhook } from '../webhooks/register.ts';
import type { Rooms } from './rooms.ts';

/**
 * Signed bodies are read as bytes: the signature covers the exact text of `message`, which a JSON parser throws away.
 * Registered for a scope, so that its routes get a Buffer.
 */
export function readBodiesAsBytes(app: HttpServer): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ['application/json', 'text/plain', 'application/octet-stream'],
    { parseAs: 'buffer', bodyLimit: LIMITS.jsonBodyBytes },
    (_request, body, done) => done(null, body),
  );
}

const Reason = Type.Object({ code: Type.String(), message: Type.String() });

/** The answers to a message that is kept: in force (200), or lacking something that may still come (202). */
export const AppliedView = Type.Object({
  item_hash: Type.String({ description: 'SHA-256, or a CID' }),
  status: Type.Literal('success'),
});
export const PendingView = Type.Object({
  item_hash: Type.String(),
  status: Type.Literal('pending'),
  reason: Reason,
});

/** The same in the network form: both sets of fields, which do not collide. */
const publication = {
  publication_status: Type.Optional(
    Type.Object(
      { status: Type.String(), failed: Type.Array(Type.String()) },
      { description: 'network form only' },
    ),
  ),
  message_status: Type.Optional(MessageStatus),
};
export const submissionViews = {
  200: Type.Object({ ...AppliedView.properties, ...publication }),
  202: Type.Object({ ...PendingView.properties, ...publication }),
};

/** How deployed nodes refuse a message (docs/decisions.md 8: 422). */
export const RefusalView = Type.Object({
  error: Type.String(),
  status: Type.Literal('error'),
  code: Type.String(),
  publication_status: Type.Object({ status: Type.String(), failed: Type.Array(Type.String()) }),
  message_status: Type.Literal('rejected'),
  details: Type.Optional(Type.Unknown()),
});

const PUBLISHED = { status: 'success', failed: [] };

export interface Submitted {
  readonly message: VerifiedMessage;
  readonly outcome: Outcome;
}

const formOf = ({ form }: VerifiedMessage) => (form === 'network' ? { form } : {});

/** What is refused after its form is known says that form, as verifySubmission's own errors do. */
function withForm(error: unknown, message: VerifiedMessage): unknown {
  if (!(error instanceof AppError) || message.form !== 'network') return error;
  const details = { ...(error.details as object | undefined), ...formOf(message) };
  return new AppError(error.code, error.message, { cause: error.cause, details });
}

/** What a client asks for in vain is refused at once. Not so what peers send: it is in force elsewhere, and no node starts it. */
function checkContent(message: VerifiedMessage): void {
  if (message.type !== 'INSTANCE' || message.content === null) return;
  try {
    checkImage((readContent(message).content as InstanceContent).image);
  } catch (error) {
    throw withForm(error, message);
  }
}

/** Verifies a body, puts the message before the node, and waits for the verdict. */
export async function submitBody(
  rooms: Rooms,
  body: unknown,
  check: { readonly type?: string; readonly also?: (message: VerifiedMessage) => void } = {},
): Promise<Submitted> {
  const message = await rooms.intake.verify(Buffer.isBuffer(body) ? body : Buffer.alloc(0));
  if (check.type !== undefined) checkType(message, check.type);
  if (message.type === 'WEBHOOK') {
    rooms.reserve.take();
    await registerWebhook({ ...rooms, checkUrl: rooms.sender.check }, message);
    rooms.events.wake();
    return { message, outcome: { status: 'processed', reason: null } };
  }
  const accepted = await rooms.intake
    .accept(message)
    .catch((error) => Promise.reject(withForm(error, message)));
  check.also?.(message);
  checkContent(message);
  return { message, outcome: await rooms.intake.submit(accepted) };
}

/** The caller's answer; a message that is not in force and will not be is an error with the verdict's code. */
export function answerSubmitted(
  reply: Pick<FastifyReply, 'send' | 'status'>,
  { message, outcome }: Submitted,
  more: object = {},
) {
  const { status, reason } = outcome;
  const published =
    message.form === 'network' ? { publication_status: PUBLISHED, message_status: status } : {};
  const { itemHash } = message;
  if (status === 'processed')
    return reply.send({ item_hash: itemHash, status: 'success', ...more, ...published });
  if (status === 'pending')
    return reply.status(202).send({ item_hash: itemHash, status, reason, ...more, ...published });
  throw new AppError(reason?.code ?? 'MESSAGE_FORGOTTEN', reason?.message ?? 'the message was forgotten', {
    details: { item_hash: message.itemHash, message_status: status, ...formOf(message) },
  });
}

/** What waiting or another server may cure is not the message's fault. */
const MESSAGE_FAULTS: readonly ErrorKind[] = ['invalid', 'unauthorized', 'refused', 'missing', 'conflict'];

/**
 * A refusal as the caller's form has it: `undefined` where the error is answered as any other is, since the message was
 * an envelope, was forgotten (410), or is not at fault.
 */
export function networkRefusalOf(error: unknown): Static<typeof RefusalView> | undefined {
  if (!(error instanceof AppError) || !MESSAGE_FAULTS.includes(error.kind)) return undefined;
  const { code, message, details } = error;
  if ((details as { form?: unknown } | undefined)?.form !== 'network' || code === 'MESSAGE_FORGOTTEN')
    return undefined;
  return {
    error: message,
    status: 'error',
    code,
    publication_status: { status: 'error', failed: [] },
    message_status: 'rejected',
    details,
  };
}
