import { isDeepStrictEqual } from 'node:util';
import { type Signer, signMessage } from '@skerry/client';
import {
  type CoreNodeContent,
  LIMITS,
  NETWORK_CHANNEL,
  NETWORK_POST,
  parseCoreNodeContent,
  type VrfKeyView,
} from '@skerry/protocol';
import type { Kysely } from 'kysely';
import type { Intake } from '../../intake/intake.ts';
import type { Schema } from '../../store/schema.ts';
import type { KnownVrfKeys } from './known-keys.ts';

/** Announcements of one node that are looked at, newest first: each tells up to a hundred keys. */
const ANNOUNCEMENTS_MAX = 100;

/** Newest first. */
async function listAnnouncements(db: Kysely<Schema>, sender: string): Promise<CoreNodeContent[]> {
  const rows = await db
    .selectFrom('messages')
    .select('content')
    .where('status', '=', 'processed')
    .where('type', '=', 'POST')
    .where('content_type', '=', NETWORK_POST.coreNode)
    .where('sender', '=', sender)
    .orderBy('time', 'desc')
    .limit(ANNOUNCEMENTS_MAX)
    .execute();
  // They were parsed when they came in. Messages have the resolution of a second, announcements a finer one.
  return rows
    .map(({ content }) => parseCoreNodeContent((content as { content: unknown }).content))
    .toSorted((a, b) => b.announced_at_ms - a.announced_at_ms);
}

/** What the given core nodes have published in the node registry. @param senders addresses that count */
export function knownFromRegistry(db: Kysely<Schema>, senders: ReadonlySet<string>): KnownVrfKeys {
  return {
    async find(suite, publicKey) {
      for (const sender of senders)
        for (const { vrf_keys: keys } of await listAnnouncements(db, sender)) {
          const key = keys.find((one) => one.suite === suite && one.public_key === publicKey);
          if (key) return key;
        }
      return undefined;
    },
  };
}

/**
 * Tells the network of this node's keys, unless its last announcement said the same. A key that was retired is told with its
 * dates; what earlier announcements told stays.
 */
export async function publishVrfKeys(options: {
  readonly db: Kysely<Schema>;
  readonly intake: Pick<Intake, 'own'>;
  readonly signer: Signer;
  readonly keys: readonly VrfKeyView[];
  readonly now: () => number;
}): Promise<'published' | 'unchanged'> {
  const { db, intake, signer, now } = options;
  const keys = options.keys.slice(0, LIMITS.vrfPublishedKeys);
  const [last] = await listAnnouncements(db, signer.address);
  if (isDeepStrictEqual(last?.vrf_keys, keys)) return 'unchanged';
  const content = { vrf_keys: keys, announced_at_ms: now() };
  const { body } = signMessage(
    {
      type: 'POST',
      channel: NETWORK_CHANNEL.core,
      content: { type: NETWORK_POST.coreNode, content },
    },
    signer,
  );
  await intake.own.submit(Buffer.from(body));
  return 'published';
}
