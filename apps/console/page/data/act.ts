import type { Action, Done } from '../workers/actions.ts';
import { AskFailure } from './failure.ts';
import { identity } from './identity.ts';
import { CORE_URL } from './network.ts';
import { verify } from './workers.ts';

/** Has the reader sign an action, and sends it. Throws AskFailure, also where the reader does not want to. */
export async function act(action: Action, onProgress?: (done: number) => void): Promise<Done> {
  const by = identity.value;
  if (!by) throw new AskFailure('SIGNATURE_REQUIRED', 'this is signed, and no key is chosen');
  return verify('act', { coreUrl: CORE_URL, action }, { by, onProgress });
}
