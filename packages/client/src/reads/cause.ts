/** Why a connection failed, in a word of the system where there is one. */
export function causeOf(error: unknown): string {
  const { cause, code, message } = error as Error & {
    code?: string;
    cause?: { code?: string; message?: string };
  };
  return cause?.code ?? cause?.message ?? code ?? message;
}
