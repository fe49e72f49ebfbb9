import type { HttpServer } from '@skerry/kit';
import { EnvelopeShape } from '@skerry/protocol';
import type Type from 'typebox';
import type { Accepted } from '../messages/accepted.ts';
import { intake } from '../messages/intake.ts';

/**
 * Signed bodies are read as bytes: the signature covers the exact text of `message`, which a JSON parser throws away.
 * Registered for a scope, so that its routes get a Buffer.
 */
export function readBodiesAsBytes(app: HttpServer): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ['application/json', 'text/plain', 'application/octet-stream'],
    { parseAs: 'buffer' },
    (_request, body, done) => done(null, body),
  );
}

/** The schema for the document; what checks a signed body is `intake`. */
export const signedBodySchema = (content?: Type.TSchema, type?: string) => ({
  ...EnvelopeShape,
  properties: {
    ...EnvelopeShape.properties,
    message: {
      ...EnvelopeShape.properties.message,
      properties: {
        ...EnvelopeShape.properties.message.properties,
        ...(type === undefined ? {} : { type: { const: type } }),
        ...(content === undefined ? {} : { content }),
      },
    },
  },
});

export function acceptBody(body: unknown, nowMs: number, type?: string): Accepted {
  return intake(Buffer.isBuffer(body) ? body : Buffer.alloc(0), Math.floor(nowMs / 1000), type);
}
