import type { Examples } from '../../operation.ts';
import { ADDRESS_EXAMPLES } from './addresses.ts';
import { AGGREGATE_EXAMPLES } from './aggregates.ts';
import { CHAIN_EXAMPLES } from './chains.ts';
import { CREDIT_EXAMPLES } from './credits.ts';
import { INSTANCE_EXAMPLES } from './instances.ts';
import { MEASUREMENT_EXAMPLES } from './measurements.ts';
import { MESSAGE_EXAMPLES } from './messages.ts';
import { NODE_EXAMPLES } from './node.ts';
import { STORAGE_EXAMPLES } from './storage.ts';
import { VRF_EXAMPLES } from './vrf.ts';
import { WEBHOOK_EXAMPLES } from './webhooks.ts';

/** Of what a core node does for its callers. */
export const CORE_EXAMPLES: Examples = {
  ...MESSAGE_EXAMPLES,
  ...ADDRESS_EXAMPLES,
  ...STORAGE_EXAMPLES,
  ...AGGREGATE_EXAMPLES,
  ...INSTANCE_EXAMPLES,
  ...WEBHOOK_EXAMPLES,
  ...MEASUREMENT_EXAMPLES,
  ...CREDIT_EXAMPLES,
  ...NODE_EXAMPLES,
  ...CHAIN_EXAMPLES,
  ...VRF_EXAMPLES,
};
