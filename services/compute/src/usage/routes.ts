import { answer, cached, createClientOf, type Handlers } from '@skerry/kit';
import { AppError } from '@skerry/protocol';
import type { USAGE_API } from '@skerry/protocol/api/compute/usage';
import type { FastifyRequest } from 'fastify';
import type { ComputeConfig } from '../config.ts';
import type { Programs } from '../programs/programs.ts';
import { createUsageMetrics } from './metrics.ts';
import { readUsage, type UsageSources } from './usage.ts';

/** However often it is asked for, machines are looked at this often at most. */
const KEEP_MS = 500;

export interface UsageRoutes extends UsageSources {
  readonly programs: Pick<Programs, 'readUsage' | 'readTotal'> | undefined;
  readonly readers: Pick<ComputeConfig, 'trustedProxies' | 'usageReaders'>;
}

/** What each guest takes, for those whom the operator lets read it: to others it would say when a guest is busy, and with whom. */
export function usageHandlers(sources: UsageRoutes): Handlers<typeof USAGE_API> {
  const { programs, readers } = sources;
  const clientOf = createClientOf({
    trustedProxies: readers.trustedProxies,
    exempt: readers.usageReaders,
  });
  // All that a node answers may be read by any page of a browser, and one on this server, or behind a tunnel to it, asks from here.
  const check = ({ request }: { readonly request: FastifyRequest }) => {
    const isPage = request.headers.origin !== undefined;
    if (isPage || !clientOf(request.raw).isExempt)
      throw new AppError(
        'NOT_PERMITTED',
        'only addresses in SKERRY_COMPUTE_USAGE_READERS may read what guests use; by default, ask on the server of the node itself',
      );
  };
  const read = cached(KEEP_MS, () => readUsage(sources));
  // Nobody pays for them who does not ask.
  const openMetrics = cached(Number.POSITIVE_INFINITY, () =>
    createUsageMetrics({ read, readPrograms: () => programs?.readTotal() }),
  );
  return {
    async listGuestUsage(asked) {
      check(asked);
      return read();
    },
    async getComputeMetrics(asked) {
      check(asked);
      const metrics = await openMetrics();
      return answer(200, await metrics.text(), {
        'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      });
    },
  };
}
