import { createLogger } from '@skerry/kit';
import type { CoreRooms } from '../../../rooms.ts';
import { enforcementOf, TRUST_LISTS } from '../decide.ts';
import { type GivenTrust, Trust } from '../trust.ts';

/** What is stored becomes that of other settings, as at a start with them. The node itself trusts whom it did. */
export async function deriveFor(
  rooms: Pick<CoreRooms, 'db' | 'trust' | 'pipeline'>,
  other: GivenTrust,
): Promise<void> {
  const now = rooms.trust.view();
  const given: GivenTrust = {
    ...Object.fromEntries(TRUST_LISTS.map((name) => [name, now[name].value])),
    credit_enforcement: enforcementOf(now.credit_enforcement.value),
    ...other,
  };
  const log = createLogger('core', 'fatal');
  const trust = await Trust.open({ db: rooms.db, given, peers: 0, log });
  await trust.derive({ pipeline: rooms.pipeline, readContentFile: async () => undefined });
}
