import { createAsker, createReach } from '@skerry/kit';

const TIMEOUT_MS = 5_000;
const BODY_BYTES_MAX = 64 * 1024;

/** Peers are configured: they may be at private addresses. */
const asker = createAsker({ mayReach: createReach(true) });

/** What a core node says of itself to everybody. Rejects where it says nothing, or too much. */
export async function askGreeting(
  url: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const { status, body } = await asker.ask(`${url.replace(/\/+$/, '')}/api/v0/info/public.json`, {
    timeoutMs: TIMEOUT_MS,
    bodyBytesMax: BODY_BYTES_MAX,
    signal,
  });
  if (status !== 200) throw new Error(`${url} returned ${status}`);
  return JSON.parse(body.toString('utf8')) ?? {};
}
