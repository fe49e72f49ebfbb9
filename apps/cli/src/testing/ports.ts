import { findFreePort } from '@skerry/kit';

/** Ports for daemons that must know of each other before they start. */
export async function findFreePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await findFreePort());
  return [...ports];
}
