import { Readable } from 'node:stream';
import { AppError, LIMITS } from '@skerry/protocol';
import type { FastifyReply, FastifyRequest, RequestPayload } from 'fastify';

const NOTHING = new Uint8Array();

const tooLarge = () =>
  new AppError('BODY_TOO_LARGE', `a signed body has at most ${LIMITS.jsonBodyBytes} bytes`);

/** The bytes of requests' bodies, kept beside what they mean: a signature covers the bytes. */
export class KeptBodies {
  readonly #bodies = new WeakMap<object, Uint8Array>();

  /** A hook `preParsing`. Throws BODY_TOO_LARGE. */
  readonly keep = async (
    request: FastifyRequest,
    _reply: FastifyReply,
    payload: RequestPayload,
  ): Promise<RequestPayload> => {
    // Of one that says so itself nothing is waited for.
    if (Number(request.headers['content-length']) > LIMITS.jsonBodyBytes) throw tooLarge();
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    for await (const chunk of payload as AsyncIterable<Uint8Array>) {
      sizeBytes += chunk.length;
      if (sizeBytes > LIMITS.jsonBodyBytes) throw tooLarge();
      chunks.push(chunk);
    }
    const bytes = Buffer.concat(chunks);
    this.#bodies.set(request, bytes);
    return Object.assign(Readable.from([bytes]), { receivedEncodedLength: bytes.length });
  };

  of(request: FastifyRequest): Uint8Array {
    return this.#bodies.get(request) ?? NOTHING;
  }
}
