const NO_TLS = 'it speaks no TLS: its address may begin with http:';

const OTHER_NAME = 'its certificate is for another name';
const UNKNOWN_ISSUER = 'its certificate is of an authority that this computer does not know';

/** Codes that say too little to who reads them: of Node, and of OpenSSL's X509_V_ERR_*, which Node has without that prefix. */
const WORDS: Readonly<Record<string, string>> = {
  ...{ EPROTO: NO_TLS, ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS },
  CERT_HAS_EXPIRED: "its certificate has expired, by this computer's clock",
  CERT_NOT_YET_VALID: "its certificate is not valid yet, by this computer's clock",
  ...{ ERR_TLS_CERT_ALTNAME_INVALID: OTHER_NAME, HOSTNAME_MISMATCH: OTHER_NAME },
  ...{ UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_ISSUER, UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_ISSUER },
  ...{ UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_ISSUER, SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_ISSUER },
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by nobody but itself',
};

/**
 * A certificate that is not believed, by which nothing is sent. Node names them as OpenSSL does, without a list or a prefix, and has
 * ERR_TLS_CERT_* beside those.
 */
const NOT_BELIEVED =
  /^(?!ERR_SSL_).*(CERT|CRL)|^UNABLE_TO_|^INVALID_(CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$|^HOSTNAME_MISMATCH$/;

/** Whether a connection failed because the certificate is not believed. @param code as codeOfCause has it */
export const isNotBelieved = (code: string): boolean => NOT_BELIEVED.test(code);

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
