import type { CoreClient } from '@skerry/client';
import type { Handlers } from '@skerry/kit';
import { AppError, normaliseAddress, OWNER_HEADERS, parseItemHash, verifyOwnerPass } from '@skerry/protocol';
import { type NAMES_API, POSITION_MAX } from '@skerry/protocol/api/gateway-names';
import type { DataPlane } from '../dataplane/port.ts';
import { isRoutable, whyHolder } from '../table/instance.ts';
import { fullHostname } from '../table/named-route.ts';
import type { InstanceTable } from '../table/table.ts';
import { recordOfHash } from './records.ts';

export interface NamesOptions {
  readonly routing: { readonly table: InstanceTable };
  readonly plane: Pick<DataPlane, 'findAttempts'>;
  /** Who owns an instance is asked when somebody says that they do: the table has no owners. */
  readonly core: Pick<CoreClient, 'getInstance'>;
  readonly now: () => number;
}

interface Page {
  readonly position: number;
  readonly limit: number;
}

function pageOf<T>(all: Iterable<T>, { position, limit }: Page): T[] {
  const page: T[] = [];
  let at = 0;
  for (const one of all) {
    if (at++ < position) continue;
    page.push(one);
    if (page.length === limit) break;
  }
  return page;
}

function nextOf({ position, limit }: Page, total: number): number | null {
  const next = position + limit;
  return next < total && next <= POSITION_MAX ? next : null;
}

interface SignedFor {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly url: string;
}

/** Who asks. Throws as verifyOwnerPass does. */
async function identify({ headers, url }: SignedFor, domain: string, nowMs: number): Promise<string> {
  const mark = url.indexOf('?');
  const { address } = await verifyOwnerPass(
    { publicKey: headers[OWNER_HEADERS.publicKey], operation: headers[OWNER_HEADERS.operation] },
    {
      // Several gateways may serve a domain, and none has an id: what names a node is for somebody else.
      ...{ domain, node: '', nowMs, method: 'GET', hasBody: false },
      path: mark < 0 ? url : url.slice(0, mark),
      query: mark < 0 ? '' : url.slice(mark + 1),
    },
  );
  return normaliseAddress(address);
}

export function namesHandlers({ routing, plane, core, now }: NamesOptions): Handlers<typeof NAMES_API> {
  return {
    listRoutes({ query }) {
      const { table } = routing;
      const routes = pageOf(table.names(), query).map(([subdomain, named]) => {
        const holder = named[0]!;
        return {
          instance_hash: holder.hash,
          subdomain,
          ipv6: holder.ipv6,
          active: isRoutable(holder),
          shared_by: named.length,
        };
      });
      return { routes, total: table.nameCount, next_position: nextOf(query, table.nameCount) };
    },
    listCollisions({ query }) {
      const { table } = routing;
      const collisions = pageOf(table.sharedNames(), query).map((subdomain) => {
        const [holder, ...others] = table.listNamed(subdomain);
        const waiting = others.map((one) => ({
          instance_hash: one.hash,
          because: whyHolder(holder!, one),
        }));
        return { subdomain, holder: holder!.hash, waiting };
      });
      return { collisions, total: table.sharedCount, next_position: nextOf(query, table.sharedCount) };
    },
    async getTraffic({ params, request }) {
      const { table } = routing;
      const hash = parseItemHash(params.hash);
      const asker = await identify(request, table.domain, now());
      if (!table.find(hash))
        throw new AppError('INSTANCE_NOT_FOUND', 'no instance that this gateway knows has this hash');
      const { owner } = await core.getInstance(hash);
      if (normaliseAddress(owner) !== asker)
        throw new AppError('NOT_PERMITTED', 'only the owner of the instance may ask for its traffic');
      const { url, subdomain } = recordOfHash(table, hash);
      // A name that another instance has counts for that one.
      const isHolder = table.listNamed(subdomain)[0]?.hash === hash;
      const met = isHolder ? await plane.findAttempts(fullHostname(subdomain, table.domain)) : undefined;
      return {
        instance_hash: hash,
        url,
        since: met?.traffic.since ?? null,
        open: met?.open ?? 0,
        connections: met?.traffic.connections ?? 0,
        bytes_to_instance: met?.traffic.bytesToInstance ?? 0,
        bytes_to_clients: met?.traffic.bytesToClient ?? 0,
        requests: met?.traffic.requests ?? 0,
      };
    },
  };
}
