import { AskFailure } from '../data/failure.ts';

/** A passkey as the guard of a key: its extension `prf` gives the same secret bytes for the same question, to its owner alone. */

const QUESTION_BYTES = 32;
const CHALLENGE_BYTES = 32;
const TIMEOUT_MS = 120_000;
const ES256 = -7;
const RS256 = -257;

interface PrfResults {
  readonly prf?: { readonly enabled?: boolean; readonly results?: { readonly first?: BufferSource } };
}

export interface Passkey {
  readonly credential: Uint8Array<ArrayBuffer>;
  readonly question: Uint8Array<ArrayBuffer>;
  readonly secret: Uint8Array<ArrayBuffer>;
}

const random = (length: number) => crypto.getRandomValues(new Uint8Array(length));

const bytesOf = (source: BufferSource) =>
  source instanceof ArrayBuffer
    ? new Uint8Array(source)
    : new Uint8Array(
        source.buffer.slice(source.byteOffset, source.byteOffset + source.byteLength) as ArrayBuffer,
      );

const prfOf = (credential: PublicKeyCredential) => (credential.getClientExtensionResults() as PrfResults).prf;

const prfFor = (question: Uint8Array<ArrayBuffer>) =>
  ({ prf: { eval: { first: question } } }) as AuthenticationExtensionsClientInputs;

/** Why there can be no passkey at this address; undefined where there can. An address of numbers is no domain. */
export function passkeyFault(): string | undefined {
  if (!('PublicKeyCredential' in globalThis)) return 'This browser has no passkeys here.';
  if (/^[0-9.]+$|:/.test(location.hostname))
    return `Passkeys belong to a name, and ${location.hostname} is a number.`;
  return undefined;
}

const failed = (error: unknown) => {
  const isRefused = error instanceof DOMException && error.name === 'NotAllowedError';
  return new AskFailure(
    'SIGNATURE_REQUIRED',
    isRefused ? 'the passkey was refused, or nobody answered' : `the passkey failed: ${String(error)}`,
    'A passphrase does as well.',
  );
};

async function got(asking: Promise<Credential | null>): Promise<PublicKeyCredential> {
  try {
    const credential = await asking;
    if (credential instanceof PublicKeyCredential) return credential;
  } catch (error) {
    throw failed(error);
  }
  throw failed('it gave nothing');
}

/** The secret of a passkey. Throws AskFailure. */
export async function askPasskey(
  credential: Uint8Array<ArrayBuffer>,
  question: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await got(
    navigator.credentials.get({
      publicKey: {
        challenge: random(CHALLENGE_BYTES),
        allowCredentials: [{ type: 'public-key', id: credential }],
        userVerification: 'required',
        timeout: TIMEOUT_MS,
        extensions: prfFor(question),
      },
    }),
  );
  const first = prfOf(answer)?.results?.first;
  if (!first)
    throw new AskFailure(
      'SIGNATURE_REQUIRED',
      'this passkey cannot guard a key: it lacks the extension prf',
      'Choose a passphrase, or a passkey of another kind.',
    );
  return bytesOf(first);
}

/** Makes a passkey, and asks it for its secret. Throws AskFailure. @param name what the browser's list of passkeys shows */
export async function makePasskey(name: string): Promise<Passkey> {
  const question = random(QUESTION_BYTES);
  const made = await got(
    navigator.credentials.create({
      publicKey: {
        challenge: random(CHALLENGE_BYTES),
        rp: { name: 'Skerry console' },
        user: { id: random(QUESTION_BYTES), name, displayName: name },
        pubKeyCredParams: [ES256, RS256].map((alg) => ({ type: 'public-key', alg })),
        authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
        timeout: TIMEOUT_MS,
        extensions: prfFor(question),
      },
    }),
  );
  const credential = new Uint8Array(made.rawId);
  const first = prfOf(made)?.results?.first;
  // Some tell it only when they are asked for a signature.
  return { credential, question, secret: first ? bytesOf(first) : await askPasskey(credential, question) };
}
