/** By family, as nftables calls them. */
export interface Networks {
  readonly ip: readonly string[];
  readonly ip6: readonly string[];
}

/**
 * Where a guest never goes: its own link, this machine, where clouds tell machines their secrets, and addresses that carry
 * another one, by which a translator on the way would be led to any of these.
 */
export const NEVER_FROM_GUESTS: Networks = {
  ip: ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4'],
  ip6: [
    // ::1, and IPv4 written inside IPv6 (RFC 4291, section 2.5.5).
    '::/96',
    '::ffff:0:0/96',
    // Translators (RFC 6052, RFC 8215), Teredo (RFC 4380), 6to4 (RFC 3056).
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '2001::/32',
    '2002::/16',
    'fd00:ec2::254',
    'fd20:ce::254',
    'fe80::/10',
    'ff00::/8',
  ],
};

/**
 * Networks that begin behind the node and belong to whoever runs it (RFC 1918, 6598, 6890, 2544, 4193, 3879). Networks of
 * examples (RFC 5737, 3849) are nobody's.
 */
export const LAN: Networks = {
  ip: [
    '10.0.0.0/8',
    '100.64.0.0/10',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '240.0.0.0/4',
  ],
  ip6: ['100::/64', 'fc00::/7', 'fec0::/10'],
};
