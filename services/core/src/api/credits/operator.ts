import { createHash, timingSafeEqual } from 'node:crypto';
import { AppError } from '@skerry/protocol';
import type { FastifyRequest } from 'fastify';
import type { RouteSettings } from '../rooms.ts';

const HEADER = 'x-auth-token';

const digestOf = (token: string) => createHash('sha256').update(token).digest();

/** That the node's operator asks, by the token of the settings. Throws CREDENTIAL_REQUIRED, CREDENTIAL_REFUSED. */
export function checkOperator(
  { operatorToken }: Pick<RouteSettings, 'operatorToken'>,
  { headers }: Pick<FastifyRequest, 'headers'>,
): void {
  const given = headers[HEADER];
  if (operatorToken === undefined)
    throw new AppError(
      'CREDENTIAL_REFUSED',
      'this node takes no operator token (SKERRY_CORE_OPERATOR_TOKEN)',
    );
  if (typeof given !== 'string')
    throw new AppError(
      'CREDENTIAL_REQUIRED',
      'this is for the operator of the node, with the header X-Auth-Token',
    );
  // By digests, which have one length, in constant time: how long it takes says nothing.
  if (!timingSafeEqual(digestOf(given), digestOf(operatorToken)))
    throw new AppError('CREDENTIAL_REFUSED', 'this is not the operator token of the node');
}
