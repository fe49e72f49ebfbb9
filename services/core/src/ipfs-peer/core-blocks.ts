import { Slots } from '@skerry/kit';
import { findBlockId } from '@skerry/kit/unixfs';
import type { CID } from 'multiformats/cid';
import { readUpTo } from '../store/ipfs/gateways.ts';
import { PEER_LIMITS } from './limits.ts';
import type { ByteRate } from './rate.ts';

/** As Bitswap looks for it: the peer is told that the block is not here. */
const notFound = (cid: CID) => Object.assign(new Error(`${cid} is not kept here`), { name: 'NotFoundError' });

interface Options {
  readonly signal?: AbortSignal;
}

/** Blocks that the core node keeps, as Bitswap reads them: through its gateway, which looks at nobody else. */
export class CoreBlocks {
  readonly #coreUrl: string;
  readonly #rate: ByteRate;
  readonly #slots = new Slots(PEER_LIMITS.reads, { waitingMax: PEER_LIMITS.readsWaiting });

  /** @param rate of what goes out to all peers: no more is read than may be sent */
  constructor(coreUrl: string, rate: ByteRate) {
    this.#coreUrl = coreUrl;
    this.#rate = rate;
  }

  async has(cid: CID, options: Options = {}): Promise<boolean> {
    return (await this.isKept(cid, options)) === true;
  }

  /** Whether a block is kept that can be sent; undefined where the core node is away or has no time to say. */
  async isKept(cid: CID, options: Options = {}): Promise<boolean | undefined> {
    if (!findBlockId(cid)) return false;
    const response = await this.#ask('HEAD', cid, options.signal).catch(() => undefined);
    if (response?.status === 404) return false;
    if (!response?.ok) return undefined;
    return (
      Number(response.headers.get('content-length') ?? Number.POSITIVE_INFINITY) <= PEER_LIMITS.blockBytes
    );
  }

  async *get(cid: CID, options: Options = {}): AsyncGenerator<Uint8Array> {
    await this.#rate.wait(options.signal);
    const response = await this.#ask('GET', cid, options.signal).catch(() => undefined);
    const bytes = response?.ok ? await readUpTo(response, PEER_LIMITS.blockBytes) : undefined;
    if (!bytes) throw notFound(cid);
    this.#rate.note(bytes.length);
    yield bytes;
  }

  async #ask(method: 'GET' | 'HEAD', cid: CID, signal?: AbortSignal): Promise<Response> {
    const id = findBlockId(cid);
    if (!id) throw notFound(cid);
    using _slot = await this.#slots.take(signal);
    const limit = AbortSignal.timeout(PEER_LIMITS.readMs);
    return fetch(`${this.#coreUrl}/ipfs/${id.text}?format=raw`, {
      method,
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
  }
}
