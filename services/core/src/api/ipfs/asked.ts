import { AppError } from '@skerry/protocol';
import type { IpfsReadQuery } from '@skerry/protocol/api/core/ipfs';
import { type AskedBytes, parseAskedBytes } from '../../store/ipfs/car/byte-range.ts';
import type { DagScope } from '../../store/ipfs/car/select.ts';
import { type AcceptedType, parseAccept } from '../accept.ts';

/** In which form a CID is read (IPFS specifications, "Trustless Gateway" and "Path Gateway"). */
export type Asked =
  | { readonly form: 'file' }
  | { readonly form: 'raw' }
  | { readonly form: 'car'; readonly scope: DagScope; readonly bytes: AskedBytes | undefined };

const RAW_TYPE = 'application/vnd.ipld.raw';
const CAR_TYPE = 'application/vnd.ipld.car';
/** Other forms of gateways: whoever names one of them does not want the file as it is. */
const OTHER_FORMS = /^application\/(?:vnd\.ip[fl]\S*|x-tar)$/;

const CAR_PARAMETERS = ['dag-scope', 'entity-bytes', 'car-version', 'car-order', 'car-dups'] as const;

type CarWish = Readonly<Record<'version' | 'order' | 'dups', string | undefined>>;

/** What is made: version 1, depth first, no block twice. Without a wish for an order any will do. */
const isMade = ({ version, order, dups }: CarWish) =>
  (version ?? '1') === '1' && ['dfs', 'unk'].includes(order ?? 'unk') && (dups ?? 'n') === 'n';

const wishOf = (query: IpfsReadQuery, parameters: AcceptedType['parameters']): CarWish => ({
  version: query['car-version'] ?? parameters.get('version'),
  order: query['car-order'] ?? parameters.get('order'),
  dups: query['car-dups'] ?? parameters.get('dups'),
});

const NO_PARAMETERS: AcceptedType['parameters'] = new Map();

/** The form that `Accept` asks for, where `format` does not. Throws NOT_ACCEPTABLE. */
function formOfAccept(query: IpfsReadQuery, accept: string): Asked['form'] {
  const types = parseAccept(accept);
  const isCar = ({ type, parameters }: AcceptedType) =>
    type === CAR_TYPE && isMade(wishOf(query, parameters));
  const best = types.find((one) => one.type === RAW_TYPE || isCar(one) || !OTHER_FORMS.test(one.type));
  if (best) return best.type === RAW_TYPE ? 'raw' : best.type === CAR_TYPE ? 'car' : 'file';
  if (types.length === 0) return 'file';
  throw new AppError(
    'NOT_ACCEPTABLE',
    `of the forms of IPFS gateways there are ${RAW_TYPE} and ${CAR_TYPE};version=1;order=dfs;dups=n`,
  );
}

/** Throws INVALID_PARAMETERS, NOT_ACCEPTABLE. */
export function readAsked(query: IpfsReadQuery, accept: string | undefined): Asked {
  const form = query.format ?? formOfAccept(query, accept ?? '');
  if (form !== 'car') {
    const stray = CAR_PARAMETERS.find((name) => query[name] !== undefined);
    if (stray) throw new AppError('INVALID_PARAMETERS', `${stray} is for format=car`);
    return { form };
  }
  if (query.format === 'car' && !isMade(wishOf(query, NO_PARAMETERS)))
    throw new AppError('NOT_ACCEPTABLE', 'a CAR comes as car-version=1, car-order=dfs and car-dups=n');
  const text = query['entity-bytes'];
  const bytes = text === undefined ? undefined : parseAskedBytes(text);
  const scope = query['dag-scope'] ?? (bytes ? 'entity' : 'all');
  if (bytes && scope !== 'entity')
    throw new AppError('INVALID_PARAMETERS', 'entity-bytes is for dag-scope=entity');
  return { form, scope, bytes };
}
