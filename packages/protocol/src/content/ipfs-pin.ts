import { createParser } from '../schema.ts';
import { type Static, Type } from '../type.ts';
import { OnBehalfOf } from './on-behalf.ts';

/** IPFS_PIN: the node should keep this file of IPFS. Beside the CIDs of messages, single raw blocks (`bafk`) can be pinned. */
export const IpfsPinContent = Type.Object(
  {
    hash: Type.String({
      pattern: '^(Qm[1-9A-HJ-NP-Za-km-z]{42,44}|baf[ky][a-z2-7]{55})$',
      description: 'CID',
    }),
    address: Type.Optional(OnBehalfOf),
  },
  { additionalProperties: false },
);
export type IpfsPinContent = Static<typeof IpfsPinContent>;

export const parseIpfsPinContent = createParser(IpfsPinContent, 'content');
