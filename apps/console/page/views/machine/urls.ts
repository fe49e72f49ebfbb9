import type { Instance } from '../../data/answers.ts';
import { useSchedulerNodes, useService } from '../../data/questions.ts';
import { type MachineUrls, machineUrls } from '../../pure/machine-urls.ts';
import { fields, maybe, number, text } from '../../pure/read.ts';

const SELDOM_MS = 60_000;

const readDomain = fields({ url: text });
const readPorts = fields({ http_port: maybe(number), https_port: maybe(number) });

/** Where the node of a machine is, by the scheduler's word; empty: nobody knows. */
export function useNodeUrl({ node_id: nodeId }: Pick<Instance, 'node_id'>): string {
  const nodes = useSchedulerNodes();
  return nodes.value?.nodes.find((one) => one.node_id === nodeId)?.url?.replace(/\/+$/, '') ?? '';
}

/** Undefined until the gateway has answered, and where the core node does not say where it is. */
export function useMachineUrls(id: string): MachineUrls | undefined {
  const domain = useService('gateway', `/api/hash/${id}`, readDomain, SELDOM_MS);
  const ports = useService('gateway', '/api/status', readPorts, SELDOM_MS);
  return machineUrls(domain.value?.url, ports.value);
}
