import type { PersonalCheck } from './chains.ts';
import { type VerifiedMessage, verifyScannedEnvelope } from './envelope.ts';
import { AppError } from './errors.ts';
import { type ScannedObject, scanJsonObject } from './json/scan.ts';
import {
  isNetworkForm,
  parseNetworkMessage,
  readContentHead,
  type VerifiedNetworkMessage,
  verifyNetworkMessage,
} from './network-form/message.ts';

/** A message of the network form as every form is kept: its time is the one that its hash covers. */
function keptForm(message: VerifiedNetworkMessage): VerifiedMessage {
  const { itemHash, chain, sender, signedSender, type, channel, content, signature, itemContent } = message;
  const time = content ? readContentHead(content).time : message.time;
  return {
    form: 'network',
    itemHash,
    chain,
    sender,
    ...(signedSender === sender ? {} : { signedSender }),
    type,
    channel,
    time,
    ...(message.time === time ? {} : { sentTime: message.time }),
    content,
    signature,
    sourceText: itemContent,
  };
}

/**
 * Reads and verifies the body of a submission in either form (docs/wire-forms.md): `{message, signature, address}`, or
 * `{message: {item_hash, signature, ...}}` as deployed nodes take it. Everything here is decidable from the bytes and
 * the clock alone.
 *
 * @param nowSeconds the node's clock, Unix seconds
 * @param checkPersonal in the place of recovering the signer (SigningContext)
 * @throws AppError what verifyEnvelope, parseNetworkMessage and verifyNetworkMessage throw. One that speaks of the
 *   network form has `details.form === 'network'`
 */
export function verifySubmission(
  body: Uint8Array | string,
  nowSeconds: number,
  checkPersonal?: PersonalCheck,
): VerifiedMessage {
  return verifyScannedSubmission(scanJsonObject(body), nowSeconds, checkPersonal);
}

/** The same for a body that was scanned already. */
export function verifyScannedSubmission(
  scanned: ScannedObject,
  nowSeconds: number,
  checkPersonal?: PersonalCheck,
): VerifiedMessage {
  const { message } = scanned.value;
  if (!isNetworkForm(message)) return verifyScannedEnvelope(scanned, nowSeconds, checkPersonal);
  try {
    return keptForm(verifyNetworkMessage(parseNetworkMessage(message), nowSeconds, checkPersonal));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const details = { ...(error.details as object | undefined), form: 'network' };
    throw new AppError(error.code, error.message, { cause: error.cause, details });
  }
}
