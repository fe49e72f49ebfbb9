import { familyOf, type PersonalCheck } from './chains.ts';
import { EnvelopeShape } from './content/envelope-shape.ts';
import { AppError } from './errors.ts';
import { itemHashOf } from './hash.ts';
import { type ScannedObject, scanJsonObject } from './json/scan.ts';
import { LIMITS } from './limits.ts';
import { createParser } from './schema.ts';

const parseShape = createParser(EnvelopeShape, 'body', 'INVALID_ENVELOPE');

/**
 * How a message was signed (docs/wire-forms.md). `envelope`: the text of `message`; `network`: chain, sender, type and
 * hash, as deployed nodes do it; `upload`: the SHA-256 of a file.
 */
export type MessageForm = 'envelope' | 'network' | 'upload';

/** A message whose signature was checked. Everything later works on this and never on the request. */
export interface VerifiedMessage {
  readonly form: MessageForm;
  readonly itemHash: string;
  readonly chain: string;
  /** In the one spelling of its chain (lower case for EVM). */
  readonly sender: string;
  readonly type: string;
  /** null: the network form lets it out. */
  readonly channel: string | null;
  /** Unix seconds; whole in the envelope form. */
  readonly time: number;
  /** null: the content is a file (`network`) that is not at hand. */
  readonly content: Readonly<Record<string, unknown>> | null;
  readonly signature: string;
  /**
   * What makes the message verifiable again by anyone: the signed text (`envelope`, `upload`), or the item content that
   * the item hash covers (`network`; null where it is a file).
   */
  readonly sourceText: string | null;
  /** `network` only: the sender as it was spelled when signed, where that differs. */
  readonly signedSender?: string | undefined;
  /** `network` only: the time beside the content, which nothing covers, where that differs from the content's own. */
  readonly sentTime?: number | undefined;
  /**
   * When the first core node took it, by that node's word, in milliseconds since 1970: of two nodes' statements the
   * earlier one counts (sync/shared.ts). Of an envelope only where it was late (effective-time.ts).
   */
  readonly notedMs?: number | undefined;
}

/**
 * Reads and verifies a signed envelope `{message, signature, address}`. Everything here is decidable from the bytes and
 * the clock alone. The signature may cover the exact bytes of `message` in the body, or their compact re-serialisation
 * (docs/decisions.md 1).
 *
 * @param body the request body, UTF-8
 * @param nowSeconds the node's clock, Unix seconds
 * @throws AppError INVALID_JSON, INVALID_ENVELOPE, UNKNOWN_FIELD, UNKNOWN_CHAIN, INVALID_ADDRESS, TIMESTAMP_IN_FUTURE,
 *   SIGNATURE_REQUIRED, INVALID_SIGNATURE
 */
export function verifyEnvelope(body: Uint8Array | string, nowSeconds: number): VerifiedMessage {
  return verifyScannedEnvelope(scanJsonObject(body), nowSeconds);
}

/** What a signature may cover: nearly always the first, so that the second is made only where that fails. */
function* signedTexts(raw: string, message: object): Generator<string> {
  yield raw;
  const compact = JSON.stringify(message);
  if (compact !== raw) yield compact;
}

const isMissing = (member: unknown) => member === undefined || member === null || member === '';

/** The same for a body that was scanned already. */
export function verifyScannedEnvelope(
  { value, rawMembers }: ScannedObject,
  nowSeconds: number,
  checkPersonal?: PersonalCheck,
): VerifiedMessage {
  if (isMissing(value.signature) || isMissing(value.address)) {
    throw new AppError(
      'SIGNATURE_REQUIRED',
      'the body must be {message, signature, address}, signed by the address',
    );
  }
  const { message, signature, address } = parseShape(value);
  if (message.timestamp > nowSeconds + LIMITS.futureSeconds) {
    throw new AppError(
      'TIMESTAMP_IN_FUTURE',
      `timestamp is ${message.timestamp - nowSeconds} seconds ahead of the node's clock`,
      {
        details: { node_time: nowSeconds },
      },
    );
  }
  const family = familyOf(message.chain);
  const sender = family.parseAddress(address);
  const context = { timestampMs: message.timestamp * 1000, checkPersonal };
  for (const signedText of signedTexts(rawMembers.get('message')!, message)) {
    if (!family.verify(signedText, signature, sender, context)) continue;
    const itemHash = itemHashOf(message.chain, sender, signedText);
    const { chain, type, channel, timestamp: time, content } = message;
    return {
      form: 'envelope',
      itemHash,
      chain,
      sender,
      type,
      channel,
      time,
      content,
      signature,
      sourceText: signedText,
    };
  }
  throw new AppError('INVALID_SIGNATURE', `the signature over the message was not made by ${sender}`);
}
