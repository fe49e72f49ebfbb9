import { createHash } from 'node:crypto';
import {
  isQuicRefusal,
  isTlsRefusal,
  QUIC_FIGURE_NAMES,
  QUIC_OUTCOMES,
  type QuicFigure,
  TLS_FIGURE_NAMES,
  TLS_OUTCOMES,
  type TlsFigure,
} from '../figures.ts';

/**
 * What passes between the TypeScript side and the native plane: memory that both have, and frames through a pipe. native/layout.h
 * is generated from this file (`npm run generate`). Numbers are little endian, without gaps.
 */

export const KIND_BYTES = { u8: 1, u16: 2, u32: 4, i32: 4, u64: 8 } as const;
export type Kind = keyof typeof KIND_BYTES;
/** A number, or so many of them. */
export type Shape = Kind | readonly [Kind, number];
export type Fields = Readonly<Record<string, Shape>>;
export type Values<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends Kind ? number : readonly number[];
};

function readNumber(bytes: Buffer, kind: Kind, at: number): number {
  if (kind === 'u64') return Number(bytes.readBigUInt64LE(at));
  return kind === 'i32' ? bytes.readInt32LE(at) : bytes.readUIntLE(at, KIND_BYTES[kind]);
}

/** Where each field of a struct lies. */
export class Layout<F extends Fields> {
  readonly fields: F;
  readonly sizeBytes: number;
  readonly #places: readonly { name: string; kind: Kind; count: number | null; offset: number }[];

  constructor(fields: F) {
    this.fields = fields;
    let offset = 0;
    this.#places = Object.entries(fields).map(([name, shape]) => {
      const [kind, count] = typeof shape === 'string' ? [shape, null] : shape;
      const place = { name, kind, count, offset };
      offset += KIND_BYTES[kind] * (count ?? 1);
      return place;
    });
    this.sizeBytes = offset;
  }

  readonly offsetOf = (name: keyof F): number => this.#places.find((place) => place.name === name)!.offset;

  read(bytes: Buffer): Values<F> {
    return Object.fromEntries(
      this.#places.map(({ name, kind, count, offset }) => [
        name,
        count === null
          ? readNumber(bytes, kind, offset)
          : Array.from({ length: count }, (_, i) => readNumber(bytes, kind, offset + i * KIND_BYTES[kind])),
      ]),
    ) as Values<F>;
  }
}

const counted = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, 'u64'])) as Record<Name, 'u64'>;
const figures: Record<TlsFigure, 'u64'> = counted(TLS_FIGURE_NAMES);
const quicFigures: Record<QuicFigure, 'u64'> = counted(QUIC_FIGURE_NAMES);

/** The memory. `announcedBytes` is what the TypeScript side writes: how much it has said so far; the rest is the plane's. */
export const SHARED_STATS = new Layout({
  ...figures,
  outcomes: ['u64', TLS_OUTCOMES.length],
  ...quicFigures,
  quicOutcomes: ['u64', QUIC_OUTCOMES.length],
  connectionBytes: 'u64',
  announcedBytes: 'u64',
});

/** A line of the access log; the name follows. `outcome` is a place in the outcomes of the protocol, or none where it is beyond them. */
export const ACCESS_RECORD = new Layout({
  startedUnixMs: 'u64',
  bytesToInstance: 'u64',
  bytesToClient: 'u64',
  durationMs: 'u32',
  clientPort: 'u16',
  clientAddress: ['u8', 16],
  protocol: 'u8',
  outcome: 'u8',
  nameLength: 'u8',
});

/**
 * How many were refused of a network, an IPv4 /24 or an IPv6 /48, all zero for those that there was no place for; `outcome` is a place in
 * the outcomes of the protocol. A frame holds any number of them.
 */
export const REFUSED_RECORD = new Layout({
  network: ['u8', 16],
  count: 'u32',
  protocol: 'u8',
  outcome: 'u8',
});

/** Of a refused record, and of a line of the access log. */
export const REFUSED_PROTOCOLS = { tls: 0, quic: 1 } as const;

/**
 * What is known of a route: the answer to the question `id`. Times are Unix seconds, 0 for never; `failure` is an errno; bytes are
 * those of connections that have ended.
 */
export const ROUTE_ANSWER = new Layout({
  id: 'u32',
  open: 'u32',
  connectedAt: 'u32',
  failedAt: 'u32',
  since: 'u32',
  connections: 'u64',
  bytesToInstance: 'u64',
  bytesToClient: 'u64',
  quicAnsweredAt: 'u32',
  quicRefusedAt: 'u32',
  isKnown: 'u8',
  failure: 'u8',
});

/**
 * The listeners are open, all on this port. Where QUIC was to be forwarded if it can be, and cannot, `quicError` is an errno. How much
 * the kernel keeps of what comes by UDP is in `quicRoomBytes`, 0 without QUIC, and whether that is less than was asked for.
 */
export const LISTENING = new Layout({
  port: 'u16',
  isRoomScarce: 'u8',
  quicError: 'i32',
  quicRoomBytes: 'u32',
});

/** Why the listeners are not open: an errno, and which of the addresses it was. */
export const LISTEN_FAILURE = new Layout({ error: 'i32', host: 'u8' });

/** A bit for each outcome that is a refusal. */
const maskOf = <Outcome>(outcomes: readonly Outcome[], isRefusal: (outcome: Outcome) => boolean) =>
  outcomes.reduce((mask, outcome, place) => mask | (Number(isRefusal(outcome)) << place), 0);
export const TLS_REFUSALS = maskOf(TLS_OUTCOMES, isTlsRefusal);
export const QUIC_REFUSALS = maskOf(QUIC_OUTCOMES, isQuicRefusal);

/** Types of the frames that the plane is sent. */
export const COMMANDS = {
  begin: 'B',
  change: 'P',
  commit: 'C',
  listen: 'L',
  question: 'Q',
  stop: 'S',
} as const;
export type Command = (typeof COMMANDS)[keyof typeof COMMANDS];

/** Types of the frames that it sends. */
export const REPORTS = {
  listening: 'l',
  notListening: 'e',
  answer: 'q',
  access: 'a',
  refused: 'r',
  handedOver: 'h',
} as const;

/** Of a route that is put. */
export const ROUTE_FLAGS = { proxyHeader: 1 } as const;

/** Of all of the above: a program that was made for another layout is not to be started. */
export const LAYOUT_NUMBER = createHash('sha256')
  .update(
    JSON.stringify([
      ...[SHARED_STATS, ACCESS_RECORD, REFUSED_RECORD, ROUTE_ANSWER, LISTENING, LISTEN_FAILURE].map(
        ({ fields }) => fields,
      ),
      ...[
        TLS_OUTCOMES,
        QUIC_OUTCOMES,
        COMMANDS,
        REPORTS,
        ROUTE_FLAGS,
        REFUSED_PROTOCOLS,
        TLS_REFUSALS,
        QUIC_REFUSALS,
      ],
    ]),
  )
  .digest()
  .readUInt32LE();
