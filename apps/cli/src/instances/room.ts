import { findLack, type Lack, type WantedSize } from '@skerry/client/room';
import { confirm } from '../confirm.ts';
import type { Context } from '../context.ts';
import { ASIDE } from '../network/gateway.ts';
import { plainText } from '../output/text.ts';

export interface RoomOptions {
  /** Whether it may be larger than every node. */
  readonly yes?: boolean;
}

/** Undefined also where nobody says: it is created all the same. */
const askLack = ({ findService }: Context, size: WantedSize): Promise<Lack | undefined> =>
  findService('scheduler')
    .then((url) => findLack(url, size, ASIDE))
    .catch(() => undefined);

/**
 * Says what an instance would wait for; asks before one that only another node than there is could take. Throws CONFIRMATION_REQUIRED
 * where nobody can be asked, or the answer is no.
 */
export async function confirmRoom(context: Context, size: WantedSize, { yes }: RoomOptions): Promise<void> {
  const lack = await askLack(context, size);
  if (lack === undefined) return;
  const sentence = plainText(lack.sentence);
  if (lack.isPassing || yes) {
    context.output.note(sentence);
    return;
  }
  await confirm(context, `${sentence}. Create it?`, {
    unasked: sentence,
    unattended: 'choose a smaller size, or create it all the same with --yes',
    refused: 'not confirmed; nothing was created',
  });
}
