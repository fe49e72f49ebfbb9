import type { TestCore } from '../../testing/core.ts';

/** Adds a file to the IPFS of a core node; no message keeps it yet. @returns its CID */
export async function addFile(core: TestCore, bytes: Buffer): Promise<string> {
  const form = new FormData();
  form.append('file', new Blob([bytes as never]), 'f');
  const request = new Request('http://x/', { method: 'POST', body: form });
  const body = Buffer.from(await request.arrayBuffer());
  const headers = { 'content-type': request.headers.get('content-type')! };
  return (await core.post('/ipfs/add_file', body, headers)).body.hash;
}
