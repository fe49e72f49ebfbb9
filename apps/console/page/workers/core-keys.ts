import { call, verifyListed } from '@skerry/client';
import {
  fieldsOf,
  NETWORK_POST,
  nodeIdOf,
  parseEvmAddress,
  parseNodeUrl,
  provesNode,
} from '@skerry/protocol';
import { NETWORK_LISTS_API } from '@skerry/protocol/api/core/deployed/lists';
import { NODE_API } from '@skerry/protocol/api/core/node';
import { type Challenged, challengeAt } from './challenge.ts';
import type { JudgedFact } from './facts.ts';

/** A core node as somebody tells it. */
export interface ToldCore {
  readonly url: string;
  /** Of its key; null: nobody else says, and the node itself is asked. */
  readonly address: string | null;
}

/** Who answers at the URL of a core node. */
export interface CoreFact extends JudgedFact {
  /** The address of the key that answered there, lowercase; null where none was proven. */
  readonly key: string | null;
}

const said = (why: string): CoreFact => ({ kind: 'said', why, itemHash: null, key: null });
const wrong = (why: string): CoreFact => ({ kind: 'wrong', why, itemHash: null, key: null });

/** The key that a core node says to have. */
async function readOwnKey(url: string): Promise<string | null> {
  try {
    return (await call(parseNodeUrl(url), NODE_API.getInfo, {})).address;
  } catch {
    return null;
  }
}

/** The newest message in which a core node tells of itself, as far as this core node has one that it signed. */
async function findAnnouncement(coreUrl: string, address: string): Promise<string | null> {
  try {
    const { messages } = await call(coreUrl, NETWORK_LISTS_API.listNetworkMessages, {
      query: {
        addresses: address,
        contentTypes: NETWORK_POST.coreNode,
        pagination: 1,
        bodies: 'shared',
      },
    });
    const [row] = messages;
    if (!row) return null;
    const { itemHash, sender } = await verifyListed({ coreUrl }, row);
    return sender === address && itemHash === row.item_hash ? itemHash : null;
  } catch {
    return null;
  }
}

/** The place that an answer says to be for. */
function placeIn({ body }: Challenged): string | undefined {
  try {
    const { place } = fieldsOf(JSON.parse(new TextDecoder().decode(body)));
    return typeof place === 'string' ? place : undefined;
  } catch {
    return undefined;
  }
}

async function judgeCore(coreUrl: string, core: ToldCore): Promise<CoreFact> {
  const { url } = core;
  const told = core.address ?? (await readOwnKey(url));
  if (told === null) return said('nobody says which key it has');
  let [place, address]: string[] = [];
  let answered: Challenged;
  try {
    [place, address] = [parseNodeUrl(url), parseEvmAddress(told)];
    answered = await challengeAt(place, { place });
  } catch {
    return said('it could not be asked for its key from this page');
  }
  const { status, body, challenge } = answered;
  if (status !== 200) return said(`it proves no key: it answered ${status}, as older releases do`);
  const provesAt = (where: string) =>
    provesNode(body, { nodeId: nodeIdOf(address), place: where, challenge }, address);
  const itsOwn = placeIn(answered);
  if (!provesAt(place))
    return itsOwn !== undefined && provesAt(itsOwn)
      ? said(`the key ${address} signed, but for ${itsOwn}: whoever answers here may pass questions on to it`)
      : wrong(`what answers there does not have the key ${address}`);
  const itemHash = await findAnnouncement(coreUrl, address);
  const announced = itemHash === null ? 'of which there is no announcement here' : 'which announced itself';
  return {
    ...{ kind: 'proven', itemHash, key: address.toLowerCase() },
    why: `the key ${address}, ${announced}, answered there just now`,
  };
}

/**
 * Whether the keys that core nodes are said to have answer at their URLs. Each has to sign what this tab made up, and the
 * URL. A key that answers at two of them is one node, which would count twice where nodes are said to agree.
 */
export async function judgeCores({
  coreUrl,
  cores,
}: {
  readonly coreUrl: string;
  readonly cores: readonly ToldCore[];
}): Promise<readonly CoreFact[]> {
  const facts = await Promise.all(cores.map((core) => judgeCore(coreUrl, core)));
  const seen = new Map<string, string>();
  return facts.map((fact, at) => {
    if (fact.key === null) return fact;
    const other = seen.get(fact.key);
    if (other !== undefined) return wrong(`the key ${fact.key} answers at ${other}, too: it is one node`);
    seen.set(fact.key, cores[at]!.url);
    return fact;
  });
}
