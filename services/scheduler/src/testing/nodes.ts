import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSigner } from '@skerry/client';
import { createNodeProof, NODE_PROOF_PATH, nodeIdOf, sha256Hex } from '@skerry/protocol';

/** Compute nodes for tests: keys, and servers that prove them. */

export interface Key {
  readonly nodeId: string;
  readonly address: string;
  sign(text: string): string;
}

export function createKey(index: number): Key {
  const signer = createSigner(`0x${sha256Hex(`key ${index}`)}`);
  return { nodeId: nodeIdOf(signer.address), address: signer.address, sign: (text) => signer.sign(text) };
}

/** A server on loopback. */
export async function serve(listener: RequestListener, host = '127.0.0.1', port = 0) {
  const server = createServer(listener).listen(port, host);
  await once(server, 'listening');
  const own = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${own}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Proves a key at the place where it is asked, as an honest node does. @param place what it says it is; its Host if left out */
export const nodeServer =
  ({ nodeId, sign }: Key, place?: string): RequestListener =>
  (request, response) => {
    const url = new URL(request.url ?? '', `http://${request.headers.host}`);
    if (url.pathname !== NODE_PROOF_PATH) {
      response.end(JSON.stringify({ node_hash: nodeId }));
      return;
    }
    const challenge = url.searchParams.get('challenge') ?? '';
    response.end(JSON.stringify(createNodeProof({ nodeId, place: place ?? url.origin, challenge }, sign)));
  };
