import { createAsker, createReach } from '@skerry/kit';

const TIMEOUT_MS = 5_000;
const BODY_BYTES_MAX = 64 * 1024;

const configured = createAsker({ mayReach: createReach(true) });
const strangers = createAsker({ mayReach: createReach(false) });

/**
 * What a core node says of itself to everybody. Rejects where it says nothing, or too much.
 * @param mayBePrivate whether it is asked at a private address, as peers are that the settings name
 */
export async function askGreeting(
  url: string,
  signal: AbortSignal,
  mayBePrivate = true,
): Promise<Readonly<Record<string, unknown>>> {
  const asker = mayBePrivate ? configured : strangers;
  const { status, body } = await asker.ask(`${url.replace(/\/+$/, '')}/api/v0/info/public.json`, {
    timeoutMs: TIMEOUT_MS,
    bodyBytesMax: BODY_BYTES_MAX,
    signal,
  });
  if (status !== 200) throw new Error(`${url} returned ${status}`);
  return JSON.parse(body.toString('utf8')) ?? {};
}
