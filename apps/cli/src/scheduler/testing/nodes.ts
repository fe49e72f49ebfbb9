import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { CoreClient, createSigner, generatePrivateKey } from '@skerry/client';
import {
  createNodeProof,
  NETWORK_CHANNEL,
  NETWORK_POST,
  NODE_PROOF_PATH,
  NODE_PROOF_PORT,
  nodeIdOf,
  nodeProofAddress,
} from '@skerry/protocol';

const run = promisify(execFile);

/** An address of this machine can be given and taken by root on Linux only. */
export const canHoldAddresses = process.platform === 'linux' && process.geteuid?.() === 0;

/** A random group of an address as it is printed everywhere: without a zero in front. */
const randomGroup = () => randomInt(0x1000, 0x1_0000).toString(16);

/** A random private network of this machine. */
export const randomPrefix = () =>
  `fd${randomBytes(1).toString('hex')}:${randomGroup()}:${randomGroup()}:1::/64`;

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export async function serve(answer: Answer, host = '127.0.0.1', port = 0) {
  const server = createServer(answer).listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export interface Say {
  readonly url?: string;
  readonly prefix?: string;
  readonly cpu?: number;
  readonly reason?: { code: string; message: string } | null;
}

/** A compute node as others see it: a key, what it announces, and what it answers. */
export class FakeNode implements AsyncDisposable {
  readonly #signer = createSigner(generatePrivateKey());
  readonly #stack = new AsyncDisposableStack();
  readonly prefix = randomPrefix();
  url = '';
  #saidMs = 0;

  get nodeId(): string {
    return nodeIdOf(this.#signer.address);
  }

  get address(): string {
    return this.#signer.address;
  }

  /** Answers everything with its proof for a place. */
  proves(place: () => string): Answer {
    return (request, response) => {
      const url = new URL(request.url ?? '', 'http://node');
      if (url.pathname !== NODE_PROOF_PATH) response.end(JSON.stringify({ node_hash: this.nodeId }));
      else {
        const challenge = url.searchParams.get('challenge') ?? '';
        const claim = { nodeId: this.nodeId, place: place(), challenge };
        response.end(JSON.stringify(createNodeProof(claim, (text) => this.#signer.sign(text))));
      }
    };
  }

  /** @param answer at its URL; what an honest node answers if left out */
  async listen(answer: Answer = this.proves(() => this.url)): Promise<this> {
    const { port } = this.#stack.use(await serve(answer));
    this.url = `http://127.0.0.1:${port}`;
    return this;
  }

  /** Has the address inside its prefix, and answers there. */
  async hold(prefix = this.prefix): Promise<this> {
    const address = nodeProofAddress(prefix);
    await run('ip', ['-6', 'address', 'replace', `${address}/128`, 'dev', 'lo', 'nodad']);
    this.#stack.defer(
      async () => void (await run('ip', ['-6', 'address', 'del', `${address}/128`, 'dev', 'lo'])),
    );
    this.#stack.use(
      await serve(
        this.proves(() => address),
        address,
        NODE_PROOF_PORT,
      ),
    );
    return this;
  }

  async announce(
    coreUrl: string,
    { url = this.url, prefix = this.prefix, cpu = 8, reason = null }: Say = {},
  ): Promise<void> {
    this.#saidMs = Math.max(Date.now(), this.#saidMs + 1);
    const content = {
      url,
      ipv6_prefix: prefix,
      capacity: { cpu, memory_mib: cpu * 1_024, disk_gib: cpu * 12 },
      features: ['program:nodejs'],
      version: '0.1.0',
      announced_at_ms: this.#saidMs,
      reason,
    };
    await new CoreClient({ url: coreUrl, signer: this.#signer }).postMessage({
      type: 'POST',
      channel: NETWORK_CHANNEL.compute,
      content: { type: NETWORK_POST.node, content },
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}
