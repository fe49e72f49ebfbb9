import { AppError } from '@skerry/protocol';
import type { Instances } from '../instances/instances.ts';

/**
 * What the node answers of an instance that nobody looks after here, once it is known who asks: not found, or why the node has not taken
 * one that is its own, as its status says to everybody.
 *
 * @param otherwise what is said where nothing is known of it
 */
export function absent(
  instances: Pick<Instances, 'absenceOf'>,
  id: string,
  otherwise = 'this node does not have an instance with this id',
): AppError {
  const reason = instances.absenceOf(id);
  if (reason === undefined) return new AppError('INSTANCE_NOT_FOUND', otherwise);
  return new AppError(
    'INSTANCE_NOT_READY',
    `this node has not taken the instance yet, and takes it when it can: ${reason.message}`,
    { details: { reason: reason.code } },
  );
}
