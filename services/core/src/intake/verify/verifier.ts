import {
  AppError,
  type EnvelopeProof,
  findEnvelopeProof,
  isErrorCode,
  type PersonalCheck,
  readProvenEnvelope,
  type VerifiedMessage,
  verifyShared,
  verifySubmission,
} from '@skerry/protocol';
import type { SignatureBatch } from './batch/batch.ts';

/**
 * Verifies submissions (protocol's verifySubmission). `from` says who brings them, as in Suspects; what names nobody counts
 * as one source.
 */
export interface Verifier extends AsyncDisposable {
  /** Throws AppError as verifySubmission does, and OVERLOADED. */
  verify(body: Uint8Array, nowSeconds: number, from?: string): Promise<VerifiedMessage>;
  /** The same for a message that another node passed on (protocol's verifyShared). */
  verifyShared(body: Uint8Array, nowSeconds: number, from?: string): Promise<VerifiedMessage>;
  /** The same for many that came together: a result for each, in order (readVerified). Throws OVERLOADED. */
  verifyAll(frames: readonly Uint8Array[], nowSeconds: number, from?: string): Promise<VerifyResult[]>;
}

/**
 * What a worker is sent: some bodies at once, since each message between threads has its price, and in one piece of memory,
 * which goes over as a whole: a piece for each would be garbage beside the heap, for two threads.
 */
export interface Task {
  readonly packed: Uint8Array<ArrayBuffer>;
  readonly lengths: readonly number[];
  /** Of each body, whether another node passed it on. */
  readonly shared: readonly boolean[];
  /** Of each body, whether it is judged by itself (Suspects). */
  readonly alone: readonly boolean[];
  readonly nowSeconds: number;
}

export interface TaskResult {
  readonly results: readonly VerifyResult[];
  /** Those that made a batch fail, though some of them may be valid. */
  readonly wrong: readonly number[];
}

/** The same for each body, in order. Errors do not survive the way between threads as they are. */
export type VerifyResult =
  | { readonly message: VerifiedMessage }
  /** Whoever has its text needs no copy of what it says. */
  | { readonly proof: EnvelopeProof }
  | { readonly code: string; readonly error: string; readonly details: unknown };

/** Results as they go from thread to thread: proofs by column, since names and objects of each would be written and made for each. */
export interface PackedResult extends Pick<TaskResult, 'wrong'> {
  /** Those that are no proofs; undefined in the place of one. */
  readonly others: readonly (Exclude<VerifyResult, { proof: EnvelopeProof }> | undefined)[];
  readonly itemHashes: readonly string[];
  readonly senders: readonly string[];
  readonly signatures: readonly string[];
  readonly signedChars: readonly number[];
  readonly notedMs: readonly (number | undefined)[];
}

export function packResult({ results, wrong }: TaskResult): PackedResult {
  const proofs = results.flatMap((one) => ('proof' in one ? one.proof : []));
  return {
    wrong,
    others: results.length === proofs.length ? [] : results.map((one) => ('proof' in one ? undefined : one)),
    itemHashes: proofs.map(({ itemHash }) => itemHash),
    senders: proofs.map(({ sender }) => sender),
    signatures: proofs.map(({ signature }) => signature),
    signedChars: proofs.map(({ signedChars }) => signedChars),
    notedMs: proofs.map(({ notedMs }) => notedMs),
  };
}

export function unpackResult(packed: PackedResult): TaskResult {
  const { wrong, others, itemHashes, senders, signatures, signedChars, notedMs } = packed;
  const proofs = itemHashes.map((itemHash, at) => ({
    proof: {
      itemHash,
      sender: senders[at]!,
      signature: signatures[at]!,
      signedChars: signedChars[at]!,
      notedMs: notedMs[at],
    },
  }));
  let next = 0;
  return { wrong, results: others.length === 0 ? proofs : others.map((one) => one ?? proofs[next++]!) };
}

function verifyBody(
  body: Uint8Array,
  nowSeconds: number,
  isShared = false,
  check?: PersonalCheck,
): Exclude<VerifyResult, { proof: EnvelopeProof }> {
  try {
    return { message: (isShared ? verifyShared : verifySubmission)(body, nowSeconds, check) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { code: error.code, error: error.message, details: error.details };
  }
}

function proveBody(
  body: Uint8Array,
  nowSeconds: number,
  isShared: boolean,
  check?: PersonalCheck,
): VerifyResult {
  const result = verifyBody(body, nowSeconds, isShared, check);
  if (!('message' in result)) return result;
  const proof = findEnvelopeProof(textOf(body), result.message);
  return proof ? { proof } : result;
}

const textOf = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString();

/** What is said of each body of a task; those that are left out: no. */
interface Said {
  readonly shared?: readonly boolean[];
  readonly alone?: readonly boolean[];
}

export function packTask(
  bodies: readonly Uint8Array[],
  nowSeconds: number,
  { shared, alone }: Said = {},
): Task {
  const packed = new Uint8Array(bodies.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const body of bodies) {
    packed.set(body, at);
    at += body.length;
  }
  const no = bodies.map(() => false);
  return {
    ...{ packed, lengths: bodies.map(({ length }) => length), nowSeconds },
    ...{ shared: shared ?? no, alone: alone ?? no },
  };
}

/** One of a task. */
interface Item<R extends VerifyResult> {
  readonly isAlone: boolean;
  verify(check?: PersonalCheck): R;
}

function listItems({ packed, lengths, shared, alone, nowSeconds }: Task): Item<VerifyResult>[] {
  let end = 0;
  return lengths.map((length, at) => {
    end += length;
    const body = packed.subarray(end - length, end);
    return { isAlone: alone[at]!, verify: (check) => proveBody(body, nowSeconds, shared[at]!, check) };
  });
}

function judge<R extends VerifyResult>(items: readonly Item<R>[], batch: SignatureBatch | undefined) {
  const round = batch?.start();
  const results = items.map((item, at) => item.verify(item.isAlone ? undefined : round?.checkOf(at)));
  const wrong = round?.settle() ?? [];
  for (const at of wrong) results[at] = items[at]!.verify();
  return { results, wrong };
}

/** What a worker does. @param batch judges signatures together; without it, each is recovered */
export const runTask = (task: Task, batch?: SignatureBatch): TaskResult => judge(listItems(task), batch);

/** @param frame what the result is of. Throws what verifySubmission throws */
export const readVerified = (result: VerifyResult, frame: Uint8Array): VerifiedMessage =>
  'proof' in result ? readProvenEnvelope(textOf(frame), result.proof) : resultOf(result);

function resultOf(result: Exclude<VerifyResult, { proof: EnvelopeProof }>): VerifiedMessage {
  if ('message' in result) return result.message;
  const code = isErrorCode(result.code) ? result.code : 'INTERNAL';
  throw new AppError(code, result.error, { details: result.details });
}

/** Verifies where it is called: for tests and for tools that have a process of their own. */
export function createInlineVerifier(batch?: SignatureBatch): Verifier {
  const one = (body: Uint8Array, nowSeconds: number, isShared: boolean) => {
    const item = {
      isAlone: false,
      verify: (check?: PersonalCheck) => verifyBody(body, nowSeconds, isShared, check),
    };
    return resultOf(judge([item], batch).results[0]!);
  };
  return {
    verify: async (body, nowSeconds) => one(body, nowSeconds, false),
    verifyShared: async (body, nowSeconds) => one(body, nowSeconds, true),
    verifyAll: async (frames, nowSeconds) => {
      const shared = frames.map(() => true);
      return [...runTask(packTask(frames, nowSeconds, { shared }), batch).results];
    },
    async [Symbol.asyncDispose]() {},
  };
}

export const inlineVerifier = createInlineVerifier();
