const NO_TLS = 'it speaks no TLS: its address may begin with http:';

/** Codes that say too little to who reads them. */
const WORDS: Readonly<Record<string, string>> = { EPROTO: NO_TLS, ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS };

/** The codes of a browser's own errors are numbers, which say nothing to anybody. */
const wordOf = (code: unknown) => (typeof code === 'string' ? code : undefined);

/** The system's own code of what a connection failed with, which `fetch` has as the cause of its error. */
export function codeOfCause(error: unknown): string | undefined {
  const { cause, code } = error as { code?: unknown; cause?: { code?: unknown } };
  return wordOf(cause?.code) ?? wordOf(code);
}

/** Why a connection failed, in a word of the system where there is one. */
export function causeOf(error: unknown): string {
  const { cause, code, message } = error as Error & {
    code?: unknown;
    cause?: { code?: unknown; message?: string };
  };
  const word = wordOf(cause?.code) ?? cause?.message ?? wordOf(code) ?? message;
  return WORDS[word] ?? word;
}
