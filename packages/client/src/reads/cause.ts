const NO_TLS = 'it speaks no TLS: its address may begin with http:';

/** Codes that say too little to who reads them. */
const WORDS: Readonly<Record<string, string>> = { EPROTO: NO_TLS, ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS };

/** Why a connection failed, in a word of the system where there is one. */
export function causeOf(error: unknown): string {
  const { cause, code, message } = error as Error & {
    code?: string;
    cause?: { code?: string; message?: string };
  };
  const word = cause?.code ?? cause?.message ?? code ?? message;
  return WORDS[word] ?? word;
}
