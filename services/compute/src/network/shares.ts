import { AppError } from '@skerry/protocol';
import type { ComputeConfig } from '../config.ts';
import type { NetworkNames } from './names.ts';

/** What one guest may have of what all of them share. 0: as much as there is. */
export type GuestShare = Pick<ComputeConfig, 'guestConnections' | 'guestMbit'>;

const BYTES_PER_MBIT = 125_000;
/** What may pass at once above the rate: a quarter of a second's, and some of the largest pieces that the kernel moves. */
const BURST_SECONDS = 0.25;
const BURST_BYTES_MIN = 1024 * 1024;
/** Guests of one node that are counted; more than it has links. */
const GUESTS_MAX = 8_192;
/** A guest that is gone is forgotten: by the kernel where its connections are counted, else after this time. */
const IDLE = '1h';
const SETS = {
  began: 'flags dynamic',
  taken: 'flags dynamic',
  sent: `flags dynamic,timeout\n    timeout ${IDLE}`,
  received: `flags dynamic,timeout\n    timeout ${IDLE}`,
};

const tableOf = ({ table }: NetworkNames) => `${table}_shares`;

/**
 * What holds each guest to its share, for `nft -f`: a table of its own, behind the firewall's, so that only what may pass is
 * counted. Putting it up again keeps what is counted.
 */
export function sharesRuleset(names: NetworkNames, { guestConnections, guestMbit }: GuestShare): string {
  if (![guestConnections, guestMbit].every((value) => Number.isSafeInteger(value) && value >= 0))
    throw new AppError('INVALID_PARAMETERS', "a guest's share must be a whole number");
  const table = tableOf(names);
  const taps = `"${names.tapPrefix}*"`;
  const rate = guestMbit * BYTES_PER_MBIT;
  const burst = Math.max(BURST_BYTES_MIN, Math.round(rate * BURST_SECONDS));
  const rules = (interfaceName: 'iifname' | 'oifname', counted: string, measured: string) =>
    [
      guestConnections > 0 &&
        `    ct state new add @${counted} { ${interfaceName} ct count over ${guestConnections} } drop`,
      guestMbit > 0 &&
        `    update @${measured} { ${interfaceName} limit rate over ${rate} bytes/second burst ${burst} bytes } drop`,
    ]
      .filter((rule) => rule !== false)
      .map((rule) => `${rule}\n`)
      .join('');
  const sets = Object.entries(SETS).map(
    ([name, flags]) => `  set ${name} {\n    type ifname\n    size ${GUESTS_MAX}\n    ${flags}\n  }\n`,
  );
  const chains = (body: (name: string) => string) => ['forward', 'from_guest', 'to_guest'].map(body).join('');
  return `table inet ${table} {
${sets.join('')}  chain forward {
    type filter hook forward priority filter + 10; policy accept;
  }
  chain from_guest {
  }
  chain to_guest {
  }
}
${chains((name) => `flush chain inet ${table} ${name}\n`)}table inet ${table} {
  chain from_guest {
${rules('iifname', 'began', 'sent')}  }
  chain to_guest {
${rules('oifname', 'taken', 'received')}  }
  chain forward {
    iifname ${taps} jump from_guest
    oifname ${taps} jump to_guest
  }
}
`;
}

/** Takes the table away, whether it is there or not. */
export function dropShares(names: NetworkNames): string {
  return `table inet ${tableOf(names)}\ndelete table inet ${tableOf(names)}\n`;
}
