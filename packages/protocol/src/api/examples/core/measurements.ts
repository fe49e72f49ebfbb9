import type { Examples } from '../../operation.ts';
import { COMPUTE_NODE, CORE_NODE, TIME, VERSION } from '../values.ts';

/** Parallel arrays: the second measurement found no node. */
const HOUR = 3_600;
const named = {
  item_hash: [
    '23b18e504dd45960690a04669a3f89b3b9672d878218b99aa84011784c9174f5',
    'babc1bd8ec812c742b4598d05a104f582c7d9b824022f4972aa0c2d4a3b0c85e',
  ],
  measured_at: [TIME + 0.25, TIME + HOUR + 0.75],
};
const place = { asn: [64_512, 64_512], version: [VERSION, null] };

const historyOf = (measurements: number, answered: number) => ({
  step: 86_400,
  from: 1_759_536_000,
  history: [
    {
      start: 1_767_225_600,
      measurements,
      answered,
      base_latency: 0.182,
      versions: [VERSION],
    },
  ],
});

export const MEASUREMENT_EXAMPLES: Examples = {
  getCoreMeasurements: {
    params: { node_hash: CORE_NODE.id },
    answer: {
      metrics: {
        ...named,
        base_latency: [0.182, null],
        base_latency_ipv4: [0.176, null],
        metrics_latency: [0.21, null],
        aggregate_latency: [0.24, null],
        file_download_latency: [0.31, null],
        txs_total: [0, null],
        pending_messages: [2, null],
        eth_height_remaining: [1, null],
        ...place,
      },
    },
  },
  getComputeMeasurements: {
    params: { node_hash: COMPUTE_NODE.id },
    answer: {
      metrics: {
        ...named,
        base_latency: [0.182, null],
        base_latency_ipv4: [0.176, null],
        diagnostic_vm_latency: [0.52, null],
        full_check_latency: [1.9, null],
        diagnostic_vm_ping_latency: [0.02, null],
        ...place,
      },
    },
  },
  getCoreHistory: { params: { node_hash: CORE_NODE.id }, answer: historyOf(24, 24) },
  getComputeHistory: { params: { node_hash: COMPUTE_NODE.id }, answer: historyOf(24, 23) },
};
