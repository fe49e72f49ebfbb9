import { buildNetworkMessage, type MessageDraft, type SignedBody, signMessage } from '@skerry/client';
import { itemHashOf, LIMITS, sha256Hex } from '@skerry/protocol';
import { instanceContent, signers } from '../../testing/core.ts';
import type { SeededDice } from './dice.ts';

/** Clients that date as they like, and those that send the network form. */
const HOSTILE_SHARE = 0.2;
const NETWORK_SHARE = 0.2;
const YEAR_SECONDS = 365 * 86_400;
/** What is dated further ahead is due after a run's end. */
const AHEAD_SECONDS = 3 * 3_600;
/** The largest that the wire takes. */
const TIMESTAMP_MAX = 9_223_372_036;

const OWNERS = [signers.alice, signers.bob] as const;

export interface ClientMessage extends Pick<SignedBody, 'body' | 'itemHash'> {
  /** `AMEND` for a POST that amends another one. */
  readonly type: string;
  /** Which of the run's owners sent it; -1 for nobody whose messages others refer to. */
  readonly owner: number;
}

/** What clients of a run sent and had acknowledged. */
export class Clients {
  readonly #dice: SeededDice;
  /** Hashes of the files that messages in force name. */
  readonly files = new Set<string>();
  readonly acknowledged: { readonly itemHash: string; readonly type: string; readonly owner: number }[] = [];
  /** Everything that was ever signed: nothing else may be anywhere. */
  readonly signed = new Set<string>();
  #count = 0;
  readonly #isHostile: boolean;

  /** @param isHostile whether some date their messages as far off as the wire allows */
  constructor(dice: SeededDice, isHostile: boolean) {
    this.#dice = dice;
    this.#isHostile = isHostile;
  }

  /** Unix seconds, by an honest clock mostly. */
  #date(nowMs: number): number {
    const nowSeconds = Math.floor(nowMs / 1000);
    if (!this.#isHostile || !this.#dice.chance(HOSTILE_SHARE)) return nowSeconds - this.#dice.below(60);
    const dates = [
      0,
      1,
      nowSeconds - YEAR_SECONDS,
      nowSeconds - this.#dice.below(AHEAD_SECONDS),
      nowSeconds + LIMITS.futureSeconds,
      nowSeconds + LIMITS.futureSeconds + 1,
      // Nodes whose clocks are fast take it.
      nowSeconds + this.#dice.below(AHEAD_SECONDS),
      TIMESTAMP_MAX,
    ];
    return dates[this.#dice.below(dates.length)]!;
  }

  #draft(owner: number): { type: string; content: unknown } {
    const n = this.#count;
    const own = this.acknowledged.filter((one) => one.owner === owner);
    const pick = (type: string) => {
      const some = own.filter((one) => one.type === type);
      return some.length > 0 ? some[this.#dice.below(some.length)]!.itemHash : undefined;
    };
    const roll = this.#dice.next();
    const post = pick('POST');
    const machine = pick('INSTANCE');
    if (roll < 0.1)
      return { type: 'AGGREGATE', content: { key: `k${n % 3}`, content: { [`f${n % 5}`]: n } } };
    if (roll < 0.15) return { type: 'INSTANCE', content: { ...instanceContent, name: `m${n}` } };
    if (roll < 0.25 && machine)
      return {
        type: 'INSTANCE_CONTROL',
        content: { instance_id: machine, action: n % 2 ? 'stop' : 'start' },
      };
    if (roll < 0.4 && post) return { type: 'POST', content: { type: 'amend', ref: post, content: { n } } };
    if (roll < 0.5 && post) return { type: 'FORGET', content: { hashes: [post] } };
    return { type: 'POST', content: { type: 'note', content: { n }, tags: [`t${n % 3}`] } };
  }

  /** The next message, dated by its client's clock. */
  next(nowMs: number): ClientMessage {
    const owner = this.#dice.below(OWNERS.length);
    const draft: MessageDraft = {
      ...this.#draft(owner),
      timestamp: this.#date(nowMs),
      nonce: String(this.#count++),
    };
    // Clients of deployed networks date with fractions of a second.
    const isNetwork = draft.type === 'POST' && this.#dice.chance(NETWORK_SHARE);
    const time = draft.timestamp! + this.#dice.fraction();
    const signed = isNetwork
      ? buildNetworkMessage(
          { type: draft.type, content: draft.content as Record<string, unknown>, time },
          OWNERS[owner]!,
        )
      : signMessage(draft, OWNERS[owner]!);
    this.signed.add(signed.itemHash);
    return { ...signed, type: draft.type === 'POST' && isAmend(draft) ? 'AMEND' : draft.type, owner };
  }

  /** A file with what its uploader signs; and the message that its node makes of it. */
  nextUpload(): {
    readonly text: string;
    readonly fileHash: string;
    readonly itemHash: string;
    readonly form: Form;
  } {
    const owner = OWNERS[this.#dice.below(OWNERS.length)]!;
    const text = `file ${this.#count++} ${'x'.repeat(this.#dice.below(2_000))}`;
    const fileHash = sha256Hex(text);
    const itemHash = itemHashOf('ETH', owner.address, fileHash);
    this.signed.add(itemHash);
    const fields = { address: owner.address, signature: owner.sign(fileHash), channel: 'files' };
    return { text, fileHash, itemHash, form: formOf(fields, text) };
  }

  /** A JSON file that is kept on one node, and the message that asks another one to keep it. */
  nextFile(nowMs: number): {
    readonly text: string;
    readonly fileHash: string;
    readonly message: SignedBody;
  } {
    const text = JSON.stringify({ file: this.#count });
    const fileHash = sha256Hex(text);
    const message = signMessage(
      {
        type: 'STORE',
        content: { item_type: 'storage', item_hash: fileHash },
        timestamp: Math.floor(nowMs / 1000),
        nonce: String(this.#count++),
      },
      OWNERS[this.#dice.below(OWNERS.length)]!,
    );
    this.signed.add(message.itemHash);
    return { text, fileHash, message };
  }
}

interface Form {
  readonly body: string;
  readonly headers: Record<string, string>;
}

const BOUNDARY = 'sim';
function formOf(fields: Readonly<Record<string, string>>, file: string): Form {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  const last = `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\nContent-Type: text/plain\r\n\r\n${file}\r\n--${BOUNDARY}--\r\n`;
  return {
    body: parts.join('') + last,
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
  };
}

const isAmend = ({ content }: MessageDraft) => (content as { type?: string }).type === 'amend';
