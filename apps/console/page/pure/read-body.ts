/** The first bytes of an answer, as many as it may have and one more: a stranger may send any number. Rejects where it breaks off. */
export async function readUpTo(
  { body }: Pick<Response, 'body'>,
  limitBytes: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let left = limitBytes + 1;
  const reader = body?.getReader();
  while (reader && left > 0) {
    const { done, value } = await reader.read();
    if (done) break;
    const taken = value.subarray(0, left);
    chunks.push(taken);
    left -= taken.length;
  }
  await reader?.cancel();
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
