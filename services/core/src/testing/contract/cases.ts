import { aggregateCases } from './aggregates.ts';
import type { Cases } from './case.ts';
import { costCases } from './costs.ts';
import { creditCases } from './credits.ts';
import { deployedCases } from './deployed.ts';
import { indexerCases } from './indexer.ts';
import { instanceCases } from './instances.ts';
import { ipfsCases } from './ipfs.ts';
import { listCases } from './lists.ts';
import { messageCases } from './messages.ts';
import { nodeCases } from './node.ts';
import { nodeMetricsCases } from './node-metrics.ts';
import { programCases } from './programs.ts';
import { storageCases } from './storage.ts';
import { syncCases } from './sync.ts';
import { vrfCases } from './vrf.ts';
import { webhookCases } from './webhooks.ts';

/** A new route needs its cases in one of these; the contract test says which operations have none. */
export const CASES: Cases = {
  ...messageCases,
  ...listCases,
  ...deployedCases,
  ...aggregateCases,
  ...programCases,
  ...instanceCases,
  ...storageCases,
  ...ipfsCases,
  ...vrfCases,
  ...indexerCases,
  ...nodeCases,
  ...nodeMetricsCases,
  ...creditCases,
  ...costCases,
  ...webhookCases,
  ...syncCases,
};
