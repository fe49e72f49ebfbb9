import {
  AppError,
  isErrorCode,
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
}

/** What a worker is sent: some bodies at once, since each message between threads has its price. */
export interface Task {
  readonly bodies: readonly Uint8Array[];
  /** Of each body, whether another node passed it on. */
  readonly shared: readonly boolean[];
  readonly nowSeconds: number;
}

/** The same for each body, in order. Errors do not survive the way between threads as they are. */
export type Verdict =
  | { readonly message: VerifiedMessage }
  | { readonly code: string; readonly error: string; readonly details: unknown };

export function verifyBody(body: Uint8Array, nowSeconds: number, isShared = false): Verdict {
  try {
    return { message: (isShared ? verifyShared : verifySubmission)(body, nowSeconds) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { code: error.code, error: error.message, details: error.details };
  }
}

export function resultOf(verdict: Verdict): VerifiedMessage {
  if ('message' in verdict) return verdict.message;
  const code = isErrorCode(verdict.code) ? verdict.code : 'INTERNAL';
  throw new AppError(code, verdict.error, { details: verdict.details });
}

/** Verifies where it is called: for tests and for tools that have a process of their own. */
export const inlineVerifier: Verifier = {
  verify: async (body, nowSeconds) => resultOf(verifyBody(body, nowSeconds)),
  verifyShared: async (body, nowSeconds) => resultOf(verifyBody(body, nowSeconds, true)),
  async [Symbol.asyncDispose]() {},
};
