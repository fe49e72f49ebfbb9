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

/** What a worker is sent: some bodies at once, since each message between threads has its price. */
export type Task = BodiesTask | FramesTask;

interface BodiesTask {
  readonly bodies: readonly Uint8Array[];
  /** Of each body, whether another node passed it on. */
  readonly shared: readonly boolean[];
  /** Of each body, whether it is judged by itself (Suspects). */
  readonly alone: readonly boolean[];
  readonly nowSeconds: number;
}

/** Messages of another node in one piece of memory, which goes over as a whole. */
export interface FramesTask {
  readonly packed: Uint8Array<ArrayBuffer>;
  readonly lengths: readonly number[];
  /** Whether each is judged by itself. */
  readonly alone: boolean;
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
  /** Of a frame: whoever has its text needs no copy of what it says. */
  | { readonly proof: EnvelopeProof }
  | { readonly code: string; readonly error: string; readonly details: unknown };

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

function verifyFrame(frame: Uint8Array, nowSeconds: number, check?: PersonalCheck): VerifyResult {
  const result = verifyBody(frame, nowSeconds, true, check);
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
  return { packed, lengths: frames.map(({ length }) => length), alone: false, nowSeconds };
}

/** One of a task. */
interface Item {
  readonly isAlone: boolean;
  verify(check?: PersonalCheck): VerifyResult;
}

function listItems(task: Task): Item[] {
  const { nowSeconds } = task;
  if ('bodies' in task)
    return task.bodies.map((body, at) => ({
      isAlone: task.alone[at]!,
      verify: (check) => verifyBody(body, nowSeconds, task.shared[at], check),
    }));
  let end = 0;
  return task.lengths.map((length) => {
    end += length;
    const frame = task.packed.subarray(end - length, end);
    return { isAlone: task.alone, verify: (check) => verifyFrame(frame, nowSeconds, check) };
  });
}

/** What a worker does. @param batch judges signatures together; without it, each is recovered */
export function runTask(task: Task, batch?: SignatureBatch): TaskResult {
  const round = batch?.start();
  const items = listItems(task);
  const results = items.map((item, at) => item.verify(item.isAlone ? undefined : round?.checkOf(at)));
  const wrong = round?.settle() ?? [];
  for (const at of wrong) results[at] = items[at]!.verify();
  return { results, wrong };
}

/** @param frame what the result is of. Throws what verifySubmission throws */
export const readVerified = (result: VerifyResult, frame: Uint8Array): VerifiedMessage =>
  'proof' in result ? readProvenEnvelope(textOf(frame), result.proof) : resultOf(result);

function resultOf(result: Exclude<VerifyResult, { proof: EnvelopeProof }>): VerifiedMessage {
  if ('message' in result) return result.message;
  const code = isErrorCode(result.code) ? result.code : 'INTERNAL';
  throw new AppError(code, result.error, { details: result.details });
}

const taskOf = (body: Uint8Array, nowSeconds: number, isShared: boolean): Task => ({
  ...{ bodies: [body], shared: [isShared], alone: [false], nowSeconds },
});

/** Verifies where it is called: for tests and for tools that have a process of their own. */
export function createInlineVerifier(batch?: SignatureBatch): Verifier {
  const one = (body: Uint8Array, nowSeconds: number, isShared: boolean) =>
    readVerified(runTask(taskOf(body, nowSeconds, isShared), batch).results[0]!, body);
  return {
    verify: async (body, nowSeconds) => one(body, nowSeconds, false),
    verifyShared: async (body, nowSeconds) => one(body, nowSeconds, true),
    verifyAll: async (frames, nowSeconds) => [...runTask(packFrames(frames, nowSeconds), batch).results],
    async [Symbol.asyncDispose]() {},
  };
}

export const inlineVerifier = createInlineVerifier();
