import {
  AppError,
  type EnvelopeProof,
  findEnvelopeProof,
  isErrorCode,
  readProvenEnvelope,
  type VerifiedMessage,
  verifyShared,
  verifySubmission,
} from '@skerry/protocol';

/** Verifies submissions (protocol's verifySubmission). */
export interface Verifier extends AsyncDisposable {
  /** Throws AppError as verifySubmission does, and OVERLOADED. */
  verify(body: Uint8Array, nowSeconds: number): Promise<VerifiedMessage>;
  /** The same for a message that another node passed on (protocol's verifyShared). */
  verifyShared(body: Uint8Array, nowSeconds: number): Promise<VerifiedMessage>;
  /** The same for many that came together: a result for each, in order (readVerified). Throws OVERLOADED. */
  verifyAll(frames: readonly Uint8Array[], nowSeconds: number): Promise<VerifyResult[]>;
}

/** What a worker is sent: some bodies at once, since each message between threads has its price. */
export type Task = BodiesTask | FramesTask;

interface BodiesTask {
  readonly bodies: readonly Uint8Array[];
  /** Of each body, whether another node passed it on. */
  readonly shared: readonly boolean[];
  readonly nowSeconds: number;
}

/** Messages of another node in one piece of memory, which goes over as a whole. */
export interface FramesTask {
  readonly packed: Uint8Array<ArrayBuffer>;
  readonly lengths: readonly number[];
  readonly nowSeconds: number;
}

/** The same for each body, in order. Errors do not survive the way between threads as they are. */
export type VerifyResult =
  | { readonly message: VerifiedMessage }
  /** Of a frame: whoever has its text needs no copy of what it says. */
  | { readonly proof: EnvelopeProof }
  | { readonly code: string; readonly error: string; readonly details: unknown };

function verifyBody(
  body: Uint8Array,
  nowSeconds: number,
  isShared = false,
): Exclude<VerifyResult, { proof: EnvelopeProof }> {
  try {
    return { message: (isShared ? verifyShared : verifySubmission)(body, nowSeconds) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { code: error.code, error: error.message, details: error.details };
  }
}

function verifyFrame(frame: Uint8Array, nowSeconds: number): VerifyResult {
  const result = verifyBody(frame, nowSeconds, true);
  if (!('message' in result)) return result;
  const proof = findEnvelopeProof(textOf(frame), result.message);
  return proof ? { proof } : result;
}

const textOf = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString();

export function packFrames(frames: readonly Uint8Array[], nowSeconds: number): FramesTask {
  const packed = new Uint8Array(frames.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const frame of frames) {
    packed.set(frame, at);
    at += frame.length;
  }
  return { packed, lengths: frames.map(({ length }) => length), nowSeconds };
}

/** What a worker does. */
export function runTask(task: Task): VerifyResult[] {
  const { nowSeconds } = task;
  if ('bodies' in task)
    return task.bodies.map((body, index) => verifyBody(body, nowSeconds, task.shared[index]));
  let at = 0;
  return task.lengths.map((length) => {
    at += length;
    return verifyFrame(task.packed.subarray(at - length, at), nowSeconds);
  });
}

/** @param frame what the result is of. Throws what verifySubmission throws */
export const readVerified = (result: VerifyResult, frame: Uint8Array): VerifiedMessage =>
  'proof' in result ? readProvenEnvelope(textOf(frame), result.proof) : resultOf(result);

function resultOf(result: Exclude<VerifyResult, { proof: EnvelopeProof }>): VerifiedMessage {
  if ('message' in result) return result.message;
  const code = isErrorCode(result.code) ? result.code : 'INTERNAL';
  throw new AppError(code, result.error, { details: result.details });
}

/** Verifies where it is called: for tests and for tools that have a process of their own. */
export const inlineVerifier: Verifier = {
  verify: async (body, nowSeconds) => resultOf(verifyBody(body, nowSeconds)),
  verifyShared: async (body, nowSeconds) => resultOf(verifyBody(body, nowSeconds, true)),
  verifyAll: async (frames, nowSeconds) => runTask(packFrames(frames, nowSeconds)),
  async [Symbol.asyncDispose]() {},
};
