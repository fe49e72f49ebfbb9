import { VERSION } from '@skerry/kit';

/**
 * The names under which deployed nodes tell of themselves, which measurement programs and dashboards read
 * (`/metrics.json`). What this node does not know is null.
 */
const DEPLOYED_NAMES = [
  'pyaleph_status_peers_total',
  'pyaleph_status_sync_messages_total',
  'pyaleph_status_sync_permanent_files_total',
  'pyaleph_status_sync_pending_messages_total',
  'pyaleph_status_sync_pending_txs_total',
  'pyaleph_status_chain_eth_last_committed_height',
  'pyaleph_processing_pending_messages_seen_ids_total',
  'pyaleph_processing_pending_messages_tasks_total',
  'pyaleph_processing_pending_messages_aggregate_tasks',
  'pyaleph_processing_pending_messages_forget_tasks',
  'pyaleph_processing_pending_messages_post_tasks',
  'pyaleph_processing_pending_messages_program_tasks',
  'pyaleph_processing_pending_messages_store_tasks',
  'pyaleph_processing_pending_messages_action_total',
  'pyaleph_status_sync_messages_reference_total',
  'pyaleph_status_sync_messages_remaining_total',
  'pyaleph_status_chain_eth_height_reference_total',
  'pyaleph_status_chain_eth_height_remaining_total',
  'pyaleph_ws_messages_connections_active',
  'pyaleph_ws_messages_connections_max',
  'pyaleph_ws_status_connections_active',
  'pyaleph_ws_status_connections_max',
  'pyaleph_ws_messages_broadcast_total',
  'pyaleph_ws_messages_connections_rejected_total',
  'pyaleph_ws_status_connections_rejected_total',
  'pyaleph_ws_broadcaster_consumer_restarts_total',
  'pyaleph_store_fetch_ipfs_total',
  'pyaleph_store_fetch_ipfs_failed_total',
  'pyaleph_store_fetch_ipfs_duration_ms_sum',
  'pyaleph_store_fetch_storage_total',
  'pyaleph_store_fetch_storage_failed_total',
  'pyaleph_store_fetch_storage_duration_ms_sum',
] as const;

export type DeployedName = (typeof DEPLOYED_NAMES)[number];
/** What some part of the node knows. */
export type DeployedReadings = Partial<Readonly<Record<DeployedName, number | null>>>;

export type DeployedMetrics = {
  readonly pyaleph_build_info: { readonly python_version: null; readonly version: string };
} & Readonly<Record<DeployedName, number | null>>;

/** All names, with what is known; how far the chain is behind follows from the two heights. */
export function completeDeployed(readings: DeployedReadings): DeployedMetrics {
  const known = (name: DeployedName) => readings[name] ?? null;
  const all = Object.fromEntries(DEPLOYED_NAMES.map((name) => [name, known(name)])) as Record<
    DeployedName,
    number | null
  >;
  const reference = all.pyaleph_status_chain_eth_height_reference_total;
  const committed = all.pyaleph_status_chain_eth_last_committed_height;
  if (reference !== null && committed !== null)
    all.pyaleph_status_chain_eth_height_remaining_total ??= Math.max(reference - committed, 0);
  return { pyaleph_build_info: { python_version: null, version: VERSION }, ...all };
}

/** One `name value` a line; what is not known is left out. */
export function renderDeployed(metrics: DeployedMetrics): string {
  const lines = DEPLOYED_NAMES.flatMap((name) =>
    metrics[name] === null ? [] : [`${name} ${metrics[name]}`],
  );
  return `${[`pyaleph_build_info{version="${metrics.pyaleph_build_info.version}"} 1`, ...lines].join('\n')}\n`;
}
