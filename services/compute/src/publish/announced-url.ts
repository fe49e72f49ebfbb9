import { createAddressSet, urlOfListener } from '@skerry/kit';
import type { ComputeConfig } from '../config.ts';

const isLoopbackAddress = createAddressSet(['127.0.0.0/8', '::1']);

/** Whether a URL means the machine that asks for it, whichever that is. */
function isLoopback(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return /^(.+\.)?localhost\.?$/i.test(host) || isLoopbackAddress(host);
}

/**
 * Why the network could not reach a node at the URL that it would announce, or undefined. A URL of loopback is of use only to
 * a network on this machine. Pure.
 */
export function findAnnouncedUrlFault({
  announceUrl,
  host,
  port,
  coreUrl,
}: Pick<ComputeConfig, 'announceUrl' | 'host' | 'port' | 'coreUrl'>): string | undefined {
  const announced = announceUrl ?? urlOfListener('http', host, port);
  if (!URL.canParse(announced) || !/^https?:$/.test(new URL(announced).protocol))
    return `SKERRY_COMPUTE_ANNOUNCE_URL must be an http or https URL, not ${announced}`;
  if (!isLoopback(announced) || isLoopback(coreUrl)) return undefined;
  return (
    `this node would announce ${announced}, where others find only themselves, and its core node ${coreUrl} is elsewhere; ` +
    `set SKERRY_COMPUTE_ANNOUNCE_URL to the URL at which others reach this node, such as http://192.0.2.7:${port}`
  );
}
