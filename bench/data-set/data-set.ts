import type { VerifiedMessage } from '@skerry/protocol';
import { type Dice, hexOf } from './dice.ts';

/**
 * A network's messages, made by number: message `i` follows from the seed and `i` alone, so that millions can be written
 * without being kept. Skewed as real ones are (few owners with millions, most with one message), with pairs of large
 * properties that hardly meet. Signatures are dummies.
 */
export interface DataSet {
  readonly dice: Dice;
  readonly count: number;
}

export interface MadeMessage {
  readonly message: VerifiedMessage;
  readonly contentType: string | null;
  readonly subject: string | null;
  readonly tags: readonly string[];
  /** A later message of the set forgets it. */
  readonly forgottenBy: string | null;
}

const APPS = 40;
const CHANNELS = 200;
const TAGS = 500;
const MIDDLE_OWNERS = 3_000;
/** Owners with one message have the numbers from here on. */
const SINGLE_OWNERS_FROM = 10_000;
/** A tag and an application that ended; when they did, as a part of the whole time. */
export const ENDED_TAG = 'ended';
const TAG_END = 0.66;
export const ENDED_APP = APPS - 1;
const APP_END = 0.33;
/** An owner that began late. */
const LATE_OWNER = 3;
const LATE_FROM = 0.9;
/** Of two large properties that hardly meet, one message in so many has both. */
const RARELY = 2_000;

const FIRST_TIME = 1_650_000_000;
const SECONDS = 3 * 365 * 86_400;
/** Every thousandth message begins a burst of one second. */
const BURST_EVERY = 1_000;
const BURST = 50;

const FORGET_AFTER = 7;
const AMEND_AFTER = 5;
export const FILES = 200;

const zipfOf = (length: number, power: number): number[] => {
  const weights = Array.from({ length }, (_, rank) => 1 / (rank + 1) ** power);
  const sum = weights.reduce((total, one) => total + one, 0);
  let reached = 0;
  return weights.map((weight) => {
    reached += weight / sum;
    return reached;
  });
};
const rankOf = (table: readonly number[], at: number): number => {
  let [low, high] = [0, table.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (table[middle]! < at) low = middle + 1;
    else high = middle;
  }
  return low;
};
const APP_TABLE = zipfOf(APPS, 1.1);
const CHANNEL_TABLE = zipfOf(CHANNELS, 1);
const TAG_TABLE = zipfOf(TAGS, 1);
const OWNER_TABLE = zipfOf(MIDDLE_OWNERS, 0.8);

export const fileHashOf = (dice: Dice, file: number) => hexOf(dice, file, 90, 8);
export const addressOf = (dice: Dice, owner: number) => `0x${hexOf(dice, owner, 80, 5)}`;
export const hashOf = (dice: Dice, index: number) => hexOf(dice, index, 70, 8);
const channelOf = (rank: number) => `channel-${rank}`;
const tagOf = (rank: number) => `tag-${rank}`;
const contentTypeOf = (app: number) => `app-${app}`;

type Kind = 'instance' | 'program' | 'profile' | 'settings' | 'store' | 'post';

function appOf({ dice, count }: DataSet, index: number): number {
  const app = rankOf(APP_TABLE, dice(index, 1));
  return app === ENDED_APP && index > count * APP_END ? 0 : app;
}

function baseOf(set: DataSet, index: number): Kind {
  const at = set.dice(index, 2);
  if (at < 0.01) return 'instance';
  if (at < 0.02) return 'program';
  const app = appOf(set, index);
  if (app === 2) return 'profile';
  if (app === 9) return 'settings';
  return app === 5 || app === 13 ? 'store' : 'post';
}

function ownerOf({ dice, count }: DataSet, index: number): number {
  const at = dice(index, 3);
  if (at < 0.2) return 0;
  if (at < 0.3) return 1;
  if (at < 0.35) return 2;
  if (at < 0.375) return index < count * LATE_FROM ? SINGLE_OWNERS_FROM + index : LATE_OWNER;
  return at < 0.6 ? 4 + rankOf(OWNER_TABLE, dice(index, 4)) : SINGLE_OWNERS_FROM + index;
}

const wantsAmend = ({ dice }: DataSet, index: number) => dice(index, 5) < 0.03;
/** A post that a FORGET would name if it comes to be one. */
const mayBeForgotten = (set: DataSet, index: number) =>
  index >= 0 && set.dice(index, 6) < 0.015 && baseOf(set, index) === 'post' && !wantsAmend(set, index);
const isForgotten = (set: DataSet, index: number) =>
  index + FORGET_AFTER < set.count &&
  mayBeForgotten(set, index) &&
  !mayBeForgotten(set, index - FORGET_AFTER);
const isForget = (set: DataSet, index: number) => isForgotten(set, index - FORGET_AFTER);
/** A post that is never amended, forgotten, nor anything but a post: others may name it. */
const isPlain = (set: DataSet, index: number) =>
  index >= 0 &&
  baseOf(set, index) === 'post' &&
  !wantsAmend(set, index) &&
  !mayBeForgotten(set, index) &&
  !isForget(set, index);
const isAmend = (set: DataSet, index: number) =>
  wantsAmend(set, index) && !isForget(set, index) && isPlain(set, index - AMEND_AFTER);

function timeOf({ count }: DataSet, index: number): number {
  const at = index % BURST_EVERY < BURST ? index - (index % BURST_EVERY) : index;
  return FIRST_TIME + Math.floor((at * SECONDS) / count);
}

const isRare = ({ dice }: DataSet, index: number) => dice(index, 7) < 1 / RARELY;

/** The largest owner is rare in the largest channel, and so is the largest application in the fourth. */
function channelAt(set: DataSet, index: number, owner: number, app: number): string | null {
  const at = set.dice(index, 8);
  if (at < 0.05) return null;
  const rank = at < 0.75 ? app : rankOf(CHANNEL_TABLE, set.dice(index, 9));
  if (isRare(set, index)) return channelOf(rank);
  if (rank === 0 && owner === 0) return channelOf(1);
  return rank === 3 && app === 0 ? channelOf(4) : channelOf(rank);
}

/** None to three of them; the largest owner hardly uses the most used one. */
function tagsAt(set: DataSet, index: number, owner: number): string[] {
  const { dice, count } = set;
  const tags: string[] = [];
  const at = dice(index, 10);
  const wanted = at < 0.5 ? 0 : at < 0.8 ? 1 : at < 0.95 ? 2 : 3;
  for (let i = 0; i < wanted; i++) {
    const rank = rankOf(TAG_TABLE, dice(index, 11 + i));
    if (rank !== 0 || owner !== 0 || isRare(set, index)) tags.push(tagOf(rank));
  }
  if (index < count * TAG_END && dice(index, 15) < 0.1) tags.push(ENDED_TAG);
  return [...new Set(tags)];
}

interface Made {
  readonly type: string;
  readonly content: Record<string, unknown>;
  readonly contentType?: string;
  readonly subject?: string;
  readonly tags?: readonly string[];
}

const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8Fh0uVwOqkFZkP3kCq5p8v0wYVqX5b0pD8kT3C1xYz bench';

const withTags = (tags: readonly string[]) => (tags.length === 0 ? {} : { tags });

function makePost(set: DataSet, index: number, app: number, tags: readonly string[]): Made {
  const content = {
    ...(app % 2 === 0 ? { text: `m${index}` } : {}),
    [`f${app}`]: index % 100,
    ...(set.dice(index, 16) < 0.1 ? { meta: { source: 'x' } } : {}),
  };
  const contentType = contentTypeOf(app);
  return { type: 'POST', contentType, tags, content: { type: contentType, content, ...withTags(tags) } };
}

function makeAmend(set: DataSet, index: number): Made {
  const ref = hashOf(set.dice, index - AMEND_AFTER);
  const content = { type: 'amend', ref, content: { text: `m${index}` } };
  return { type: 'POST', contentType: 'amend', subject: ref, content };
}

function makeAggregate(set: DataSet, index: number, owner: number, kind: Kind): Made {
  const number = Math.floor(set.dice(index, 17) * 2_000);
  const key = kind === 'profile' ? 'profile' : `settings-${number % 50}`;
  const content =
    kind === 'profile' ? { name: `n${number}`, city: 'Oban' } : { [`item${number}`]: index % 10 };
  return { type: 'AGGREGATE', subject: `${addressOf(set.dice, owner)}\n${key}`, content: { key, content } };
}

function makeContent(set: DataSet, index: number, owner: number, kind: Kind): Made {
  const { dice } = set;
  if (isForget(set, index))
    return { type: 'FORGET', content: { hashes: [hashOf(dice, index - FORGET_AFTER)] } };
  if (isAmend(set, index)) return makeAmend(set, index);
  if (kind === 'profile' || kind === 'settings') return makeAggregate(set, index, owner, kind);
  const tags = tagsAt(set, index, owner);
  if (kind === 'store') {
    const subject = fileHashOf(dice, Math.floor(dice(index, 18) * FILES));
    const content = { item_type: 'storage', item_hash: subject, ...withTags(tags) };
    return { type: 'STORE', subject, tags, content };
  }
  if (kind === 'program') {
    const content = { name: `p${index}`, code: 'x', runtime: 'python3', memory: 128, timeout: 5 };
    return { type: 'PROGRAM', content };
  }
  if (kind === 'instance') {
    const content = { name: `i${index}`, cpu: 1, memory: 512, disk: 4, image: 'debian:12', ssh_key: SSH_KEY };
    return { type: 'INSTANCE', content };
  }
  return makePost(set, index, appOf(set, index), tags);
}

/** What a message says of another is said by that one's owner. */
function speakerOf(set: DataSet, index: number): number {
  if (isForget(set, index)) return ownerOf(set, index - FORGET_AFTER);
  return ownerOf(set, isAmend(set, index) ? index - AMEND_AFTER : index);
}

export function makeMessage(set: DataSet, index: number): MadeMessage {
  const { dice } = set;
  const owner = speakerOf(set, index);
  const { type, content, contentType, subject, tags } = makeContent(set, index, owner, baseOf(set, index));
  return {
    message: {
      form: 'envelope',
      itemHash: hashOf(dice, index),
      chain: 'ETH',
      sender: addressOf(dice, owner),
      type,
      channel: channelAt(set, index, owner, appOf(set, index)),
      time: timeOf(set, index),
      content,
      signature: '0x00',
      sourceText: `{"content":${JSON.stringify(content)}}`,
    },
    contentType: contentType ?? null,
    subject: subject ?? null,
    tags: tags ?? [],
    forgottenBy: isForgotten(set, index) ? hashOf(dice, index + FORGET_AFTER) : null,
  };
}
